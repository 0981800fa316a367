# SPDX-License-Identifier: Apache-2.0
"""What a platform delivers to an app by request, and how often it tries."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Literal

from goodbot.base.clock import Clock

Json = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Pace:
    """A platform's patience, in seconds. Tests of what happens then may choose to wait less."""

    ack: float
    """How long an attempt may take."""
    retries: tuple[float, ...]
    """The pauses before further attempts."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Ack:
    """An acknowledgement. With `no_retry` the app asks not to be told again."""

    ok: bool
    payload: Json = field(default_factory=dict[str, Any])
    reason: str = ""
    """Why it is none: `http_timeout`, `http_error` …"""
    no_retry: bool = False


@dataclass(kw_only=True, slots=True, eq=False)
class Delivery:
    """One thing to be delivered, and what became of it."""

    kind: str
    payload: Json
    attempts: int = 0
    state: Literal["pending", "acknowledged", "lost"] = "pending"
    reason: str = ""
    answer: Json = field(default_factory=dict[str, Any])
    """What came with the acknowledgement."""
    acknowledged_at: float = 0.0
    """In the clock's monotonic seconds."""


Transport = Callable[[Delivery], Awaitable[Ack]]
"""One attempt; it ends by itself or is given up after `Pace.ack`."""


class Outbox:
    """All deliveries to one app, whatever way they take."""

    def __init__(self, clock: Clock, pace: Pace, transport: Transport) -> None:
        self.pace = pace
        self.log: list[Delivery] = []
        self._clock = clock
        self._transport = transport
        self._tasks: set[asyncio.Task[None]] = set()

    def patience(self, delivery: Delivery) -> Pace:
        """How long and how often this one is tried; by default as all."""
        return self.pace

    @property
    def pending(self) -> list[Delivery]:
        """What would be delivered again, or for the first time."""
        return [delivery for delivery in self.log if delivery.state == "pending"]

    def put(self, kind: str, payload: Json) -> Delivery:
        """Deliver in the background."""
        delivery = Delivery(kind=kind, payload=payload)
        self.log.append(delivery)
        task = asyncio.create_task(self._deliver(delivery), name=f"fake delivery {kind}")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return delivery

    async def _deliver(self, delivery: Delivery) -> None:
        for pause in (None, *self.patience(delivery).retries):
            if pause:
                await self._clock.sleep(pause)
            ack = await self.attempt(delivery)
            if ack.ok:
                delivery.answer = ack.payload
                delivery.state = "acknowledged"
                delivery.acknowledged_at = self._clock.monotonic()
                return
            delivery.reason = ack.reason
            if ack.no_retry:
                break
        delivery.state = "lost"

    async def attempt(self, delivery: Delivery) -> Ack:
        """Try once and wait for the acknowledgement, at most as long as the platform does."""
        tried = asyncio.ensure_future(self._transport(delivery))
        timer = asyncio.ensure_future(self._clock.sleep(self.patience(delivery).ack))
        delivery.attempts += 1
        try:
            await asyncio.wait((tried, timer), return_when=asyncio.FIRST_COMPLETED)
            return tried.result() if tried.done() else Ack(ok=False, reason="http_timeout")
        finally:
            for waiting in (tried, timer):
                waiting.cancel()
            await asyncio.gather(tried, timer, return_exceptions=True)

    async def close(self) -> None:
        """Give everything up."""
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
