# SPDX-License-Identifier: Apache-2.0
"""`[store]`: where what was said and rated is kept."""

from __future__ import annotations

import os
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Annotated, NoReturn
from urllib.parse import parse_qsl, unquote, urlsplit

from goodbot.base.worded import Worded

_SECRET = {"password", "sslpassword", "oauth_client_secret", "scram_client_key", "scram_server_key"}


def _elsewhere(netloc: str, options: dict[str, str]) -> bool:
    """Whether it leads, or may lead, to another host than this: no socket, and no loopback."""
    if options.get("service", os.environ.get("PGSERVICE")):
        return True  # a file says where
    told = [unquote(netloc.rpartition("@")[2]), options.get("host", ""), options.get("hostaddr", "")]
    if not any(told):
        told = [os.environ.get("PGHOST", ""), os.environ.get("PGHOSTADDR", "")]
    return not all(_here(host) for hosts in told for host in hosts.split(","))


def _here(host: str) -> bool:
    """Whether a host, as a url has it, is a socket or loopback."""
    name = host[1:].partition("]")[0] if host.startswith("[") else host
    name = name if name.startswith(("/", "@")) or name.count(":") > 1 else name.partition(":")[0]
    if name in ("", "localhost") or name.startswith(("/", "@")):
        return True
    try:
        return ip_address(name).is_loopback
    except ValueError:
        return False


def _database(key: str, text: str) -> None:
    """Raises ValueError for what leads to no database, or says a password."""
    if not text:
        return
    try:
        parts = urlsplit(text, allow_fragments=False)  # libpq knows none, either
        options = dict(parse_qsl(parts.query))
        secret = bool(parts.password) or not _SECRET.isdisjoint(options)
        whole = parts.scheme in ("postgresql", "postgres") and bool(parts.path.strip("/"))
    except ValueError:
        return _refuse(key)
    if secret:
        told = "{key} holds a password: put it into ~/.pgpass or PGPASSWORD, and take it out of here"
        raise ValueError(Worded(told, key=key))
    if not whole or " " in text:
        _refuse(key)
    if not (options.get("sslmode") or os.environ.get("PGSSLMODE")) and _elsewhere(parts.netloc, options):
        open_ = "{key} leads to another host, and says nothing of TLS: add `?sslmode=verify-full` to it"
        raise ValueError(Worded(open_, key=key))


def _refuse(key: str) -> NoReturn:
    raise ValueError(Worded('{key} must be like "postgresql://bot@db.example.org/goodbot"', key=key))


@dataclass(frozen=True, kw_only=True, slots=True)
class StoreConfig:
    """`[store]`: where all of it is, if not in a file."""

    url: Annotated[str, _database] = ""
    """A PostgreSQL database for all that is stored (`postgresql://bot@db.example.org/goodbot`), without its
    password; empty: a file here."""
