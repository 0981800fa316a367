# SPDX-License-Identifier: Apache-2.0
"""What a version and a run are now, in words: whatever prints a state takes it from here. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from goodbot.base.suggest import version_name
from goodbot.store.adapters import AdapterRow
from goodbot.store.runs import Run

_ENDED = {
    "running": "under way, or interrupted",
    "activated": "it passed the safety check",
    "released": "what it trained on is free again",
    "superseded": "ended without a version",
}
"""`refused` and `failed` are words that everybody knows."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Now:
    """What states depend on beside their row."""

    model: str
    """The base model that answers, or whose version does."""
    active: int
    """Its version that the pointer names; 0: none."""
    off: bool = False


def of_version(row: AdapterRow, now: Now) -> str:
    """What follows its name: `answers`, `waits: …`, `is not to be used: …`."""
    gone = "; its files are removed" if row.erased_at is not None else ""
    if row.tainted and row.version == now.active:
        return f"answers until it is replaced: {row.tainted}{gone}"
    if row.tainted:
        return f"is not to be used: {row.tainted}{gone}"
    if row.version == now.active:
        return "answers after `resume`: goodbot is paused" if now.off else "answers"
    if gone:
        return f"does not answer{gone}"
    if row.model != now.model:
        return f"belongs to {row.model}"
    if row.waits:
        return f"waits: {row.waits}"
    return f"does not answer; `rollback {row.version}` lets it"


def answering(version: int, *, off: bool, begins: bool = False) -> str:
    """`v3 answers now`; while goodbot is paused, when it will. `begins`: with it a sentence begins."""
    name = version_name(version, begins=begins)
    return f"{name} answers {'after `resume`: goodbot is paused' if off and version else 'now'}"


def of_run(run: Run, rows: Sequence[AdapterRow], now: Now, changed: str = "") -> str:
    """What came of it: what its version is now, or why there is none; `changed` says what it has changed."""
    row = next((row for row in reversed(rows) if row.run == run.id), None)
    if row is None or run.state not in ("activated", "released"):
        word = _ENDED.get(run.state, run.state)
        return f"{word}: {run.reason}" if run.reason else word
    told = f"v{row.version} {of_version(row, now)}"
    if run.state != "activated":
        return told
    return f"{told}. {changed}{' ' if changed else ''}Safety check: {run.reason}"


def why_the_base(rows: Sequence[AdapterRow], last: Run | None, now: Now) -> tuple[str, AdapterRow | None]:
    """Why the base model answers, and the version that waits to answer in its place."""
    own = [row for row in rows if row.model == now.model]
    if not own:
        told = "Nothing is trained yet: the base model answers."
        if last is not None and last.state in ("refused", "failed"):
            told += f" The last training: {of_run(last, rows, now).rstrip('.')}."
        return told, None
    usable = [row for row in own if not row.tainted and row.erased_at is None]
    waiting = next((row for row in reversed(usable) if row.waits), None)
    newest = waiting or (usable or own)[-1]
    return f"The base model answers. v{newest.version} {of_version(newest, now)}.", waiting
