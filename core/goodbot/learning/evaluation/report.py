# SPDX-License-Identifier: Apache-2.0
"""What ratings and choices add up to, for `status` and the weekly digest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from goodbot.api.sentences import version
from goodbot.api.texts import beside, explained, percent, say
from goodbot.base.intervals import wilson
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

    def lines(self, language: str = "") -> list[str]:
        """For owners."""
        said = [accepted(one, language) for one in self.accepted]
        said += chosen(self.chosen[:1], language)
        if self.waiting is not None:
            key = "version_waits" if self.waiting.held else "version_compared"
            how = prepared(self.waiting, self.later, language)
            said.append(say(key, language, name=version(self.waiting.new, language), how=how))
        return said


def prepared(question: Comparison, later: str, language: str = "") -> str:
    """How far the question is: `compare` once it is asked."""
    if question.state == "asking":
        return "`compare`"
    return say("answers_unwritten" if later else "answers_written", language, why=later)


async def of(store: Store, pool: Pool, waiting: Comparison | None, later: str) -> Report:
    """As things stand now; of the open question the caller knows."""
    return Report(
        accepted=await store.read(lambda db: acceptance.by_version(db, pool, newest=_NEWEST)),
        chosen=await store.read(lambda db: comparisons.sums(db, pool)),
        waiting=waiting,
        later=later,
    )


def accepted(one: Acceptance, language: str = "") -> str:
    """`v7: 32 of 41 rated answers good (63 to 88 %)`, with its 95 % interval where that says anything."""
    low, high = wilson(one.good, one.rated)
    liked = say("rated_good", language, good=one.good, rated=one.rated)
    if one.rated >= ENOUGH:
        between = say("from_to", language, low=percent(low, language), high=percent(high, language))
        liked = beside(liked, between, language)
    return explained(version(one.version, language), liked, language)


def chosen(found: Sequence[Sum], language: str = "") -> list[str]:
    """What was chosen, a line a comparison."""
    said = [summed(one.old, one.new, one.tally, language) for one in found]
    return [say("asked_blind", language, told=told) for told in said]


def _with_interval(one: Acceptance) -> dict[str, Any]:
    low, high = wilson(one.good, one.rated)
    return {**asdict(one), "low": low, "high": high}
