# SPDX-License-Identifier: Apache-2.0
"""What filters leave out of a training: each is asked anew about each answer that one would take.

A look at the store notes what they have not been asked about, and takes nothing of it. They are asked once
it has ended, and then the store is looked at again: a slow filter holds no state of the store, whose log
would grow for as long.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from importlib import import_module
from typing import TypeVar

import aiosqlite

from goodbot.api.content_filter import ContentFilter, ContentFilterSpec, FilterCase
from goodbot.api.registry import registered
from goodbot.base.errors import TrainingError, boundary
from goodbot.base.printing import printable
from goodbot.base.worded import Worded
from goodbot.config import Config
from goodbot.config.toml import section
from goodbot.learning.rating_quality.near_duplicates import Sketches
from goodbot.store import Store, codec, quarantined, words
from goodbot.store.training_pool import Candidate, Pool
from goodbot.store.words import Word

logger = logging.getLogger(__name__)

_T = TypeVar("_T")
_Key = tuple[str, Sequence[str]]
"""An answer, and what was said of it."""
_TRIES = 3
"""So often they are asked about what has come since they were; what comes then waits for the next run."""
_FAILED = "the filter {name} has failed, so nothing is trained; the log says why, and `train` tries it again"
_LONGEST = 80
"""Characters of a reason that are kept."""


class Filtering:
    """The filters that `[filters.NAME]` switches on; without any it is false."""

    def __init__(self, config: Config, specs: Mapping[str, ContentFilterSpec]) -> None:
        """Raises ConfigError for an unknown filter, or a setting that it does not take."""
        told = repr(sorted((name, sorted(table.items())) for name, table in config.filters.items()))
        self.about = hashlib.sha256(told.encode()).hexdigest()[:16] if config.filters else ""
        """Of their names and settings, which may name what nobody shall read: other ones leave out others."""
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
                found |= {_line(reason) or name: None for reason in _listed(one.reasons(case))}
            except Exception as error:  # a plugin's
                logger.exception("the filter %s", name)
                self.failed = Worded(_FAILED, name=name)
                raise TrainingError(self.failed, kind="data") from error
        return ", ".join(found)


def _listed(found: Sequence[str]) -> Sequence[str]:
    """Raises TypeError for one text: it would be read as a list of letters."""
    if isinstance(found, str):
        raise TypeError("reasons() has given a text, not a list of texts")
    return found


def _line(reason: str) -> str:
    return " ".join(printable(reason).split())[:_LONGEST]


class Screening:
    """One look at what a training would take: what of it filters leave out, and why."""

    def __init__(self, filtering: Filtering) -> None:
        self.left_out: dict[str, str] = {}
        """Answer → what is in it."""
        self.sizes: dict[str, int] = {}
        """Answer → its characters, as far as they have been counted: no answer's are counted twice."""
        self.sketches: Sketches = {}
        """By which answers are compared with each other, as far as that was prepared."""
        self._filtering = filtering
        self._known: dict[_Key, str] = {}
        """What was found: nothing is asked twice."""
        self._unasked: dict[_Key, FilterCase] = {}
        """What the last look has come upon and nothing is known of."""
        self._whole = False

    async def through(self, look: Callable[[], Awaitable[_T]]) -> _T:
        """What a look at the store comes to once filters have been asked about what it finds.

        It is done anew after that. Raises TrainingError.
        """
        self._unasked = {}
        found = await look()
        for _ in range(_TRIES):
            if not self._unasked:
                break
            self._whole = False
            unasked, self._unasked = self._unasked, {}
            await asyncio.to_thread(self._ask, unasked)  # thousands of long answers take seconds
            found = await look()
        if self._whole:
            self._filtering.failed = ""
        return found

    async def passed(
        self, db: aiosqlite.Connection, found: Sequence[Candidate], said: Mapping[str, Sequence[Word]]
    ) -> list[Candidate]:
        """What of it may train with what was `said` of it, by what is known: filters are not asked here."""
        if not self._filtering:
            return [*found]
        typed = {one.turn.id: words.may_be_heard(said.get(one.turn.id, ()), one.labels) for one in found}
        texts = await words.texts(db, typed)
        own = {turn: tuple(text for text, _ in (*one.said, *one.better)) for turn, one in texts.items()}
        cases = {(one.turn.id, own[one.turn.id]): one for one in found}
        self._unasked |= {
            key: FilterCase(turn=one.turn, said=key[1])
            for key, one in cases.items()
            if key not in self._known
        }
        # A reason goes with the words that it was about, also where nothing is known of those of now.
        reasons = {key[0]: self._known.get(key, "") for key in cases}
        self.left_out = {turn: why for turn, why in {**self.left_out, **reasons}.items() if why}
        self._whole = True
        return [one for key, one in cases.items() if self._known.get(key) == ""]

    def _ask(self, unasked: Mapping[_Key, FilterCase]) -> None:
        for key, case in unasked.items():
            self._known[key] = self._filtering.reason(case)

    async def keep(self, store: Store, pool: Pool, settings: Mapping[str, object], now: float) -> None:
        """Let it be known, and be counted no more until the next look or other `settings`.

        Where a look has failed, what was known before stays.
        """
        if not self._whole:
            return
        dumped, looked = codec.dump_json(settings), {turn for turn, _ in self._known}
        with boundary(logger, "what filters have left out was not stored"):
            await store.write(
                lambda db: quarantined.filtered(db, pool.model, looked, self.left_out, dumped, now)
            )

    def listed(self, known: Sequence[quarantined.SetAside]) -> list[quarantined.SetAside]:
        """What is set aside, with what was left out now in place of what was before."""
        if not self._whole:
            return [*known]
        return [
            *(one for one in known if one.kind != quarantined.FILTER),
            *(
                quarantined.SetAside(run=0, kind=quarantined.FILTER, reason=reason, answers=count)
                for reason, count in sorted(Counter(self.left_out.values()).items())
            ),
        ]
