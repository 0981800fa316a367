# SPDX-License-Identifier: Apache-2.0
"""What filters leave out of a training: each is asked anew about each answer that one would take."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from importlib import import_module

import aiosqlite

from goodbot.api.content_filter import ContentFilter, ContentFilterSpec, FilterCase
from goodbot.api.registry import registered
from goodbot.base.errors import TrainingError, boundary
from goodbot.config import Config
from goodbot.config.toml import section
from goodbot.store import Store, codec, quarantined, words
from goodbot.store.training_pool import Candidate, Pool
from goodbot.store.words import Word

logger = logging.getLogger(__name__)

_AGAIN = "the log says why, and `train` tries it again"


class Filtering:
    """The filters that `[filters.NAME]` switches on; without any it is false."""

    def __init__(self, config: Config, specs: Mapping[str, ContentFilterSpec]) -> None:
        """Raises ConfigError for an unknown filter, or a setting that it does not take."""
        self.about = {name: dict(table) for name, table in config.filters.items()}
        """Their names and settings: other ones leave out something else."""
        self.failed = ""
        """Which one has failed at the last look, as a clause; until the next nothing trains by itself."""
        self._made: dict[str, ContentFilter] = {}
        for name in sorted(config.filters):
            spec = registered(specs, name, "filter", config.where("filters"), name)
            settings = section(spec.settings, config.filters[name], config.where(f"filters.{name}"))
            module, _, cls = spec.factory.partition(":")
            self._made[name] = getattr(import_module(module), cls)(settings)

    def __bool__(self) -> bool:
        return bool(self._made)

    def reason(self, case: FilterCase) -> str:
        """All that they find in an answer; empty: it may be learnt. Raises TrainingError."""
        found: dict[str, None] = {}
        for name, one in self._made.items():
            try:
                found |= dict.fromkeys(one.reasons(case))
            except Exception as error:  # a plugin's
                logger.exception("the filter %s", name)
                self.failed = f"the filter {name} has failed, so nothing is trained; {_AGAIN}"
                raise TrainingError(self.failed, kind="data") from error
        return ", ".join(found)


class Screening:
    """One look at what a training would take: what of it filters have left out, and why."""

    def __init__(self, filtering: Filtering) -> None:
        self._filtering = filtering
        self.left_out: dict[str, str] = {}
        """Answer → what is in it."""

    async def passed(
        self, db: aiosqlite.Connection, found: Sequence[Candidate], said: Mapping[str, Sequence[Word]]
    ) -> list[Candidate]:
        """What of it may train with what was `said` of it. Raises TrainingError."""
        if not self._filtering:
            return [*found]
        typed = {turn: [one for one in own if one.kind != "chip"] for turn, own in said.items()}
        texts = await words.texts(db, typed)
        left_out = await asyncio.to_thread(self._look, found, texts)  # thousands of long answers take seconds
        self.left_out |= left_out
        return [one for one in found if one.turn.id not in left_out]

    def _look(self, found: Sequence[Candidate], texts: Mapping[str, words.Texts]) -> dict[str, str]:
        self._filtering.failed = ""
        left_out: dict[str, str] = {}
        for one in found:
            own = texts.get(one.turn.id, words.Texts())
            said = tuple(text for text, _ in (*own.said, *own.better))
            if reason := self._filtering.reason(FilterCase(turn=one.turn, said=said)):
                left_out[one.turn.id] = reason
        return left_out

    async def keep(self, store: Store, pool: Pool, settings: Mapping[str, object], now: float) -> None:
        """Let it be known, and be counted no more until the next look or other `settings`.

        Where a filter has failed, what was known before stays.
        """
        if not self._filtering or self._filtering.failed:
            return
        dumped = codec.dump_json(settings)
        with boundary(logger, "what filters have left out was not stored"):
            await store.write(lambda db: quarantined.filtered(db, pool.model, self.left_out, dumped, now))

    def listed(self, known: Sequence[quarantined.SetAside]) -> list[quarantined.SetAside]:
        """What is set aside, with what was left out just now."""
        counts = Counter(self.left_out.values())
        counts.update({one.reason: one.answers for one in known if one.kind == quarantined.FILTER})
        return [
            *(one for one in known if one.kind != quarantined.FILTER),
            *(
                quarantined.SetAside(run=0, kind=quarantined.FILTER, reason=reason, answers=count)
                for reason, count in sorted(counts.items())
            ),
        ]
