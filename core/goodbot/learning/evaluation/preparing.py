# SPDX-License-Identifier: Apache-2.0
"""The pairs of answers that a comparison asks about, made while nobody else wants the model."""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import Mapping, Sequence

from goodbot.api.server import GenerateRequest
from goodbot.api.turns import Turn
from goodbot.base.sampling import Sampling
from goodbot.config import ServingConfig
from goodbot.learning.adapters.registry import AdapterRegistry
from goodbot.learning.evaluation.idle import SpareTime
from goodbot.store import Store, comparisons
from goodbot.store.comparisons import Comparison
from goodbot.store.training_pool import Pool

logger = logging.getLogger(__name__)

PROMPTS = 5
"""So many of each owner's."""
_TRIED = 10
"""Of so many, since both versions may give the same answer."""
_TOKENS = 256
_SECONDS = 600.0
"""So long at a time: a version that is loaded beside the one that answers takes memory."""


class Preparing:
    """Makes pairs; those that are made are kept, so that a restart goes on."""

    def __init__(
        self,
        *,
        store: Store,
        registry: AdapterRegistry,
        spare: SpareTime,
        pool: Pool,
        config: ServingConfig,
        sampling: Sampling,
    ) -> None:
        self._store = store
        self._registry = registry
        self._spare = spare
        self._pool = pool
        self._config = config
        self._sampling = sampling

    async def prepare(self, comparison: Comparison, owners: Mapping[str, Sequence[str]]) -> bool:
        """Make what is missing for each owner, given with all their accounts; whether all is made.

        Raises ServerError, AdapterError, StoreError.
        """
        wanted = {owner: await self._wanted(comparison, owner, owners[owner]) for owner in owners}
        if not any(turns for turns, _ in wanted.values()):
            return True
        try:
            async with asyncio.timeout(_SECONDS):
                async with self._registry.beside(comparison.old, comparison.new):
                    for owner, (turns, missing) in wanted.items():
                        await self._make(comparison, owner, turns, missing)
        except TimeoutError:
            logger.info("v%d is compared another time: people are talking", comparison.new)
            return False
        return True

    async def _wanted(
        self, comparison: Comparison, owner: str, accounts: Sequence[str]
    ) -> tuple[list[Turn], int]:
        """The prompts to try, and how many pairs are missing."""
        made = await self._store.read(lambda db: comparisons.made(db, comparison.id, owner))
        found = await self._store.read(
            lambda db: comparisons.prompts(db, self._pool, accounts, comparison.run, _TRIED)
        )
        missing = PROMPTS - len(made)
        return ([turn for turn in found if turn.id not in made] if missing > 0 else []), missing

    async def _make(self, comparison: Comparison, owner: str, turns: Sequence[Turn], missing: int) -> None:
        for turn in turns:
            if missing and await self._pair(comparison, owner, turn):
                missing -= 1

    async def _pair(self, comparison: Comparison, owner: str, turn: Turn) -> bool:
        """Both answers to one prompt; False where they are the same."""
        seed = _seed(comparison, turn)

        def request(version: int) -> GenerateRequest:
            return GenerateRequest(
                messages=turn.messages,
                max_tokens=min(_TOKENS, self._config.max_tokens),
                temperature=self._sampling.temperature,
                filters=self._sampling.filters,
                seed=seed,
                version=version,
            )

        old = await self._spare.answer(request(comparison.old))
        new = await self._spare.answer(request(comparison.new))
        if old.text.strip() == new.text.strip():
            return False
        await self._store.write(
            lambda db: comparisons.add(
                db,
                comparison.id,
                owner,
                turn,
                old=old,
                new=new,
                temperature=self._sampling.temperature,
                filters=self._sampling.filters,
                seed=seed,
            )
        )
        return True


def _seed(comparison: Comparison, turn: Turn) -> int:
    digest = hashlib.sha256(f"{comparison.seed}\0{turn.id}\0answers".encode()).digest()
    return int.from_bytes(digest[:4], "big") & 0x7FFFFFFF
