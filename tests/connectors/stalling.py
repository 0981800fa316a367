# SPDX-License-Identifier: Apache-2.0
"""A database that does not answer in time, for the tests of what a platform is told meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from unittest import mock

from goodbot.base.clock import Clock
from goodbot.daemon.app import App


@dataclass
class Stalls:
    """What was seen of such a database."""

    begun: int = 0
    """Deliveries that have begun to be stored."""
    begins: asyncio.Event = field(default_factory=asyncio.Event)
    committed: asyncio.Event = field(default_factory=asyncio.Event)


@contextmanager
def stalled(app: App, clock: Clock, seconds: float) -> Iterator[Stalls]:
    """What a platform delivers takes `seconds` before it is stored.

    Other writes take none: an answer still writes what it was when people see it whole.
    """
    write, stalls = app.store.write, Stalls()

    async def slow(operation: Any, *, quick: bool = False) -> Any:
        if not quick:
            return await write(operation)
        stalls.begun += 1
        stalls.begins.set()
        await clock.sleep(seconds)
        done = await write(operation, quick=True)
        stalls.committed.set()
        return done

    with mock.patch.object(app.store, "write", slow):
        yield stalls
