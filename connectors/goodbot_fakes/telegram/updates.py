# SPDX-License-Identifier: Apache-2.0
"""The queue of updates: what goes in, who gets them, and when they are gone.

core.telegram.org/bots/api#getting-updates: an update stays until a higher offset, or a webhook's
2xx, confirms it; at most a day.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from goodbot.base.clock import Clock

from goodbot_fakes.telegram.errors import TWO_POLLERS, Json, conflict

KINDS = (
    "message",
    "edited_message",
    "channel_post",
    "edited_channel_post",
    "business_connection",
    "business_message",
    "edited_business_message",
    "deleted_business_messages",
    "guest_message",
    "message_reaction",
    "message_reaction_count",
    "inline_query",
    "chosen_inline_result",
    "callback_query",
    "shipping_query",
    "pre_checkout_query",
    "purchased_paid_media",
    "poll",
    "poll_answer",
    "my_chat_member",
    "chat_member",
    "chat_join_request",
    "chat_boost",
    "removed_chat_boost",
    "managed_bot",
)
ASKED_FOR = ("chat_member", "message_reaction", "message_reaction_count")
"""Only who names them gets them."""
_KEPT = 86400.0
_MOST = 100


@dataclass(frozen=True, kw_only=True)
class Pending:
    """An update that nobody has confirmed."""

    json: Json
    at: float
    """When it came to be, by the clock."""
    chat: int

    @property
    def id(self) -> int:
        return self.json["update_id"]


class UpdateQueue:
    """What a bot has still to be told. One reader at a time."""

    def __init__(self, clock: Clock, first: int = 730_000_001) -> None:
        self.allowed: tuple[str, ...] = ()
        """Kinds that are taken in; empty for all that need not be asked for."""
        self.next_id = first
        self.handed_out = 0
        """The id of the newest update that somebody was given."""
        self.confirmed: dict[int, float] = {}
        """When each update was confirmed, in the clock's monotonic seconds."""
        self._changed = asyncio.Event()
        self._clock = clock
        self._pending: list[Pending] = []
        self._reader: asyncio.Task[Any] | None = None
        self._terminated: set[asyncio.Task[Any]] = set()

    def allow(self, kinds: Sequence[str]) -> None:
        """Set what is taken in from now on; what waits already stays. Unknown names are ignored."""
        self.allowed = tuple(kind for kind in kinds if kind in KINDS)

    def takes(self, kind: str) -> bool:
        """Whether an update of this kind would be told."""
        return kind in self.allowed if self.allowed else kind not in ASKED_FOR

    def put(self, kind: str, payload: Json) -> int | None:
        """Add an update, if its kind is told; its id."""
        if not self.takes(kind):
            return None
        json = {"update_id": self.next_id, kind: payload}
        message: Json = payload.get("message", payload)
        chat: Json = message.get("chat", {})
        self._pending.append(Pending(json=json, at=self._clock.now(), chat=chat.get("id", 0)))
        self.next_id += 1
        self._wake()
        return self.next_id - 1

    @property
    def pending(self) -> tuple[Pending, ...]:
        """What is not confirmed, oldest first."""
        alive = self._clock.now() - _KEPT
        self._pending = [one for one in self._pending if one.at > alive]
        return tuple(self._pending)

    def confirm(self, *ids: int) -> None:
        """These need never be told again."""
        if ids:
            self.confirmed |= dict.fromkeys(ids, self._clock.monotonic())
            gone = set(ids)
            self._pending = [one for one in self._pending if one.id not in gone]
            self._wake()

    def drop(self) -> None:
        """Forget all that waits."""
        self._pending = []
        self._wake()

    def renumber(self, first: int) -> None:
        """What Telegram may do after a week without updates: the next id is any number."""
        self.drop()
        self.next_id = first

    async def poll(self, offset: int, limit: int, timeout: float) -> list[Json]:
        """Confirm all before `offset`, then wait for updates; a negative one counts from the end.

        Raises `BotApiError` 409 in whoever polls already.
        """
        task = asyncio.current_task()
        assert task is not None
        if self._reader is not None:
            self._terminated.add(self._reader)
            self._wake()
        self._reader = task
        self._wake()
        try:
            if offset < 0:
                pending = self.pending
                offset = pending[max(0, len(pending) + offset)].id if pending else 0
            self.confirm(*(one.id for one in self.pending if one.id < offset))
            batch = await self._wait(task, min(limit, _MOST) if limit > 0 else _MOST, timeout)
        finally:
            self._terminated.discard(task)
            if self._reader is task:
                self._reader = None
        if batch:
            self.told(batch[-1].id)
        return [one.json for one in batch]

    async def _wait(self, task: asyncio.Task[Any], limit: int, timeout: float) -> tuple[Pending, ...]:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout):
                await self.until(lambda: bool(self.pending) or task in self._terminated)
        if task in self._terminated:
            raise conflict(TWO_POLLERS)
        return self.pending[:limit]

    def told(self, update_id: int) -> None:
        """Somebody has been given this one."""
        self.handed_out = max(self.handed_out, update_id)
        self._wake()

    @property
    def polled(self) -> bool:
        """Whether somebody asks for updates just now."""
        return self._reader is not None

    async def delivered(self) -> None:
        """Wait until the newest update has been given to the bot."""
        await self.until(lambda: not self.pending or self.handed_out >= self.pending[-1].id)

    async def until(self, done: Callable[[], bool]) -> None:
        """Wait for `done()`, which is asked after every change of the queue."""
        while not done():
            self._changed.clear()
            await self._changed.wait()

    def _wake(self) -> None:
        self._changed.set()
