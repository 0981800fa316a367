"""What the app must be told, and how often Slack tries: at once, after one minute, after five.

An event counts as delivered when its acknowledgement comes within three seconds; a later one is
too late, and the event comes again with the same `event_id`. Interactions and commands are tried
once. Where no socket is open an attempt has failed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Literal

from goodbot.clock import Clock

Json = dict[str, Any]
Kind = Literal["events_api", "interactive", "slash_commands"]


@dataclass(frozen=True, kw_only=True)
class Pace:
    """Slack's patience, in seconds. Tests of what happens then may choose to wait less."""

    ack: float = 3.0
    retries: tuple[float, ...] = (0.0, 60.0, 300.0)


@dataclass(frozen=True, kw_only=True, slots=True)
class Ack:
    """An acknowledgement. `no_retry` is the HTTP header `X-Slack-No-Retry`."""

    ok: bool
    payload: Json = field(default_factory=dict[str, Any])
    reason: str = ""
    """Why it is none, as the retry's header says: `http_timeout`, `http_error` …"""
    no_retry: bool = False


@dataclass(kw_only=True, slots=True, eq=False)
class Delivery:
    """One thing to be delivered, and what became of it."""

    kind: Kind
    payload: Json
    attempts: int = 0
    state: Literal["pending", "acknowledged", "lost"] = "pending"
    reason: str = ""
    answer: Json = field(default_factory=dict[str, Any])
    """What came with the acknowledgement: a response to a view, or a command's words."""
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

    @property
    def pending(self) -> list[Delivery]:
        """What would be delivered again, or for the first time."""
        return [delivery for delivery in self.log if delivery.state == "pending"]

    def put(self, kind: Kind, payload: Json) -> Delivery:
        """Deliver in the background."""
        delivery = Delivery(kind=kind, payload=payload)
        self.log.append(delivery)
        task = asyncio.create_task(self._deliver(delivery), name=f"fake slack {kind}")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return delivery

    async def _deliver(self, delivery: Delivery) -> None:
        pauses = self.pace.retries if delivery.kind == "events_api" else ()
        for pause in (None, *pauses):
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
        """Try once and wait for the acknowledgement, at most as long as Slack does."""
        tried = asyncio.ensure_future(self._transport(delivery))
        timer = asyncio.ensure_future(self._clock.sleep(self.pace.ack))
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
