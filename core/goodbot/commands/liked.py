# SPDX-License-Identifier: Apache-2.0
"""How the answers of each version were rated."""

from __future__ import annotations

from dataclasses import dataclass

from goodbot.api.texts import percent, say
from goodbot.base.intervals import wilson
from goodbot.commands.base import Call
from goodbot.learning.evaluation.report import ENOUGH
from goodbot.store import acceptance
from goodbot.store.training_pool import Pool

_ALL = 1_000_000


@dataclass(frozen=True, kw_only=True, slots=True)
class Liked:
    """How the rated answers of a version were rated; low and high bound 95 % of the share."""

    good: int
    rated: int
    share: float
    low: float
    high: float

    def told(self, language: str) -> str:
        """In words; a share only where there is enough to tell one by."""
        if self.rated < ENOUGH:
            return say("liked_few", language, good=self.good, rated=self.rated)
        share, low, high = (percent(one, language) for one in (self.share, self.low, self.high))
        return say("liked_share", language, share=share, low=low, high=high, rated=self.rated)


async def liked(call: Call) -> dict[int, Liked]:
    """By version, how its answers were rated; nothing of one of which no answer was."""
    registry = call.services.registry
    pool = Pool(scope=registry.scope, model=registry.model, owners=())
    found = await call.services.store.read(lambda db: acceptance.by_version(db, pool, limit=_ALL))
    told: dict[int, Liked] = {}
    for one in found:
        if one.rated:
            low, high = wilson(one.good, one.rated)
            told[one.version] = Liked(
                good=one.good, rated=one.rated, share=one.good / one.rated, low=low, high=high
            )
    return told
