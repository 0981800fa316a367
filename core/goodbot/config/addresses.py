# SPDX-License-Identifier: Apache-2.0
"""Checks of the addresses in `[http]`."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import urlsplit

_NO_NAME = frozenset(" \t/:@?#\\")
"""In a name these would be another part of an address."""


def host_names(key: str, listed: Sequence[str]) -> None:
    """Raises ValueError for what is no name of a host."""
    if any(not name or _NO_NAME & set(name) for name in listed):
        raise ValueError(f'{key} are like "bot.example.org", without scheme and port')


def base_url(key: str, text: str) -> None:
    """Raises ValueError for what links cannot begin with."""
    if text and not _is_base_url(text):
        raise ValueError(f'{key} must be like "https://bot.example.org"')


def _is_base_url(text: str) -> bool:
    """Whether it is a scheme, a host and maybe a port, to which a path can be appended."""
    try:
        parts = urlsplit(text)
        host, port = parts.hostname or "", parts.port
    except ValueError:  # of a port that is no number
        return False
    whole = text == f"{parts.scheme}://{parts.netloc}" and parts.scheme in ("http", "https")
    return whole and bool(host) and port != 0 and not {" ", "@", "\\"} & set(parts.netloc)
