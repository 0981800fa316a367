# SPDX-License-Identifier: Apache-2.0
"""How many requests of one client are answered at the same time: others find room beside them."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Generator

from goodbot_connectors.kit.bridge.refused import HttpError

_SECONDS = 1.0
"""Until the next attempt."""


class AtOnce:
    """Counts those of each, by any name that they have."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._of = Counter[str]()

    @contextlib.contextmanager
    def one(self, who: str) -> Generator[None]:
        """One more, for as long as it is answered. Raises HttpError (429)."""
        if self._of[who] >= self._most:
            raise HttpError(429, "Too many requests at once: try again in a moment.", retry_after=_SECONDS)
        self._of[who] += 1
        try:
            yield
        finally:
            self._of[who] -= 1
            if not self._of[who]:
                del self._of[who]
