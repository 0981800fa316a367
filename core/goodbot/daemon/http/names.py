# SPDX-License-Identifier: Apache-2.0
"""Which `Host` headers mean us: a page whose name was rebound to this address did not."""

from __future__ import annotations

import ipaddress
from typing import cast
from urllib.parse import urlsplit

from aiohttp import hdrs, web

from goodbot.config import HttpConfig

_LOCAL = ("localhost", "127.0.0.1", "[::1]")


def known(config: HttpConfig) -> frozenset[str]:
    """The names that are always ours, in lower case."""
    url = urlsplit(config.url).hostname or ""
    given = [_bracketed(name).lower() for name in (config.host, url, *config.names) if name]
    return frozenset((*_LOCAL, *given))


def ours(request: web.BaseRequest, names: frozenset[str]) -> bool:
    """Whether the client meant us, by one of `names` or by the address that it has connected to.

    With any port: behind a proxy or a forward (`ssh -L`) it is another than ours, and a page whose name
    was rebound comes with that name, whatever its port.
    """
    given = request.headers.getall(hdrs.HOST, [])
    if len(given) != 1 or request.host != given[0]:  # a whole address in the first line names another
        return False
    name, colon, port = given[0].rpartition(":")
    if not colon or not port.isdecimal():
        name = given[0]
    name = name.lower()
    return name in names or (bool(name) and name == _bracketed(_arrived_at(request)))


def _arrived_at(request: web.BaseRequest) -> str:
    """The address of ours that the client has connected to: no name, so nobody can rebind it."""
    transport = request.transport
    name: object = transport.get_extra_info("sockname") if transport else None
    if not isinstance(name, tuple) or not name:  # a Unix socket has a path
        return ""
    host = str(cast("tuple[object, ...]", name)[0])
    address = ipaddress.ip_address(host.partition("%")[0])
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return str(mapped or address)


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host
