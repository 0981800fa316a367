# SPDX-License-Identifier: Apache-2.0
"""Which addresses a model server may have: this machine's, or those of hosts that the owner names.

A URL is taken apart, checked and put together anew, so that what is asked is what was checked. A name is
resolved once, when a session begins, and the session goes to no other address.
"""

from __future__ import annotations

import asyncio
import re
import socket
import string
from collections.abc import Sequence
from ipaddress import IPv4Address, IPv6Address, ip_address
from urllib.parse import urlsplit

from goodbot.base import addresses
from goodbot.base.errors import ServerError
from goodbot.base.worded import Worded

LOCALHOST = "localhost"
_IN_NAMES = frozenset(string.ascii_lowercase + string.digits + ".-_")
_IN_PATHS = frozenset(string.ascii_letters + string.digits + "/._~-")
_IN_ADDRESSES = frozenset(map(chr, range(0x21, 0x7F))) - frozenset('\\"<>^`{|}')
_LONGEST = 500
_OF_API = re.compile(
    r"/+(?:v1/+(?:completions|responses|messages|embeddings|models)|(?:v1/+)?chat/+completions|v1"
    r"|api/+(?:chat|generate|tags|show|version|embed))?/*\Z"
)
"""What people copy along with an address: the way to one question of the API."""


def checked(
    url: str,
    hosts: Sequence[str] = (),
    *,
    section: str = "serving",
    setting: str = "hosts",
    key: str = "GOODBOT_SERVER_KEY",
) -> str:
    """Check the address of a server, and write it in one spelling, without what the API adds to it.

    Args:
        url: What the owner has typed.
        hosts: The other machines that the owner allows.
        section: The section of the config that the address stands in.
        setting: The key in that section that holds `hosts`.
        key: The environment variable for the server's key.

    Returns:
        The address, as `http://127.0.0.1:8000`.

    Raises:
        ValueError: It is none, or not allowed; in words that go on after "url".
    """
    if len(url) > _LONGEST or not set(url) <= _IN_ADDRESSES:
        raise ValueError(Worded("must be a plain address, like http://127.0.0.1:8000"))
    if "@" in url:
        raise ValueError(Worded("must not hold a name or a key: a key goes into {key}", key=key))
    if "#" in url or "?" in url:
        raise ValueError(Worded("must end before any ? or #"))
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https"):
        raise ValueError(Worded("must begin with http:// or https://"))
    try:
        host, port = _normal(parts.hostname or ""), parts.port
    except ValueError:
        raise ValueError(Worded("must have a port between 1 and 65535")) from None
    if port == 0 or parts.netloc.endswith(":"):
        raise ValueError(Worded("must have a port between 1 and 65535"))
    if not _is_host(host):
        raise ValueError(Worded("has no host that can be asked: {host}", host=repr(host[:80])))
    if not addresses.is_here(host) and host not in {_normal(name) for name in hosts}:
        elsewhere = (
            "leads to {host}, which is not this machine: if you run that server, "
            'put {setting} = ["{host}"] under [{section}]'
        )
        raise ValueError(Worded(elsewhere, host=host[:80], setting=setting, section=section))
    path = _OF_API.sub("", parts.path)
    if not set(path) <= _IN_PATHS or {".", ".."} & set(path.split("/")):
        raise ValueError(Worded("has a path that is none: letters, digits and / . _ ~ - only"))
    address = f"[{host}]" if ":" in host else host
    return f"{parts.scheme}://{address}{f':{port}' if port else ''}{path}"


def is_here(url: str) -> bool:
    """Whether an address leads to this machine."""
    return addresses.is_here(_normal(urlsplit(url).hostname or ""))


async def pinned(url: str, *, section: str = "serving") -> list[tuple[int, str]]:
    """Where a checked address leads, now: `(family, IP address)` of each way there. Raises ServerError.

    `localhost` leads to this machine whatever the resolver says, and no name to a link-local address, where
    clouds keep their secrets.
    """
    host = urlsplit(url).hostname or ""
    literal = _literal(host)
    if literal is not None:
        return [(socket.AF_INET if literal.version == 4 else socket.AF_INET6, str(literal))]
    try:
        found = await asyncio.get_running_loop().getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except OSError as error:
        unknown = Worded(
            "no machine named {host} is known here: see [{section}] url", host=host, section=section
        )
        raise ServerError(unknown) from error
    ways = [(int(family), str(address[0])) for family, _, _, _, address in found]
    good = [(family, ip) for family, ip in ways if _may_lead(host, _literal(ip.partition("%")[0]))]
    if not good:
        raise ServerError(Worded("the name {host} leads to an address that no model server has", host=host))
    return good


def _may_lead(host: str, ip: IPv4Address | IPv6Address | None) -> bool:
    if isinstance(ip, IPv6Address):  # ::ffff:169.254.169.254 leads where 169.254.169.254 does
        ip = ip.ipv4_mapped or ip
    if ip is None or ip.is_link_local or ip.is_multicast or ip.is_unspecified:
        return False
    return ip.is_loopback or host != LOCALHOST


def _normal(host: str) -> str:
    """One spelling of a host: small letters, no dot at the end, no brackets."""
    host = host.strip("[]").lower().removesuffix(".")
    literal = _literal(host)
    return str(literal) if literal is not None else host


def _is_host(host: str) -> bool:
    """Whether it is an IP address or a name; `2130706433`, `0x7f.1` and `127.1` are neither."""
    if _literal(host) is not None:
        return True
    labels = host.split(".")
    named = set(host) <= _IN_NAMES and all(labels) and len(host) < 254
    return named and labels[-1][0] in string.ascii_lowercase


def _literal(host: str) -> IPv4Address | IPv6Address | None:
    try:
        ip = ip_address(host)
    except ValueError:
        return None
    return None if ip.version == 6 and ip.scope_id else ip
