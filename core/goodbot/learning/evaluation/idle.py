# SPDX-License-Identifier: Apache-2.0
"""Answers that nobody waits for as one waits in a chat: they never hold up one that somebody does."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Sequence

from goodbot.api.sampler import GivenAnswer
from goodbot.api.server import Generated, GenerateRequest, Server
from goodbot.base.clock import Clock
from goodbot.base.errors import ServerError
from goodbot.base.tasks import end_tasks
from goodbot.base.worded import Worded

_LOOK_SECONDS = 0.2


class SpareTime:
    """One answer at a time, while no person waits for theirs.

    One that is under way when somebody begins to wait is cut off and begun again later.
    """

    def __init__(self, *, server: Server, clock: Clock, busy: Callable[[], bool]) -> None:
        """`busy`: whether a person waits for an answer now."""
        self._server = server
        self._clock = clock
        self._busy = busy
        self._one = asyncio.Lock()
        self.gave_way = 0
        """How often an answer has waited for others, or was cut off for them."""

    async def answer(self, request: GenerateRequest, seconds: float | None = None) -> Generated:
        """Made sooner or later: who cannot wait for ever sets a timeout. Raises ServerError.

        `seconds` are for its writing, and not for the wait before it. Raises TimeoutError after them.
        """
        self.gave_way += self._one.locked()
        async with self._one:
            while True:
                self.gave_way += self._busy()
                while self._busy():
                    await self._clock.sleep(_LOOK_SECONDS)
                async with asyncio.timeout(seconds):
                    answer = await self._unless_somebody_waits(request)
                if answer is not None:
                    return answer
                self.gave_way += 1

    async def score(self, given: GivenAnswer, version: int) -> Sequence[tuple[str, float]]:
        """As `Server.score`, while nobody waits. It is short, and not cut off. Raises ServerError."""
        async with self._one:
            while self._busy():
                await self._clock.sleep(_LOOK_SECONDS)
            return await self._server.score(given, version=version)

    async def _unless_somebody_waits(self, request: GenerateRequest) -> Generated | None:
        writing = asyncio.create_task(self._write(request), name="an answer in spare time")
        try:
            while not writing.done():
                tick = asyncio.create_task(self._clock.sleep(_LOOK_SECONDS), name="who waits?")
                try:
                    await asyncio.wait({writing, tick}, return_when=asyncio.FIRST_COMPLETED)
                finally:
                    tick.cancel()
                if self._busy() and not writing.done():
                    return None
            return writing.result()
        finally:
            await end_tasks(writing)

    async def _write(self, request: GenerateRequest) -> Generated:
        async with contextlib.aclosing(self._server.generate(request)) as pieces:
            async for piece in pieces:
                if isinstance(piece, Generated):
                    return piece
        raise ServerError(Worded("the model server ended an answer half way"))
