# SPDX-License-Identifier: Apache-2.0
"""How a run ended: what is told and stored of it."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import aiosqlite

from goodbot.api.sentences import Reason, because, ended, in_words, words
from goodbot.api.server import BASE
from goodbot.base.errors import GoodbotError, TrainingError, unexpected
from goodbot.base.worded import said_by
from goodbot.store import quarantined, runs

logger = logging.getLogger(__name__)

NO_VERDICT = because("kept_no_verdict")


@dataclass(frozen=True, kw_only=True, slots=True)
class RunOutcome:
    """How a run ended. `version` is the new adapter when `state` is `activated`."""

    run: int
    state: str
    ending: tuple[Reason, ...]
    """Why it ended so."""
    version: int = BASE
    kind: str = ""
    """Of a failure: `TrainingError.kind`."""

    @property
    def reason(self) -> str:
        """`ending` in English."""
        return words(*self.ending)


def verdict_of(gate: Mapping[str, Any], left: int) -> tuple[Reason, ...]:
    """What the gate has said, as codes where its trainer gives them; and that answers were `left`."""
    said = tuple(Reason(*one) for one in gate.get("said", ()))
    if not said and "reason" in gate:
        text = str(gate["reason"])
        said = in_words(ended(text) if text and left > 0 else text)
    elif not said:
        said = (because("check_no_verdict") if left > 0 else NO_VERDICT,)
    return (*said, because("answers_wait", answers=left)) if left > 0 else said


def failed(run: int, error: Exception) -> RunOutcome:
    """What a run came to that something has broken; what nobody foresaw is in the log."""
    if isinstance(error, GoodbotError):
        kind = error.kind if isinstance(error, TrainingError) else ""
        return RunOutcome(run=run, state="failed", ending=in_words(said_by(error)), kind=kind)
    logger.error("run %d", run, exc_info=error, extra={"run": run})
    return RunOutcome(run=run, state="failed", ending=in_words(unexpected(error)))


async def end(
    db: aiosqlite.Connection, outcome: RunOutcome, gate: Mapping[str, Any], now: float
) -> RunOutcome:
    """End a run with it, unless that has ended; returns how it did. `gate`: what that has said."""
    if not await runs.finish(db, outcome.run, outcome.state, outcome.ending, gate, now):
        live = await runs.live(db, outcome.run)  # it was stopped in the moment in which that happened
        return outcome if live is None else replace(outcome, state="activated", ending=live)
    if outcome.kind == "oom":
        await quarantined.add_all(db, outcome.run, "oom", outcome.reason, now)
    return outcome
