# SPDX-License-Identifier: Apache-2.0
"""One request to one receiver: signed, to an address that may be reached, and no further."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import socket
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlsplit

from aiohttp import ClientConnectorError, ClientError, ClientSession, DummyCookieJar, TCPConnector

from goodbot import __version__
from goodbot.base.errors import GoodbotError
from goodbot.base.proxies import proxy_url
from goodbot.features.webhooks.addresses import may_reach
from goodbot.features.webhooks.plugin import Receiver

SECONDS = 10.0


class UndeliveredError(GoodbotError):
    """The receiver has not taken it; why, as a clause."""


def signature(key: str, at: int, body: bytes) -> str:
    """What `Goodbot-Signature` says: when it was signed, and the HMAC-SHA256 of that, a dot and the body."""
    made = hmac.new(key.encode(), f"{at}.".encode() + body, hashlib.sha256).hexdigest()
    return f"t={at},v1={made}"


async def post(receiver: Receiver, id_: str, body: bytes, signed: str) -> None:
    """Send it; return once the receiver says that it has it. Raises UndeliveredError, FatalConnectorError.

    Of the answer only the status is read.
    """
    proxy = proxy_url(receiver.url)
    headers: Mapping[str, str] = {
        "Content-Type": "application/json",
        "User-Agent": f"goodbot/{__version__}",
        "Goodbot-Delivery": id_,
        "Goodbot-Signature": signed,
    }
    try:
        async with asyncio.timeout(SECONDS):
            if proxy:  # it connects, so all that can be looked at is the name
                await _require_reachable(receiver)
            connector = TCPConnector(
                force_close=True, use_dns_cache=False, socket_factory=None if proxy else _guarded(receiver)
            )
            async with (
                ClientSession(
                    connector=connector, cookie_jar=DummyCookieJar(), auto_decompress=False, read_bufsize=4096
                ) as session,
                session.post(
                    receiver.url, data=body, headers=headers, proxy=proxy, allow_redirects=False
                ) as answer,
            ):
                status = answer.status
    except TimeoutError:
        raise UndeliveredError(f"no answer within {SECONDS:g} s") from None
    except ClientConnectorError as error:
        raise UndeliveredError(f"it cannot be reached ({error.os_error})") from error
    except (ClientError, OSError, ValueError) as error:
        raise UndeliveredError(f"it cannot be reached ({error or type(error).__name__})") from error
    if 300 <= status < 400:
        raise UndeliveredError(
            f"it answers {status} and sends me elsewhere: put the address meant into `url`"
        )
    if not 200 <= status < 300:
        raise UndeliveredError(f"it answers {status}")


def _guarded(receiver: Receiver) -> Callable[[Any], socket.socket]:
    """Makes sockets for allowed addresses alone: it is asked with the one that is connected to next."""

    def made(info: Any) -> socket.socket:
        family, kind, protocol, _, address = info
        _require(receiver, str(address[0]))
        return socket.socket(family, kind, protocol)

    return made


async def _require_reachable(receiver: Receiver) -> None:
    parts = urlsplit(receiver.url)
    try:
        found = await asyncio.get_running_loop().getaddrinfo(parts.hostname, parts.port)
    except socket.gaierror:  # only the proxy knows it, and where it leads
        if receiver.local:
            return
        raise OSError(
            f"this machine does not know {parts.hostname}, so only local = true allows it"
        ) from None
    for *_, address in found:
        _require(receiver, str(address[0]))


def _require(receiver: Receiver, address: str) -> None:
    if not may_reach(address, local=receiver.local):
        raise OSError(f"{address} is no address that I may send to")
