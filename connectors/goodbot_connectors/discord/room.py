# SPDX-License-Identifier: Apache-2.0
"""How much of what Discord has told is held in memory, until it is stored."""

from __future__ import annotations

import asyncio

MOST = 1000
"""Dispatches; with so many nothing more is read until half of them are stored."""


class HeldDispatches:
    """What is held now, and whether there is room for more."""

    def __init__(self) -> None:
        self.held = 0
        self._free = asyncio.Event()
        self._free.set()

    @property
    def full(self) -> bool:
        """Whether nothing more is to be read."""
        return not self._free.is_set()

    def take(self) -> None:
        """One more is held."""
        self.held += 1
        if self.held >= MOST:
            self._free.clear()

    def leave(self) -> None:
        """One of them is stored, or given up."""
        self.held -= 1
        if self.held <= MOST // 2:
            self._free.set()

    async def wait(self) -> None:
        """Return once there is room."""
        await self._free.wait()
