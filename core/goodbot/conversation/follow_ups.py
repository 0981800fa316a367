# SPDX-License-Identifier: Apache-2.0
"""What happens after a commit of what came in: what the other parts do then, and the tasks for it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from goodbot.access.direct_message import Still
from goodbot.api.events import Event, Receipt
from goodbot.api.notice import Notice
from goodbot.base.tasks import end_tasks

logger = logging.getLogger(__name__)

Work = Callable[[Event], Awaitable[None]]


@dataclass(frozen=True, kw_only=True, slots=True)
class FollowUps:
    """What the other parts do then."""

    answer: Work
    put_back: Work
    """A press that waited too long: what it was to replace comes back."""
    acknowledge: Callable[[Event, Receipt], Awaitable[None]]
    ask: Callable[[Event, Receipt], Awaitable[None]]
    """Of somebody who is refused: whether an owner lets them in."""
    rated: Callable[[], None]
    talked: Callable[[], None]
    tell: Callable[[Notice, Still], Awaitable[None]]


class FollowUpTasks:
    """What is being done of it, each in a task of its own: what fails hinders nothing else."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[Any]] = set()

    def spawn(self, work: Awaitable[None], name: str) -> None:
        """Do it soon; a failure is logged."""

        async def guarded() -> None:
            try:
                await work
            except Exception:
                logger.exception("%s failed", name)

        self.hold(asyncio.create_task(guarded(), name=name))

    def hold(self, task: asyncio.Task[Any]) -> None:
        """Have `end` wait for this one, too."""
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    @property
    def answering(self) -> bool:
        """Whether somebody waits for an answer."""
        return any(task.get_name() == "answer" for task in self._tasks)

    async def end(self, seconds: float) -> None:
        """Give all of them a moment, then cancel them."""
        if self._tasks:
            await asyncio.wait(set(self._tasks), timeout=seconds)
        await end_tasks(*self._tasks)
