# SPDX-License-Identifier: Apache-2.0
"""The sessions that are open, over a restart: one small value of the host's each."""

from __future__ import annotations

import json

from goodbot.api.connector import ConnectorHost
from goodbot.base.clock import ago

from goodbot_connectors.codex.session import Session, dump, load
from goodbot_connectors.kit.fields import as_json

MOST = 50
_INDEX = "sessions"
_DAY = 86_400.0


class Sessions:
    """Sessions by Codex' own ids, the newest `MOST`, none that nobody has used for `days`."""

    def __init__(self, host: ConnectorHost, days: int) -> None:
        self._host, self._days = host, days
        self._used: dict[str, float] = {}
        """When each was used, about: exact within a day."""
        self._known: dict[str, Session] = {}

    async def start(self) -> None:
        """Read which there are; those that are too old go."""
        kept = as_json(json.loads(await self._host.get(_INDEX) or "{}"))
        self._known.clear()
        self._used = {name: float(at) for name, at in kept.items() if isinstance(at, (int, float))}
        await self._drop([])

    async def get(self, name: str) -> Session:
        """What is known of a session; of an unknown one nothing."""
        if name not in self._known:
            known = name in self._used
            self._known[name] = load(await self._host.get(_key(name)) or "") if known else Session()
        return self._known[name]

    async def put(self, name: str, session: Session) -> None:
        """Keep it; returns after the commit. Raises StoreError, and then it is as it was."""
        now = self._host.clock.now()
        if name not in self._used or ago(self._used[name], now) > _DAY:
            await self._drop([(name, now)])
        await self._host.set(_key(name), dump(session))
        self._known[name] = session

    async def forget(self) -> None:
        """Keep nothing of any. Raises StoreError; then it is to be called again."""
        for name in [*self._used]:
            await self._host.set(_key(name), "") if await self._host.get(_key(name)) else None
            self._known.pop(name, None)
            self._used.pop(name)
        await self._store()

    async def _drop(self, fresh: list[tuple[str, float]]) -> None:
        """Note those that are used now, and forget the oldest and those that are too old."""
        before, now = dict(self._used), self._host.clock.now()
        for name, at in fresh:
            self._used.pop(name, None)
            self._used[name] = at
        self._used = {name: min(at, now) for name, at in self._used.items()}  # it may have been set back
        oldest = now - self._days * _DAY if self._host.steady else 0.0
        newest = [*self._used][-MOST:]
        gone = [name for name, at in self._used.items() if at < oldest or name not in newest]
        for name in gone:
            if await self._host.get(_key(name)):
                await self._host.set(_key(name), "")
            self._known.pop(name, None)
            del self._used[name]
        if self._used != before:
            await self._store()

    async def _store(self) -> None:
        if self._used or await self._host.get(_INDEX):
            await self._host.set(_INDEX, json.dumps(self._used) if self._used else "")


def _key(name: str) -> str:
    return f"session:{name}"
