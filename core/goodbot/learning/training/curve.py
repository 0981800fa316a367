# SPDX-License-Identifier: Apache-2.0
"""How the loss of a training has gone so far, step by step, for who watches it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

MOST = 200
"""Points that are kept; a round may have thousands of steps."""


class LossCurve:
    """The loss of one run's steps, thinned evenly as they become many."""

    def __init__(self) -> None:
        self._run = 0
        self._every = 1
        """Of so many steps one is kept."""
        self._kept: list[tuple[int, float]] = []
        self._last: tuple[int, float] | None = None

    @property
    def points(self) -> Sequence[tuple[int, float]]:
        """`(step, loss)`, in the order of the steps, at most `MOST`; the last is the newest."""
        new = self._last if self._last and self._last not in self._kept[-1:] else None
        return (*self._kept, new) if new else tuple(self._kept)

    def add(self, run: int, event: Mapping[str, Any]) -> None:
        """Take what a `progress` event tells, if it tells a loss. Another run begins another curve."""
        if run != self._run:
            self._run, self._every, self._kept, self._last = run, 1, [], None
        step, loss = event.get("step"), event.get("loss")
        if event.get("phase") != "train" or not isinstance(step, int) or not isinstance(loss, int | float):
            return
        if not math.isfinite(loss):
            return
        # A child that follows another one goes on from a checkpoint: it does some steps anew.
        self._kept = [one for one in self._kept if one[0] < step]
        self._last = step, float(loss)
        if step % self._every == 0:
            self._kept.append(self._last)
        while len(self._kept) >= MOST:
            self._every *= 2
            self._kept = [one for one in self._kept if one[0] % self._every == 0]
