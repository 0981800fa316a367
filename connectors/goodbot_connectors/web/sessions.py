# SPDX-License-Identifier: Apache-2.0
"""Who is signed in. A browser holds a random id in a cookie, the store only its hash."""

from __future__ import annotations

import asyncio
import hashlib
import json
import secrets
from dataclasses import dataclass

from goodbot.api.connector import ConnectorHost

from goodbot_connectors.kit.fields import as_json, string

_SESSIONS = "sessions"
_DAY = 86_400.0
_MOST = 50
"""Browsers in which one person is signed in; the oldest is signed out."""


@dataclass(frozen=True, kw_only=True, slots=True)
class BrowserSession:
    """One browser of one person. `made` is seconds since the epoch."""

    user: str
    made: float


class BrowserSessions:
    """Signs in, looks up, signs out; each change is stored before it holds."""

    def __init__(self, host: ConnectorHost, days: int) -> None:
        self._host = host
        self.seconds = days * _DAY
        self._known: dict[str, BrowserSession] = {}
        self._lock = asyncio.Lock()

    async def load(self) -> None:
        """Read those that were signed in when the last process ended."""
        kept = as_json(json.loads(await self._host.get(_SESSIONS) or "{}"))
        now = self._host.clock.now()  # one from later was begun before our clock was set back
        self._known = {
            digest: BrowserSession(
                user=string(as_json(one), "user"), made=min(_seconds(as_json(one)["made"]), now)
            )
            for digest, one in kept.items()
        }

    async def begin(self, user: str, *, instead: str = "") -> str:
        """Sign somebody in; the id for the cookie, 256 bits. Raises StoreError.

        `instead` is the id that this browser had until now: it ends.
        """
        id_ = secrets.token_urlsafe(32)
        async with self._lock:
            own = sorted((one.made, digest) for digest, one in self._known.items() if one.user == user)
            gone = {digest for _, digest in own[: max(0, len(own) - _MOST + 1)]}
            gone.add(name(instead))
            rest = {digest: one for digest, one in self._known.items() if digest not in gone}
            session = BrowserSession(user=user, made=self._host.clock.now())
            await self._store({**rest, name(id_): session})
        return id_

    def user(self, id_: str) -> str:
        """Whose session this is; empty for none, or for one that is too old."""
        found = self._known.get(name(id_)) if id_ else None
        return found.user if found and self._holds(found) else ""

    async def end(self, id_: str) -> None:
        """Sign one browser out. Raises StoreError."""
        async with self._lock:
            await self._store({d: one for d, one in self._known.items() if d != name(id_)})

    async def forget(self, user: str) -> None:
        """Sign a person out everywhere. Raises StoreError."""
        async with self._lock:
            if any(one.user == user for one in self._known.values()):
                await self._store({d: one for d, one in self._known.items() if one.user != user})

    async def end_all(self) -> None:
        """Sign everybody out. Raises StoreError."""
        async with self._lock:
            await self._store({})

    def _holds(self, session: BrowserSession) -> bool:
        return self._host.clock.now() < session.made + self.seconds

    async def _store(self, sessions: dict[str, BrowserSession]) -> None:
        steady = self._host.steady
        kept = {digest: one for digest, one in sessions.items() if self._holds(one) or not steady}
        dumped = {digest: {"user": one.user, "made": one.made} for digest, one in kept.items()}
        await self._host.set(_SESSIONS, json.dumps(dumped))
        self._known = kept


def name(id_: str) -> str:
    """What a session is called where it is kept: the hash of its id."""
    return hashlib.sha256(id_.encode(errors="surrogatepass")).hexdigest()


def _seconds(value: object) -> float:
    return float(value) if isinstance(value, (int, float)) else 0.0
