# SPDX-License-Identifier: Apache-2.0
"""What ratings and choices add up to, for `status` and the weekly digest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from goodbot.base.intervals import wilson
from goodbot.base.suggest import version_name
from goodbot.learning.evaluation.blind import summed
from goodbot.store import Store, acceptance, comparisons
from goodbot.store.acceptance import Acceptance
from goodbot.store.comparisons import Comparison, Sum
from goodbot.store.training_pool import Pool

ENOUGH = 10
"""Rated answers below which an interval is as wide as not knowing."""
_NEWEST = 1000
"""Rated answers that are looked at: an open terminal asks for `status` all the time."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Report:
    """The last versions' ratings and choices, and the question that is open."""

    accepted: Sequence[Acceptance]
    chosen: Sequence[Sum]
    waiting: Comparison | None
    later: str = ""
    """Why its answers are not being written now; empty: they are, or are there."""

    def data(self) -> dict[str, Any]:
        """For JSON: `acceptance` by version with its 95 % interval, `choices` and `comparison`."""
        return {
            "acceptance": [_with_interval(one) for one in self.accepted],
            "choices": [asdict(one) for one in self.chosen],
            "comparison": {**asdict(self.waiting), "later": self.later} if self.waiting else None,
        }

    def lines(self) -> list[str]:
        """For owners."""
        said = [*map(accepted, self.accepted), *chosen(self.chosen[:1])]
        if self.waiting is not None:
            new = version_name(self.waiting.new)
            waits = f"{new} waits for what its owners say" if self.waiting.held else f"{new} is compared"
            said.append(f"{waits}: {prepared(self.waiting, self.later)}")
        return said


def prepared(question: Comparison, later: str) -> str:
    """How far the question is: `compare` once it is asked."""
    if question.state == "asking":
        return "`compare`"
    return f"its answers are not written yet: {later}" if later else "its answers are being written"


async def of(store: Store, pool: Pool, waiting: Comparison | None, later: str) -> Report:
    """As things stand now; of the open question the caller knows."""
    return Report(
        accepted=await store.read(lambda db: acceptance.by_version(db, pool, newest=_NEWEST)),
        chosen=await store.read(lambda db: comparisons.sums(db, pool)),
        waiting=waiting,
        later=later,
    )


def accepted(one: Acceptance) -> str:
    """`v7: 32 of 41 rated answers good (63 to 88 %)`, with its 95 % interval where that says anything."""
    low, high = wilson(one.good, one.rated)
    answers = "answer" if one.rated == 1 else "answers"
    liked = f"{one.good} of {one.rated} rated {answers} good"
    between = f" ({low:.0%} to {high:.0%})" if one.rated >= ENOUGH else ""
    return f"{version_name(one.version)}: {liked}{between}"


def chosen(found: Sequence[Sum]) -> list[str]:
    """What was chosen, a line a comparison."""
    return [f"asked blind: {summed(one.old, one.new, one.tally)}" for one in found]


def _with_interval(one: Acceptance) -> dict[str, Any]:
    low, high = wilson(one.good, one.rated)
    return {**asdict(one), "low": low, "high": high}
