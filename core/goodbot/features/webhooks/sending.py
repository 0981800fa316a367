# SPDX-License-Identifier: Apache-2.0
"""One request to one receiver: signed, and what its answer means."""

from __future__ import annotations

import hashlib
import hmac

from goodbot import __version__
from goodbot.base import outward
from goodbot.base.outward import UndeliveredError
from goodbot.features.webhooks.plugin import Receiver

SECONDS = 10.0


def signature(key: str, at: int, body: bytes) -> str:
    """What `Goodbot-Signature` says: when it was signed, and the HMAC-SHA256 of that, a dot and the body."""
    made = hmac.new(key.encode(), f"{at}.".encode() + body, hashlib.sha256).hexdigest()
    return f"t={at},v1={made}"


async def post(receiver: Receiver, id_: str, body: bytes, signed: str) -> None:
    """Send it; return once the receiver says that it has it. Raises UndeliveredError, FatalConnectorError.

    Of the answer only the status is read.
    """
    headers = {
        "Content-Type": "application/json",
        "User-Agent": f"goodbot/{__version__}",
        "Goodbot-Delivery": id_,
        "Goodbot-Signature": signed,
    }
    answer = await outward.post(receiver.url, body, headers, seconds=SECONDS, local=receiver.local)
    status = answer.status
    if 300 <= status < 400:
        raise UndeliveredError(
            f"it answers {status} and sends me elsewhere: put the address meant into `url`"
        )
    if not 200 <= status < 300:
        raise UndeliveredError(f"it answers {status}")
