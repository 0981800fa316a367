# SPDX-License-Identifier: Apache-2.0
"""How many ratings the next round waits for: `min_ratings`, or fewer for the first one."""

from __future__ import annotations

from dataclasses import dataclass

import aiosqlite

from goodbot.learning.core import Chosen
from goodbot.store import notes, training_pool, words
from goodbot.store.training_pool import Pool

FIRST = 24
"""The first round waits for so many ratings, or for half of them where each came with words."""


def first_round(worded: int, usual: int) -> int:
    """How many ratings the first round waits for, `worded` of which came with words.

    max(12, 24 - worded): one with words is worth two without. Never more than the `usual` number.
    """
    return min(usual, max(FIRST // 2, FIRST - worded))


@dataclass(frozen=True, kw_only=True, slots=True)
class RoundSize:
    """How many ratings the next round of a pool waits for."""

    pool: Pool
    usual: int
    """`[training] min_ratings`."""
    starts_small: bool = False
    """The first round waits for fewer."""

    @classmethod
    def of(cls, core: Chosen) -> RoundSize:
        """By the config; it starts small only where notes are kept, and the model follows them."""
        training = core.config.training
        small = training.start_small and core.notes_where != "never"
        return cls(pool=core.pool, usual=training.min_ratings, starts_small=small)

    async def now(self, db: aiosqlite.Connection) -> int:
        """As it stands: with every rating that came with words the first round waits for fewer."""
        if not self.starts_small or await training_pool.has_learnt(db, self.pool):
            return self.usual
        if await notes.follows(db, self.pool.model) is False:
            return self.usual
        rated = await training_pool.some(db, self.pool, FIRST)
        return first_round(len(await words.said(db, rated)), self.usual)
