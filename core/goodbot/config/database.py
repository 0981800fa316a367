# SPDX-License-Identifier: Apache-2.0
"""`[store]`: where what was said and rated is kept."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated
from urllib.parse import parse_qsl, urlsplit

from goodbot.base.worded import Worded

_SECRET = {"password", "sslpassword"}


def _database(key: str, text: str) -> None:
    """Raises ValueError for what leads to no database, or says a password."""
    if not text:
        return
    try:
        parts = urlsplit(text)
        secret = bool(parts.password) or not _SECRET.isdisjoint(dict(parse_qsl(parts.query)))
        whole = parts.scheme in ("postgresql", "postgres") and bool(parts.path.strip("/"))
    except ValueError:
        secret, whole = False, False
    if secret:
        told = "{key} holds a password: put it into ~/.pgpass or PGPASSWORD, and take it out of here"
        raise ValueError(Worded(told, key=key))
    if not whole or " " in text:
        raise ValueError(Worded('{key} must be like "postgresql://bot@db.example.org/goodbot"', key=key))


@dataclass(frozen=True, kw_only=True, slots=True)
class StoreConfig:
    """`[store]`: where all of it is, if not in a file."""

    url: Annotated[str, _database] = ""
    """A PostgreSQL database for all that is stored (`postgresql://bot@db.example.org/goodbot`), without its
    password; empty: a file here."""
