# SPDX-License-Identifier: Apache-2.0
"""Whether a server is well: a light question now and then, and what has failed meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from goodbot.base.clock import Clock
from goodbot.base.errors import ServerError
from goodbot.base.tasks import end_tasks
from goodbot.base.worded import said_by
from goodbot.inference.servers.upstream import Unreachable

SECONDS = 10.0
_MISSES = 2
"""Questions in a row that may go wrong before a server that is there counts as ill: it may be busy."""


class Heartbeat:
    """Asks until it is stopped. `down` says what is wrong, and is empty while nothing is."""

    def __init__(
        self, clock: Clock, ask: Callable[[], Awaitable[None]], well: Callable[[], Awaitable[None]]
    ) -> None:
        """`ask` raises ServerError if the server is not well; `well` follows each time that it is."""
        self.down = ""
        self._clock = clock
        self._ask = ask
        self._well = well
        self._misses = 0
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """It is well now; go on asking."""
        self.down, self._misses = "", 0
        if self._task is None:
            self._task = asyncio.create_task(self._run(), name="the model server's heartbeat")

    async def stop(self, why: str = "") -> None:
        """Idempotent. `why`: what is wrong from now on, until it is started again."""
        self.down = why or self.down
        task, self._task = self._task, None
        await end_tasks(task)

    async def _run(self) -> None:
        while True:
            await self._clock.sleep(SECONDS)
            try:
                await self._ask()
            except ServerError as error:
                self._misses += 1
                if isinstance(error, Unreachable) or self._misses >= _MISSES:
                    self.down = said_by(error)
                continue
            self.down, self._misses = "", 0
            await self._well()
