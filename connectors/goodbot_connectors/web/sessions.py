# SPDX-License-Identifier: Apache-2.0
"""Who is signed in. A browser holds a random id in a cookie, the store only its hash."""

from __future__ import annotations

import asyncio
import hashlib
import json
import secrets
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace

from goodbot.api.connector import ConnectorHost

from goodbot_connectors.kit.fields import Json, as_json, string

_SESSIONS = "sessions"
_DAY = 86_400.0
_MOST = 50
"""Browsers in which one person is signed in; the oldest is signed out."""


_MOST_PUSHED = 10
"""Of these browsers, those that are told while no page is open (`pushing`)."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PushAddress:
    """Where a browser takes messages while no page is open, and what they are encrypted for."""

    endpoint: str
    key: str
    secret: str
    language: str
    contact: str
    """Our own address, which the service is told."""
    told: float = 0.0
    """When the last message was taken, in seconds since the epoch."""


@dataclass(frozen=True, kw_only=True, slots=True)
class BrowserSession:
    """One browser of one person. `made` is seconds since the epoch."""

    user: str
    made: float
    push: PushAddress | None = None
    """It is gone with the session, so nobody is told who has signed out or is forgotten."""


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
                user=string(as_json(one), "user"),
                made=min(_seconds(as_json(one)["made"]), now),
                push=_push(as_json(as_json(one).get("push"))),
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

    def push(self, id_: str) -> PushAddress | None:
        """Where this browser takes messages, if its person wants them there."""
        return self._known[name(id_)].push if self.user(id_) else None

    async def set_push(self, id_: str, push: PushAddress) -> None:
        """Tell this browser; of too many of one person the oldest is told nothing more. Raises StoreError."""
        async with self._lock:
            user, digest = self.user(id_), name(id_)
            if not user:  # signed out meanwhile
                return
            all_ = self.pushed()
            own = sorted((one.made, d) for d, one in all_.items() if one.user == user and d != digest)
            gone = {d for _, d in own[: max(0, len(own) - _MOST_PUSHED + 1)]}
            gone |= {d for d, one in all_.items() if one.push and one.push.endpoint == push.endpoint}
            told = max((one.push.told for one in all_.values() if one.push and one.user == user), default=0.0)
            rest = {d: replace(one, push=None) if d in gone else one for d, one in self._known.items()}
            mine = replace(self._known[digest], push=replace(push, told=told))
            await self._store({**rest, digest: mine})

    async def change_push(self, changes: Mapping[str, tuple[PushAddress, PushAddress | None]]) -> None:
        """Put the second in the place of the first, where that is still what a browser has.

        By the name of the session; None: that browser is told nothing more. Raises StoreError.
        """
        async with self._lock:
            known = {d: one for d, one in self._known.items() if d in changes and one.push == changes[d][0]}
            if known:
                changed = {d: replace(one, push=changes[d][1]) for d, one in known.items()}
                await self._store({**self._known, **changed})

    def pushed(self) -> dict[str, BrowserSession]:
        """The browsers that are told while no page is open, by the name of the session."""
        return {digest: one for digest, one in self._known.items() if one.push and self._holds(one)}

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
        dumped = {digest: asdict(one) for digest, one in kept.items()}
        await self._host.set(_SESSIONS, json.dumps(dumped))
        self._known = kept


def name(id_: str) -> str:
    """What a session is called where it is kept: the hash of its id."""
    return hashlib.sha256(id_.encode(errors="surrogatepass")).hexdigest()


def _seconds(value: object) -> float:
    return float(value) if isinstance(value, (int, float)) else 0.0


def _push(kept: Json) -> PushAddress | None:
    if not kept:
        return None
    texts = {key: string(kept, key) for key in ("endpoint", "key", "secret", "language", "contact")}
    return PushAddress(**texts, told=_seconds(kept.get("told")))
