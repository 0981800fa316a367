# SPDX-License-Identifier: Apache-2.0
"""The blind questions of people about versions of their own, looked after one by one."""

from __future__ import annotations

import logging

from goodbot.access.direct_message import Courier
from goodbot.base.errors import boundary
from goodbot.learning.evaluation.ab_test import AbTest
from goodbot.learning.evaluation.electorate import Themselves
from goodbot.learning.evaluation.idle import SpareTime
from goodbot.learning.evaluation.preparing import Preparing
from goodbot.learning.parts import LearningParts
from goodbot.store import scopes
from goodbot.store.pools import PERSON

logger = logging.getLogger(__name__)

_LOOK_SECONDS, _HEARD_SECONDS = 60.0, 86400.0


class OwnQuestions:
    """All that are open, and those of the last day: of these it is told what came of them."""

    def __init__(self, core: LearningParts, courier: Courier, spare: SpareTime) -> None:
        self._core, self._courier, self._spare = core, courier, spare
        self._store, self._clock, self._model = core.store, core.clock, core.model.name
        self._there = core.scopes.kind == "person"
        self._made: dict[str, AbTest] = {}

    def of(self, key: str) -> AbTest:
        """That of a person's scope."""
        if key not in self._made:
            self._made[key] = self._question(key)
        return self._made[key]

    def _question(self, key: str) -> AbTest:
        core = self._core
        registry, pool = core.scopes.own(key), core.scopes.pool(key)
        return AbTest(
            store=core.store,
            registry=registry,
            scheduler=core.scheduler,
            courier=self._courier,
            preparing=Preparing(
                store=core.store,
                registry=registry,
                spare=self._spare,
                pool=pool,
                config=core.config.serving,
                sampling=core.sampling,
            ),
            who=Themselves(core.authorization, core.store, registry),
            clock=core.clock,
            pool=pool,
        )

    async def asks(self, key: str) -> bool:
        """Whether that person was ever asked."""
        if not (self._there and key.startswith(PERSON)):
            return False
        return await self._store.read(lambda db: scopes.was_asked(db, key, self._model))

    async def loop(self) -> None:
        """Until cancelled; where nobody has versions of their own, it ends at once."""
        while self._there:
            with boundary(logger, "comparing versions of people's own"):
                await self.look()
            await self._clock.sleep(_LOOK_SECONDS)

    async def look(self) -> None:
        """Do what is to be done next about each."""
        since = self._clock.now() - _HEARD_SECONDS
        keys = await self._store.read(lambda db: scopes.asked(db, self._model, since))
        self._made = {key: one for key, one in self._made.items() if key in keys}
        for key in keys:
            with boundary(logger, "a comparison of somebody's own versions"):
                await self.of(key).look()
