# SPDX-License-Identifier: Apache-2.0
"""E-mail addresses and public IP addresses in a text."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator

from goodbot.features.filters.plain import latin

_NAME, _HOST = 64, 253
"""The most characters of what stands before the @, and after it."""
_IN_NAME, _IN_HOST = frozenset("._%+-'"), frozenset(".-")
_NOBODY = frozenset(("git", "noreply", "no-reply", "you", "me", "user", "name", "someone", "somebody"))
"""Before the @ of what is an example, or no person's."""
_EXAMPLES = (
    ".example",
    ".invalid",
    ".test",
    ".localhost",
    ".local",
    *(f".example.{n}" for n in ("com", "net", "org")),
)
_FILES = ("png", "jpg", "jpeg", "gif", "svg", "webp")
"""Files have names like `icon@2x.png`."""
_IP = 45
"""The most characters of one."""
_IN_IP = re.compile("[0-9A-Fa-f:.]+")
_PUBLIC_6 = ipaddress.ip_network("2000::/3")


def email(text: str) -> bool:
    """Whether it holds one of somebody's; those that stand for any, like `me@example.org`, are none."""
    return any(_is_email(*parts) for parts in _around(text))


def _around(text: str) -> Iterator[tuple[str, str]]:
    """What stands before each @ and after it, as far as it may belong to an address."""
    at = text.find("@")
    while at >= 0:
        begin = end = at
        while begin > 0 and at - begin <= _NAME and _may(text[begin - 1], _IN_NAME):
            begin -= 1
        while end + 1 < len(text) and end - at <= _HOST and _may(text[end + 1], _IN_HOST):
            end += 1
        yield text[begin:at].lstrip(".'-"), text[at + 1 : end + 1].strip(".-")
        at = text.find("@", at + 1)


def _may(sign: str, others: frozenset[str]) -> bool:
    return sign.isalnum() or sign in others


def _is_email(name: str, host: str) -> bool:
    name, host = name.casefold(), host.casefold()
    if not 1 <= len(name) <= _NAME or len(host) > _HOST or name in _NOBODY or name[-1] == ".":
        return False
    *labels, last = host.split(".")
    written = last.isalpha() or last.startswith("xn--")
    if not all(labels) or not labels or len(last) < 2 or not written or last in _FILES:
        return False
    return not f".{host}".endswith(_EXAMPLES)


def ip(text: str) -> bool:
    """Whether it holds one that others can reach; those of home networks and of examples are none."""
    return any(_is_public(word) for word in _may_be_ips(text))


def _may_be_ips(text: str) -> Iterator[str]:
    """Words of digits, dots and colons, as short as an address is, and with nothing of a word around them."""
    for found in _IN_IP.finditer(text):
        begin, end = found.span()
        word, before, after = found[0], text[max(0, begin - 1) : begin], text[end : end + 1]
        if latin(before) or before == "_":  # of `Address:` the last letters are digits of base 16
            word = word.partition(":")[2]
        if len(word) <= _IP and not latin(after) and after != "_":
            yield word.strip(".:")


def _is_public(word: str) -> bool:
    if word.count(".") < 3 and word.count(":") < 2:
        return False
    host, _, port = word.partition(":")
    word = host if port.isdecimal() and host.count(".") == 3 else word
    try:
        found = ipaddress.ip_address(word)
    except ValueError:
        return False
    return found.is_global and not found.is_multicast and (found.version == 4 or found in _PUBLIC_6)
