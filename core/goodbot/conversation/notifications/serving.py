# SPDX-License-Identifier: Apache-2.0
"""What owners are told of versions that do not answer although they passed their gate."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

from goodbot.api.sentences import clause_of, version, words
from goodbot.api.texts import say
from goodbot.base.clock import ago
from goodbot.store import adapters, codec
from goodbot.store.adapters import AdapterRow
from goodbot.store.canaries import Trial

_DAY = 86400.0


Said = Callable[[str], str]
"""A text, by the language of who reads it."""


def unserved(rows: Sequence[AdapterRow], active: int) -> Iterator[tuple[str, Said]]:
    """`(subject, text)` of every version that has no effect on the model server."""
    for row in rows:
        if row.waits == adapters.UNSERVED and not row.tainted:
            yield f"unserved v{row.version}", partial(_unserved, row, active)


def _unserved(row: AdapterRow, active: int, language: str) -> str:
    name = version(active, language, begins=True)
    return say("unserved", language, version=row.version, why=clause_of(row.waits, language), other=name)


def ended(trial: Trial | None, now: float) -> Iterator[tuple[str, Said]]:
    """`(subject, text)` of a trial that has come to an end in the last day."""
    if trial is None or trial.ended_at is None or ago(trial.ended_at, now) >= _DAY:
        return
    if trial.state in ("passed", "lost"):
        yield f"canary v{trial.version}", partial(_tried, trial)


def _tried(trial: Trial, language: str) -> str:
    if trial.state == "passed":
        return say("trial_passed", language, version=trial.version)
    old = version(trial.against, language, begins=True)
    why = words(*codec.load_reasons(trial.reason), language=language)
    return say("trial_lost", language, version=trial.version, reason=why, other=old)
