# SPDX-License-Identifier: Apache-2.0
"""A line of `goodbot doctor`: whether others on the way can read along."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import urlsplit

from goodbot import Check, CheckState, Examined

_HERE = ("127.0.0.1", "::1", "localhost")


async def transport(examined: Examined) -> Sequence[Check]:
    """Plain HTTP is fine on this machine only."""
    section = examined.config.connectors.get("matrixlike", {})
    address = urlsplit(str(section.get("homeserver", "http://127.0.0.1:8008")))
    if address.scheme == "https" or address.hostname in _HERE:
        return [Check(part="transport", state=CheckState.OK, text="nobody can read along")]
    text = f"what is said with {address.hostname} crosses the network unencrypted"
    fix = f'set homeserver = "https://{address.netloc}"'
    return [Check(part="transport", state=CheckState.FAIL, text=text, fix=fix)]
