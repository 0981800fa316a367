# SPDX-License-Identifier: Apache-2.0
"""What a version and a run are now, in words: whatever prints a state takes it from here. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from goodbot.api.sentences import brief, clause, clause_of, words
from goodbot.api.sentences import version as name_of
from goodbot.api.texts import ended, explained, joined, pauses, say
from goodbot.store.adapters import AdapterRow
from goodbot.store.runs import Run


@dataclass(frozen=True, kw_only=True, slots=True)
class Now:
    """What states depend on beside their row."""

    model: str
    """The base model that answers, or whose version does."""
    active: int
    """Its version that the pointer names; 0: none."""
    off: bool = False


def of_version(row: AdapterRow, now: Now, language: str = "") -> str:
    """What follows its name: `answers`, `waits: …`, `is not to be used: …`."""
    gone = say("state_gone", language) if row.erased_at is not None else ""
    if row.tainted:
        key = "state_replaced" if row.version == now.active else "state_withdrawn"
        return pauses(language, say(key, language, why=clause_of(row.tainted, language)), gone)
    if row.version == now.active:
        return say("state_paused" if now.off else "state_answers", language)
    if gone:
        return pauses(language, say("state_silent", language), gone)
    if row.model != now.model:
        return say("state_other", language, model=row.model)
    if row.waits:
        return say("state_waits", language, why=clause_of(row.waits, language))
    return say("state_back", language, version=row.version)


def answering(version: int, *, off: bool, begins: bool = False, language: str = "") -> str:
    """`v3 answers now`; while goodbot is paused, when it will. `begins`: with it a sentence begins."""
    name = name_of(version, language, begins=begins)
    return say("answers_resumed" if off and version else "answers_now", language, name=name)


def of_run(
    run: Run,
    rows: Sequence[AdapterRow],
    now: Now,
    changed: str = "",
    language: str = "",
    *,
    details: bool = False,
) -> str:
    """Say what came of a run: what its version is now, or why there is none.

    Args:
        run: The run.
        rows: The versions.
        now: What answers.
        changed: What it has changed, as a sentence; may be empty.
        language: What the reader reads.
        details: Whether a verdict is told with all figures.

    Returns:
        One line.
    """
    row = next((row for row in reversed(rows) if row.run == run.id), None)
    if row is None or run.state not in ("activated", "released"):
        word, why = say(f"run_{run.state}", language), words(*run.ending, language=language)
        return explained(word, why, language) if why else word
    told = f"v{row.version} {of_version(row, now, language)}"
    if run.state != "activated":
        return told
    verdict = run.ending if details else brief(run.ending)
    check = say("safety_check", language, reason=words(*verdict, language=language))
    return joined(language, ended(told, language), changed, check)


def why_the_base(
    rows: Sequence[AdapterRow], last: Run | None, now: Now, language: str = ""
) -> tuple[str, AdapterRow | None]:
    """Why the base model answers, and the version that waits to answer in its place."""
    own = [row for row in rows if row.model == now.model]
    if not own:
        told = say("nothing_trained", language)
        if last is not None and last.state in ("refused", "failed"):
            came = clause(of_run(last, rows, now, language=language))
            told = joined(language, told, say("last_training", language, told=came))
        return told, None
    usable = [row for row in own if not row.tainted and row.erased_at is None]
    waiting = next((row for row in reversed(usable) if row.waits), None)
    newest = waiting or (usable or own)[-1]
    told = ended(f"v{newest.version} {of_version(newest, now, language)}", language)
    return joined(language, say("base_answers", language), told), waiting
