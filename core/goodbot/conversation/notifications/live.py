# SPDX-License-Identifier: Apache-2.0
"""The chat message that shows a run while it goes, where the platform can edit messages."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from typing import Any

from goodbot.api import progress as told
from goodbot.api.connector import Capability, Connector
from goodbot.api.events import ChannelRef, MessageRef, Reply
from goodbot.base.clock import Clock
from goodbot.base.errors import RetriableError

logger = logging.getLogger(__name__)

_EDIT_SECONDS = 5.0
"""The least time between two edits: platforms bear about twenty messages a minute in a group."""
_STILL_SECONDS = 60.0
"""After so long it is edited also when less than a tenth was done."""
_TRIES = 4
_BAR = 12

Progress = Callable[[], Mapping[str, Any] | None]
"""What the trainer said last; None before and after it speaks."""


class LiveMessage:
    """One message. It is edited every tenth of the run, and at the end becomes what came of it."""

    def __init__(
        self, connector: Connector, message: MessageRef, clock: Clock, heading: str, language: str = ""
    ) -> None:
        self._connector = connector
        self._message = message
        self._clock = clock
        self._heading, self._language = heading, language
        self._next = clock.monotonic() + _EDIT_SECONDS
        self._told: tuple[Any, int] = (None, 0)
        self._lost = False
        """The platform refuses edits (somebody deleted the message, say)."""

    @classmethod
    async def post(
        cls, connector: Connector | None, channel: ChannelRef, clock: Clock, heading: str, language: str = ""
    ) -> LiveMessage | None:
        """Send it; None where the platform cannot edit, or does not take it now."""
        if connector is None or Capability.EDITS not in connector.spec.capabilities:
            return None
        try:
            messages = await connector.send(channel, Reply(text=heading, silent=True))
        except Exception as error:
            logger.info("%s: a run is not shown: %s", connector.spec.name, error)
            return None
        return cls(connector, messages[0], clock, heading, language) if messages else None

    async def follow(self, run: asyncio.Task[Any], progress: Progress) -> None:
        """Keep it up to date until the run has ended; raises nothing of the run's."""
        while not run.done() and not self._lost:
            tick = asyncio.create_task(self._clock.sleep(1.0), name="live message")
            try:
                await asyncio.wait({run, tick}, return_when=asyncio.FIRST_COMPLETED)
            finally:
                tick.cancel()
            said = progress()
            if said is not None and not run.done() and self._due(said):
                await self._edit(shown(self._heading, said, self._language))
        if not run.done():
            await asyncio.wait({run})

    def _due(self, said: Mapping[str, Any]) -> bool:
        now = self._clock.monotonic()
        if now < self._next:
            return False
        step, planned = told.steps(said)
        tenth = (said.get("phase"), 10 * step // planned if planned else 0)
        if tenth == self._told and now < self._next + _STILL_SECONDS - _EDIT_SECONDS:
            return False
        self._told = tenth
        return True

    async def end(self, text: str) -> bool:
        """Make it say what came of the run; False when that has to be said in another way."""
        for _ in range(_TRIES):
            if self._lost:
                break
            if (wait := self._next - self._clock.monotonic()) > 0 and self._told[0] is not None:
                await self._clock.sleep(min(wait, _EDIT_SECONDS))
            if await self._edit(text):
                return True
        return False

    async def _edit(self, text: str) -> bool:
        self._next = self._clock.monotonic() + _EDIT_SECONDS
        try:
            await self._connector.edit(self._message, Reply(text=text, silent=True))
        except RetriableError as error:
            self._next += error.retry_after
            return False
        except Exception as error:
            logger.info("%s: a run is not shown: %s", self._connector.spec.name, error)
            self._lost = True
            return False
        return True


def shown(heading: str, progress: Mapping[str, Any], language: str = "") -> str:
    """The message while the run goes on."""
    bar = told.block(progress, _BAR)
    details = " · ".join(told.details(progress, language))
    return f"{heading}\n{told.phase(progress, language)} {bar} {details}".rstrip()
