"""What ratings and choices add up to, for `status` and the weekly digest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from goodbot.comparing.blind import name, summed
from goodbot.intervals import wilson
from goodbot.store import Store, acceptance, comparisons
from goodbot.store.acceptance import Acceptance
from goodbot.store.claimable import Pool
from goodbot.store.comparisons import Comparison, Sum

_NEWEST = 1000
"""Rated answers that are looked at: an open terminal asks for `status` all the time."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Report:
    """The last versions' ratings and choices, and the question that is open."""

    accepted: Sequence[Acceptance]
    chosen: Sequence[Sum]
    waiting: Comparison | None

    def data(self) -> dict[str, Any]:
        """For JSON: `acceptance` by version with its 95 % interval, `choices` and `comparison`."""
        return {
            "acceptance": [_with_interval(one) for one in self.accepted],
            "choices": [asdict(one) for one in self.chosen],
            "comparison": asdict(self.waiting) if self.waiting else None,
        }

    def lines(self) -> list[str]:
        """For owners."""
        said = [*map(accepted, self.accepted), *chosen(self.chosen[:1])]
        if self.waiting is not None:
            new = name(self.waiting.new)
            waits = (
                f"{new} waits for what its owners say"
                if self.waiting.held
                else f"{new} is compared"
            )
            asking = self.waiting.state == "asking"
            said.append(f"{waits}: {'`compare`' if asking else 'its answers are being written'}")
        return said


async def of(store: Store, pool: Pool) -> Report:
    """As things stand now."""
    return Report(
        accepted=await store.read(lambda db: acceptance.by_version(db, pool, newest=_NEWEST)),
        chosen=await store.read(lambda db: comparisons.sums(db, pool)),
        waiting=await store.read(lambda db: comparisons.current(db, pool)),
    )


def accepted(one: Acceptance) -> str:
    """`v7: 32 of 41 rated answers good (63 to 88 %)`, with its 95 % interval."""
    low, high = wilson(one.good, one.rated)
    answers = "answer" if one.rated == 1 else "answers"
    return f"{name(one.version)}: {one.good} of {one.rated} rated {answers} good ({low:.0%} to {high:.0%})"


def chosen(found: Sequence[Sum]) -> list[str]:
    """What was chosen, a line a comparison."""
    return [f"asked blind: {summed(one.old, one.new, one.tally)}" for one in found]


def _with_interval(one: Acceptance) -> dict[str, Any]:
    low, high = wilson(one.good, one.rated)
    return {**asdict(one), "low": low, "high": high}
