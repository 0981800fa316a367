# SPDX-License-Identifier: Apache-2.0
"""Through which proxy a platform is reached: one rule, for every library that we use.

`HTTPS_PROXY` decides for `https` and `wss`, `HTTP_PROXY` for `http` and `ws`, `ALL_PROXY` where that is
not set; small letters win, as with curl. `NO_PROXY` names what is reached directly: hosts, domains with
all below them, addresses, networks (`10.0.0.0/8`), `*`, each with a port where only that one is meant.
This machine never is reached through one, and model servers do not ask here.
"""

from __future__ import annotations

import ipaddress
import os
from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import SplitResult, urlsplit

from goodbot.base.errors import FatalConnectorError
from goodbot.base.worded import Worded

VARIABLES = tuple(
    case for name in ("https_proxy", "http_proxy", "all_proxy", "no_proxy") for case in (name, name.upper())
)
"""What decides, of the environment."""
_SECURE = {"https": True, "wss": True, "http": False, "ws": False}
_PORTS = {True: 443, False: 80}


class HttpProxy(NamedTuple):
    """An HTTP proxy, and the variable that names it."""

    url: str
    """With the credentials."""
    variable: str

    @property
    def shown(self) -> str:
        """Without them."""
        parts = urlsplit(self.url)
        _, at, place = parts.netloc.rpartition("@")
        return f"{parts.scheme}://{'***@' if at else ''}{place}"


def proxy_url(address: str) -> str | None:
    """What an HTTP library is given as proxy for `address`; None: it connects directly.

    Raises FatalConnectorError for one that cannot be used.
    """
    found = proxy(address)
    return found.url if found else None


def proxy(address: str, environ: Mapping[str, str] | None = None) -> HttpProxy | None:
    """The proxy for `address`, None where it is reached directly.

    Raises FatalConnectorError for one that cannot be used, without its address: it may be a secret.
    """
    environ = os.environ if environ is None else environ
    parts = urlsplit(address)
    host, secure = (parts.hostname or "").rstrip("."), _SECURE.get(parts.scheme, True)
    if not host or _is_loopback(host) or _excepted(parts, host, secure, environ):
        return None
    for name in ("https_proxy" if secure else "http_proxy", "all_proxy"):
        for variable in (name, name.upper()):
            if value := environ.get(variable, "").strip():
                return HttpProxy(_usable(value, variable, host), variable)
    return None


def _is_loopback(host: str) -> bool:
    """Whether it names this machine alone."""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    address = _address(host)
    mapped = getattr(address, "ipv4_mapped", None)
    return address is not None and (address.is_loopback or bool(mapped and mapped.is_loopback))


def _usable(value: str, variable: str, host: str) -> str:
    url = value if "://" in value else f"http://{value}"
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and parts.hostname and (parts.port or True)
    except ValueError:
        usable = False
    if usable:
        return url
    socks = url.casefold().startswith("socks")
    why = Worded("SOCKS is not supported") if socks else Worded("that is not one")
    wrong = (
        "{variable} must name an HTTP proxy ({why}): set HTTPS_PROXY to http://HOST:PORT, or name {host} "
        "in NO_PROXY to reach it without"
    )
    raise FatalConnectorError(Worded(wrong, variable=variable, why=why, host=host))


def _excepted(parts: SplitResult, host: str, secure: bool, environ: Mapping[str, str]) -> bool:
    """Whether `NO_PROXY` names the host."""
    try:
        port = parts.port or _PORTS[secure]
    except ValueError:
        return False
    named = environ.get("no_proxy") or environ.get("NO_PROXY") or ""
    return any(_names(entry, host, port) for entry in named.replace(",", " ").split())


def _names(entry: str, host: str, port: int) -> bool:
    entry = entry.casefold().rpartition("://")[2]
    if entry == "*":
        return True
    address = _address(host)
    if address is not None and "/" in entry:
        try:
            return address in ipaddress.ip_network(entry, strict=False)
        except ValueError:
            return False
    if _address(entry.strip("[]")) is None:
        name, colon, only = entry.rpartition(":")
        if colon and only.isdigit():
            if int(only) != port:
                return False
            entry = name
    entry = entry.strip("[]").removeprefix("*").strip(".")
    if address is not None:
        return _address(entry) == address
    return bool(entry) and (host == entry or host.endswith(f".{entry}"))


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None
