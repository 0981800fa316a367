# SPDX-License-Identifier: Apache-2.0
"""One request to an address that somebody else has named: where it may go, and no further.

The address itself is looked at, at each connection: what a name leads to may be another thing by then.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from aiohttp import ClientConnectorError, ClientError, ClientSession, DummyCookieJar, TCPConnector, hdrs

from goodbot.base.addresses import may_reach
from goodbot.base.errors import GoodbotError
from goodbot.base.proxies import proxy_url


class UndeliveredError(GoodbotError):
    """It has not been taken; why, as a clause."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Answered:
    """All that is read of an answer."""

    status: int
    retry_after: str = ""


async def post(
    url: str, body: bytes, headers: Mapping[str, str], *, seconds: float, local: bool = False
) -> Answered:
    """Send a body, and say what was answered, whatever that is.

    Args:
        url: Where to; `require_url` has been asked before.
        body: What is sent.
        headers: Said with it.
        seconds: So long it may take altogether.
        local: Whether it may be this machine, or one of one's own network.

    Returns:
        The status, and when to come again.

    Raises:
        UndeliveredError: Nothing was answered, or it is no address that may be reached.
        FatalConnectorError: The proxy of this machine cannot be used.
    """
    proxy = proxy_url(url)
    try:
        async with asyncio.timeout(seconds):
            if proxy:  # it connects, so all that can be looked at is the name
                await _require_reachable(url, local)
            connector = TCPConnector(
                force_close=True, use_dns_cache=False, socket_factory=None if proxy else _guarded(local)
            )
            async with (
                ClientSession(
                    connector=connector, cookie_jar=DummyCookieJar(), auto_decompress=False, read_bufsize=4096
                ) as session,
                session.post(url, data=body, headers=headers, proxy=proxy, allow_redirects=False) as answer,
            ):
                return Answered(
                    status=answer.status, retry_after=answer.headers.get(hdrs.RETRY_AFTER, "")[:100]
                )
    except TimeoutError:
        raise UndeliveredError(f"no answer within {seconds:g} s") from None
    except ClientConnectorError as error:
        raise UndeliveredError(f"it cannot be reached ({error.os_error})") from error
    except (ClientError, OSError, ValueError) as error:
        raise UndeliveredError(f"it cannot be reached ({error or type(error).__name__})") from error


def _guarded(local: bool) -> Callable[[Any], socket.socket]:
    """Makes sockets for allowed addresses alone: it is asked with the one that is connected to next."""

    def made(info: Any) -> socket.socket:
        family, kind, protocol, _, address = info
        _require(str(address[0]), local)
        return socket.socket(family, kind, protocol)

    return made


async def _require_reachable(url: str, local: bool) -> None:
    parts = urlsplit(url)
    try:
        found = await asyncio.get_running_loop().getaddrinfo(parts.hostname, parts.port)
    except socket.gaierror:  # only the proxy knows it, and where it leads
        if local:
            return
        raise OSError(
            f"this machine does not know {parts.hostname}, so only local = true allows it"
        ) from None
    for *_, address in found:
        _require(str(address[0]), local)


def _require(address: str, local: bool) -> None:
    if not may_reach(address, local=local):
        raise OSError(f"{address} is no address that I may send to")
