# SPDX-License-Identifier: Apache-2.0
"""Rows of several adapters in one pass of the model.

The pass is shared: the A of all adapters that are alive stand under each other as one matrix, their B beside
each other as another, and a row's narrow product is silenced where it belongs to another's adapter. So a
second version costs two slightly wider products a projection, and not a second pass. Silenced means
zero: what a row gets is what it would get alone, up to rounding.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from goodbot_training.backends.adapters import AdapterWeights

_KEPT = 2
"""Stacks: that of the versions that write, and that of one which is only asked how it would begin."""
Adapter = tuple[AdapterWeights, Mapping[str, tuple[Any, Any]]]
"""With its weights as the framework's own arrays, by the path of the projection."""
Pairs = Mapping[str, tuple[Any, Any]]


@dataclass(frozen=True, kw_only=True, eq=False)
class Pass:
    """What the LoRA layers of a model read while a pass is under way."""

    pairs: Pairs
    """Path → A and B of all adapters together, B times its scale; empty: the base speaks on every row."""
    silent: Any = None
    """`(B, 1, ranks)`, or `(1, 1, ranks)` for all alike: true where a row takes no part; None: nowhere."""


@dataclass(frozen=True, kw_only=True, eq=False)
class _Stack:
    members: tuple[Adapter, ...]
    pairs: Pairs


class RowAdapters:
    """Of one model; its layers share it."""

    def __init__(self, stack: Callable[[Sequence[Adapter]], Pairs], array: Callable[[Any], Any]) -> None:
        """`stack`: adapters → their pairs together; `array`: NumPy → the framework's, on its device."""
        self.now: Pass | None = None
        """None: outside of `rows` the adapter that is in place has its effect, or the base."""
        self._stack, self._array = stack, array
        self._stacks: list[_Stack] = []
        self._last: tuple[tuple[int, ...], _Stack, Pass] | None = None

    @contextmanager
    def rows(self, adapters: Sequence[Adapter | None], among: Sequence[Adapter]) -> Generator[None]:
        """Within this, each row of a pass takes its own adapter; None: the base's.

        `among`: all that the next passes may need, in an order that stays: they are stacked once.
        """
        before, self.now = self.now, self._pass(adapters, among)
        try:
            yield
        finally:
            self.now = before

    def forget(self) -> None:
        """Drop what is kept of any adapter."""
        self._stacks, self._last = [], None

    def _pass(self, adapters: Sequence[Adapter | None], among: Sequence[Adapter]) -> Pass:
        if not any(adapters):
            return Pass(pairs={})
        stack = self._stacked(among)
        rows = tuple(map(id, adapters))
        if len(set(rows)) == 1:
            rows = rows[:1]  # for any number of them
        if self._last is not None and self._last[:2] == (rows, stack):
            return self._last[2]
        owner = np.concatenate([np.full(one[0].rank, id(one)) for one in stack.members])
        silent = np.asarray(rows)[:, None, None] != owner
        found = Pass(pairs=stack.pairs, silent=self._array(silent) if silent.any() else None)
        self._last = rows, stack, found
        return found

    def _stacked(self, members: Sequence[Adapter]) -> _Stack:
        for stack in self._stacks:
            if len(stack.members) == len(members) and all(map(_is, stack.members, members)):
                return stack
        made = _Stack(members=tuple(members), pairs=self._stack(members))
        self._stacks = [made, *self._stacks[: _KEPT - 1]]
        return made


def _is(one: object, other: object) -> bool:
    return one is other
