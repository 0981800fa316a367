# SPDX-License-Identifier: Apache-2.0
"""What owners are told of versions that do not answer although they passed their gate."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from goodbot.base.suggest import version_name
from goodbot.store import adapters
from goodbot.store.adapters import AdapterRow
from goodbot.store.canaries import Trial

_DAY = 86400.0


def unserved(rows: Sequence[AdapterRow], active: int) -> Iterator[tuple[str, str]]:
    """`(subject, text)` of every version that has no effect on the model server."""
    for row in rows:
        if row.waits == adapters.UNSERVED and not row.tainted:
            yield (
                f"unserved v{row.version}",
                f"v{row.version} does not answer: {row.waits}. "
                f"{version_name(active, begins=True)} does. Trainings go on from it; "
                f"`/rl rollback {row.version}` tries it again once the server is put right.",
            )


def ended(trial: Trial | None, now: float) -> Iterator[tuple[str, str]]:
    """`(subject, text)` of a trial that has come to an end in the last day."""
    if trial is None or trial.ended_at is None or now - trial.ended_at >= _DAY:
        return
    old = version_name(trial.against, begins=True)
    text = {
        "passed": f"v{trial.version} has stood its trial, and answers everybody now.",
        "lost": f"v{trial.version} is taken back: on its share of the conversations it was rated worse "
        f"({trial.reason}). {old} goes on answering everybody; what v{trial.version} learnt is not "
        "trained again.",
    }.get(trial.state, "")
    if text:
        yield f"canary v{trial.version}", text
