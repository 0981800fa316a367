# SPDX-License-Identifier: Apache-2.0
"""When the model was away for a training, so that what was asked meanwhile is not taken for stale.

Stored, so that it holds across a crash. Only the last time counts.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

import aiosqlite

from goodbot.store import settings

_SWITCH = "away"
LONGEST = 6 * 3600.0
"""Seconds: a question is answered no later, whatever was trained."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Absence:
    """Seconds since the epoch. `until` None: it has not come back, or goodbot ended before it did."""

    since: float
    until: float | None = None

    def waited(self, asked: float, now: float) -> float:
        """Seconds that a question of `asked` has waited by now, beside the absence."""
        until = now if self.until is None else self.until
        end = min(until, self.since + LONGEST, now)
        return now - asked - max(0.0, end - max(self.since, asked))


async def begins(db: aiosqlite.Connection, now: float) -> None:
    """The model gives its memory to a training."""
    await settings.set_switch(db, _SWITCH, json.dumps([now, None]))


async def ends(db: aiosqlite.Connection, now: float) -> None:
    """It answers again."""
    last = await read(db)
    if last.until is None:
        await settings.set_switch(db, _SWITCH, json.dumps([last.since, now]))


async def read(db: aiosqlite.Connection) -> Absence:
    """The last one; one of no length where there was none."""
    since, until = json.loads(await settings.switch(db, _SWITCH) or "[0, 0]")
    return Absence(since=since, until=until)
