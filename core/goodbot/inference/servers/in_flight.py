# SPDX-License-Identifier: Apache-2.0
"""The answers under way, counted by the name that they are written under."""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import Generator


class InFlight:
    """Who writes what, so that nothing is taken away from under an answer."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()
        self._landed = asyncio.Event()

    @contextlib.contextmanager
    def on(self, name: str) -> Generator[None]:
        """One answer under `name`."""
        self._counts[name] += 1
        try:
            yield
        finally:
            self._counts[name] -= 1
            if not self._counts[name]:
                del self._counts[name]
                self._landed.set()

    def any(self, name: str = "") -> bool:
        """Whether something is under way under `name`, by default under any."""
        return bool(self._counts[name] if name else self._counts)

    async def landed(self, name: str = "", *, seconds: float) -> bool:
        """Wait until nothing is under way there any more; False if that takes longer than `seconds`."""
        try:
            async with asyncio.timeout(seconds):
                while self.any(name):
                    self._landed.clear()
                    await self._landed.wait()
        except TimeoutError:
            return False
        return True
