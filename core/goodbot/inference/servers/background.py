# SPDX-License-Identifier: Apache-2.0
"""Work that a driver does beside answering, such as unloading an old version once nobody needs it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any

from goodbot.base.errors import ServerError
from goodbot.base.tasks import end_tasks

logger = logging.getLogger(__name__)


class BackgroundTasks:
    """Started one by one, ended together."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[None]] = set()

    def add(self, work: Coroutine[Any, Any, None]) -> None:
        """Do it soon; a ServerError is logged."""
        task = asyncio.create_task(_quietly(work), name="the model server's chore")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        task.add_done_callback(lambda _: work.close())  # cancelled before it began, it is not awaited

    async def stop(self) -> None:
        """Cancel what is left."""
        tasks = [*self._tasks]
        await end_tasks(*tasks)


async def _quietly(work: Coroutine[Any, Any, None]) -> None:
    try:
        await work
    except ServerError as error:
        logger.warning("%s", error)
