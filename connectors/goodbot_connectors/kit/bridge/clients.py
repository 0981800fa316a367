# SPDX-License-Identifier: Apache-2.0
"""Programs that may call us, by their tokens, of which only a hash is kept.

`home/connectors/<connector>/clients.json` (0600) holds name, hash, rights and age of each. The command
line writes it and a running daemon reads it again once it has changed, so that a token that was taken
away opens nothing from the next request on.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import secrets
import string
from collections import deque
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path

from goodbot.base import durable
from goodbot.base.clock import Clock, SystemClock
from goodbot.base.errors import ConfigError, UsageError
from goodbot.config.lock import changing

from goodbot_connectors.kit.fields import as_json, items
from goodbot_connectors.kit.fields import string as text_of

FILE = "clients.json"
PREFIX = "gb_"
"""What a token begins with, so that secret scanners and people know one."""
LENGTH = len(PREFIX) + 43
"""Characters of a token: 256 random bits behind the prefix."""
WRONG = 10
"""Wrong tokens within a minute, of everybody together; more are not even looked at."""
_SECONDS = 60.0
_LONGEST_NAME = 64
_NAME = frozenset(string.ascii_letters + string.digits + "._-")


@dataclass(frozen=True, kw_only=True, slots=True)
class ApiClient:
    """A program that may call us. It speaks as the person `name` of its connector."""

    name: str
    admin: bool = False
    """Whether it may pass administrative commands on, if its person is an owner."""
    created: float = 0.0
    """Seconds since the epoch."""


def create(home: Path, connector: str, name: str, *, admin: bool = False) -> str:
    """A fresh token for a program, shown this once; it replaces the one of the same name.

    Raises UsageError for a name that cannot be one, ConfigError when it cannot be stored.
    """
    if not name or len(name) > _LONGEST_NAME or not _NAME.issuperset(name):
        raise UsageError(
            f"{name[:40]!r} cannot name a client: take letters, digits, `.`, `_` and `-`, at most "
            f"{_LONGEST_NAME} of them"
        )
    token = PREFIX + secrets.token_urlsafe(32)
    client = ApiClient(name=name, admin=admin, created=SystemClock().now())
    path = _path(home, connector)
    with _changing(path) as known:
        kept = {digest: one for digest, one in known.items() if one.name != name}
        _write(path, {**kept, _hash(token): client})
    return token


def remove(home: Path, connector: str, name: str) -> bool:
    """Let a program in no more; False if there was none of that name. Raises ConfigError."""
    path = _path(home, connector)
    if not path.exists():
        return False
    with _changing(path) as known:
        kept = {digest: one for digest, one in known.items() if one.name != name}
        if len(kept) == len(known):
            return False
        _write(path, kept)
    return True


def listed(home: Path, connector: str) -> list[ApiClient]:
    """Who may call, by name. Raises ConfigError."""
    return sorted(_read(_path(home, connector)).values(), key=lambda client: client.name)


class Clients:
    """The clients of one connector, as a running daemon asks for them at every request."""

    def __init__(self, state_dir: Path, clock: Clock | None = None) -> None:
        """`state_dir` is the connector's own directory (`ConnectorHost.state_dir`)."""
        self._path = state_dir / FILE
        self._clock = clock or SystemClock()
        self._known: dict[str, ApiClient] = {}
        self._seen: tuple[int, int, int] | None = None
        self._wrong: deque[float] = deque(maxlen=WRONG)

    def who(self, token: str) -> ApiClient | None:
        """Whose token this is; None for nobody's. Raises ConfigError for a file that cannot be read.

        What is looked up is the token's hash. How long that takes tells nothing of the right one:
        nobody can steer the hash of a guess.
        """
        self._refresh()
        if len(token) != LENGTH or not token.isascii():
            return None
        return self._known.get(_hash(token))

    def wrong(self) -> float:
        """Count a wrong token. Seconds that guessing has to wait by now; 0 while it need not.

        A right token never waits: 256 bits cannot be guessed, and nobody is to lock its owner out.
        """
        now = self._clock.monotonic()
        if len(self._wrong) == WRONG and (wait := self._wrong[0] + _SECONDS - now) > 0:
            return wait
        self._wrong.append(now)
        return 0.0

    def _refresh(self) -> None:
        try:
            info = os.stat(self._path)
            seen = (info.st_mtime_ns, info.st_size, info.st_ino)
        except FileNotFoundError:
            seen = None
        if seen != self._seen:
            self._known = _read(self._path) if seen else {}
            self._seen = seen


def _path(home: Path, connector: str) -> Path:
    return home / "connectors" / connector / FILE


def _hash(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()


@contextlib.contextmanager
def _changing(path: Path) -> Generator[dict[str, ApiClient]]:
    """What `_read` tells, while nobody else changes it. Raises ConfigError."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with changing(path.parent):
            yield _read(path)
    except OSError as error:
        raise ConfigError(f"cannot be written: {error.strerror}", path=path) from error


def _read(path: Path) -> dict[str, ApiClient]:
    """The clients by the hashes of their tokens. Raises ConfigError."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        with os.fdopen(descriptor, encoding="utf-8") as file:
            kept = as_json(json.load(file))
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise ConfigError(f"cannot be read: {error.strerror}", path=path) from error
    except ValueError as error:
        raise ConfigError("is no list of clients: remove it, and add them again", path=path) from error
    return {
        text_of(one, "sha256"): ApiClient(
            name=text_of(one, "name"),
            admin=one.get("admin") is True,
            created=float(one["created"]) if isinstance(one.get("created"), (int, float)) else 0.0,
        )
        for one in items(kept, "clients")
    }


def _write(path: Path, known: dict[str, ApiClient]) -> None:
    """Replace the file in one step, readable by its owner alone. Raises OSError."""
    lines = [
        {"name": one.name, "admin": one.admin, "created": one.created, "sha256": digest}
        for digest, one in sorted(known.items(), key=lambda item: item[1].name)
    ]
    durable.replace(path, json.dumps({"clients": lines}, indent=1).encode())
