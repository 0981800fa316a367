# SPDX-License-Identifier: Apache-2.0
"""Which addresses are this machine's, and which a request may go to: public ones, with `local` ours, too."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from urllib.parse import urlsplit

from goodbot.base.worded import Worded

_TRANSLATED = ip_network("64:ff9b::/96")
"""An IPv4 address in it is reached through a gateway (NAT64)."""
_UNICAST = ip_network("2000::/3")
_OWN = tuple(
    map(
        ip_network,
        (
            *("127.0.0.0/8", "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16"),
            "100.64.0.0/10",
            "::1",
            "fc00::/7",
        ),
    )
)
"""This machine, private networks, and what VPNs use."""
_NEVER = tuple(
    map(
        ip_network,
        (
            *("169.254.0.0/16", "100.100.100.200", "168.63.129.16"),
            *("fe80::/10", "fd00:ec2::/32", "fd20:ce::254"),
        ),
    )
)
"""Where clouds give out their keys, and what is on the same cable."""


def is_literal(host: str) -> bool:
    """Whether a host of a URL is no name: also `2130706433`, `127.1` and `0x7f.1`, which the system takes."""
    last = host.rstrip(".").rpartition(".")[2]
    return ":" in host or last.isdigit() or last.lower().startswith("0x")


def is_here(host: str) -> bool:
    """Whether it is this machine that a host of a URL names, and nothing else."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def may_reach(address: str, *, local: bool) -> bool:
    """Whether a request may go there. Only the usual notation of an address is one."""
    try:
        ip = _meant(ip_address(address))
    except ValueError:
        return False
    if any(ip in network for network in _NEVER):
        return False
    if local and any(ip in network for network in _OWN):
        return True
    sixth = isinstance(ip, IPv6Address)
    return ip.is_global and not ip.is_multicast and not (sixth and (ip not in _UNICAST or ip.sixtofour))


def require_url(url: str, *, local: bool) -> None:
    """Raise ValueError, with a sentence about `url`, for what no request may go to, as far as it can be seen.

    What a name leads to is seen once it is connected to (`goodbot.base.outward`).
    """
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname or "", parts.port
    except ValueError:
        raise ValueError(Worded("url is no address: write it as https://HOST/PATH")) from None
    if not host or parts.scheme not in ("http", "https"):
        raise ValueError(Worded("url must be an address: write it as https://HOST/PATH"))
    if parts.scheme == "http" and not local:
        raise ValueError(Worded("url must begin with https://, or set local = true for your own network"))
    if parts.username is not None or parts.password is not None:
        raise ValueError(
            Worded("url holds a name or a password: take it out; each request is signed instead")
        )
    if is_literal(host) and not may_reach(host, local=local):
        wrong = "url leads to {host}: set local = true if that is your own network"
        if local:
            wrong = "url leads to {host}: no request goes there"
        raise ValueError(Worded(wrong, host=host))


def _meant(ip: IPv4Address | IPv6Address) -> IPv4Address | IPv6Address:
    """The IPv4 address that an IPv6 one stands for."""
    if ip in _TRANSLATED:
        return IPv4Address(int(ip) & 0xFFFFFFFF)
    return getattr(ip, "ipv4_mapped", None) or ip
