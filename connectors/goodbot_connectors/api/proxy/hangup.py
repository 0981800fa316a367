# SPDX-License-Identifier: Apache-2.0
"""Noticing that a program has hung up, also while nothing is being written to it."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator
from typing import Any

from aiohttp import web
from goodbot.base.clock import Clock
from goodbot.base.tasks import end_tasks

_LOOK_SECONDS = 0.2


class GoneError(Exception):
    """The program is not there any more: nothing that is answered reaches it."""


class Hangups:
    """Looks after all requests under way at once."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._waiting: dict[asyncio.Task[Any], web.BaseRequest] = {}
        """The tasks that answer, and whom."""
        self._gone: set[asyncio.Task[Any]] = set()
        self._looking: asyncio.Task[None] | None = None

    @contextlib.asynccontextmanager
    async def watched(self, request: web.BaseRequest) -> AsyncGenerator[None]:
        """A block that ends early, with GoneError, once the program that asked has hung up."""
        task = asyncio.current_task()
        assert task is not None  # noqa: S101  a handler runs in one
        cancelling = task.cancelling()
        self._waiting[task] = request
        if self._looking is None or self._looking.done():
            self._looking = asyncio.create_task(self._look(), name="proxy: who has hung up")
        try:
            yield
        except asyncio.CancelledError:
            if task in self._gone and task.uncancel() <= cancelling:
                raise GoneError from None
            raise
        except ConnectionResetError as error:  # seen while writing to it
            raise GoneError from error
        finally:
            self._waiting.pop(task, None)
            self._gone.discard(task)

    async def close(self) -> None:
        """Look no more."""
        await end_tasks(self._looking)

    async def _look(self) -> None:
        while self._waiting:
            await self._clock.sleep(_LOOK_SECONDS)
            for task, request in list(self._waiting.items()):
                transport = request.transport
                if (transport is None or transport.is_closing()) and task not in self._gone:
                    self._gone.add(task)
                    task.cancel()
