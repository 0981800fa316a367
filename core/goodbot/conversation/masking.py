# SPDX-License-Identifier: Apache-2.0
"""Keys and passwords are masked before anything is stored: what is long, beside what others wait for."""

from __future__ import annotations

import asyncio
import contextlib
from weakref import WeakValueDictionary

from goodbot.access.authorization import person
from goodbot.api.events import CaptureEvent, Event, Receipt
from goodbot.conversation import capture_rules, sanitize
from goodbot.conversation.captures import Capturing
from goodbot.store import Store

_LONG = 64 * 1024
"""Bytes of a capture; shorter ones are masked in a few milliseconds."""


class Masking:
    """Makes events ready to be stored."""

    def __init__(self, store: Store, capturing: Capturing) -> None:
        self._store, self._capturing = store, capturing
        self._locks = WeakValueDictionary[str, asyncio.Lock]()

    async def ready(self, events: list[Event], refused: list[Receipt | None]) -> None:
        """Captures of one person stay in the order in which they came, however long one is masked."""
        async with contextlib.AsyncExitStack() as stack:
            for who in sorted({person(event.user) for event in events if isinstance(event, CaptureEvent)}):
                await stack.enter_async_context(self._locks.setdefault(who, asyncio.Lock()))
            for n, event in enumerate(events):
                if refused[n] is None:
                    events[n], refused[n] = await self._ready(event)

    async def _ready(self, event: Event) -> tuple[Event, Receipt | None]:
        """The event as it can be stored, or its receipt. What is long is masked beside what others wait for,
        if it is to be kept at all."""
        if not isinstance(event, CaptureEvent) or capture_rules.size(event) < _LONG:
            return sanitize.storable(event), None
        receipt = await self._store.read(lambda db: self._capturing.settled(db, event, counts=False))
        return (event, receipt) if receipt else (await asyncio.to_thread(sanitize.storable, event), None)
