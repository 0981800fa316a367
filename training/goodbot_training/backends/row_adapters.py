# SPDX-License-Identifier: Apache-2.0
"""Rows of several adapters in one pass of the model.

Of each projection there is one A `(slots, rank, in)` and one B `(slots, rank, out)`, B times its scale. An
adapter that writes has a slot in them, with zeros where it has a lower rank than the widest; whoever was
used longest ago makes room for the next. Slot 0 is the base's, and zero. What a pass costs goes by its
rows, however many adapters have slots:

* Of one adapter: its own matrices, as if it were in place.
* Of a few: theirs as one matrix, and a row's narrow product is silenced where it belongs to another's. No
  row needs a copy of anything, but each is multiplied with all of the few.
* Of more: each row takes its own slot's matrices.

A row gets what it would get alone, up to rounding.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Collection, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from weakref import ReferenceType, ref

import numpy as np

from goodbot_training.backends.adapters import AdapterWeights

FEW = 4
"""Adapters up to which each row is multiplied with all of them, instead of getting its own. It was chosen to
cost less, and not measured."""
BYTES = 1 << 30
"""Of all slots, about: 31 of rank 8 for a model of 1.7 billion weights in fp32, 24 for one of 8 billion in
bf16. That is a quarter of what the caches of their answers may take. It is taken as it is needed. `_LEAST`
slots may take more. The base's comes on top, and so do the stacks."""
_LEAST, _MOST = 4, 256
"""Slots. In any case: the old version, the new one, one on trial and one that is only asked. At most: twice
as many as answers are written at the same time; the others' weights are in memory."""
_KEPT = 3
"""Stacks: that of the versions that write, of those whose prompts are read, and of one that is only asked how
it would begin. Each is a copy of up to `FEW` adapters; that of a single one need not be."""
Pairs = Mapping[str, tuple[Any, Any]]


@dataclass(frozen=True, kw_only=True, eq=False)
class Pass:
    """What the LoRA layers of a model read while a pass is under way."""

    pairs: Pairs
    """Path → A `(ranks, in)` and B `(ranks, out)` of all adapters together, B times its scale; empty: the
    base speaks on every row."""
    silent: Any = None
    """`(B, 1, ranks)`: true where a row takes no part; None: nowhere."""
    slots: Any = None
    """`(B,)`: the slot of each row, and `pairs` are `(slots, rank, in)` and `(slots, rank, out)`."""


class RowAdapters:
    """Of one model; its layers share it."""

    def __init__(
        self,
        zeros: Callable[[tuple[int, ...]], Any],
        array: Callable[[Any], Any],
        settle: Callable[[Pairs], object] = lambda _: None,
    ) -> None:
        """`zeros`: a shape → the framework's array, of the type that the numbers of slots have;
        `array`: NumPy → the framework's, on its device; `settle`: computes what it has only noted."""
        self.now: Pass | None = None
        """None: outside of `rows` the adapter that is in place has its effect, or the base."""
        self._zeros, self._array, self._settle = zeros, array, settle
        self._bytes: int = zeros((1,)).itemsize
        self._pairs: Pairs = {}
        self._rank = self._slots = 0
        self._held: OrderedDict[int, tuple[ReferenceType[AdapterWeights], int]] = OrderedDict()
        """By identity, who was used last at the end: the adapter and its slot. A sampler that is given up
        forgets nothing: its adapters are not held by this."""
        self._free: list[int] = []
        self._stacks: list[tuple[tuple[int, ...], Pairs]] = []
        self._last: tuple[tuple[int, ...], Pass] | None = None

    @contextmanager
    def rows(self, adapters: Sequence[AdapterWeights | None]) -> Generator[None]:
        """Within this, each row of a pass takes its own adapter; None: the base's. One alone is all rows'."""
        before, self.now = self.now, self._pass(adapters)
        try:
            yield
        finally:
            self.now = before

    def holds(self, adapters: Collection[AdapterWeights]) -> bool:
        """Whether answers of all these can be written at the same time, with a slot left for one that is
        only asked. So who writes keeps its slot: it was used later than whoever does not."""
        return len(adapters) < _LEAST or len(adapters) < self._room(_widest(adapters), adapters)

    def forget(self, adapter: AdapterWeights) -> None:
        """Its slot is free. If all the others are narrower, theirs are, too: who writes gets a narrow one."""
        found = self._held.pop(id(adapter), None)
        if found is None:
            return
        self._stacks, self._last = [], None
        self._free.append(found[1])
        left = [one for known, _ in self._held.values() if (one := known())]
        if not left or _widest(left) < self._rank:
            self._clear()

    def _pass(self, adapters: Sequence[AdapterWeights | None]) -> Pass:
        distinct = {id(one): one for one in adapters if one is not None}
        if not distinct:
            return Pass(pairs={})
        self._use(distinct)
        rows = tuple(0 if one is None else self._held[id(one)][1] for one in adapters)
        if len(set(rows)) == 1:
            rows = rows[:1]  # for any number of them
        if self._last is None or self._last[0] != rows:
            self._last = rows, self._made(rows, _widest(distinct.values()))
        return self._last[1]

    def _made(self, rows: tuple[int, ...], rank: int) -> Pass:
        owners = tuple(sorted({*rows} - {0}))
        if len(owners) > FEW:
            every = {path: (a[:, :rank], b[:, :rank]) for path, (a, b) in self._pairs.items()}
            return Pass(pairs=every, slots=self._array(np.asarray(rows, np.int32)))
        silent = np.asarray(rows)[:, None, None] != np.repeat(owners, rank)
        pairs = self._stacked(owners, rank)
        return Pass(pairs=pairs, silent=self._array(silent) if silent.any() else None)

    def _stacked(self, owners: tuple[int, ...], rank: int) -> Pairs:
        for known, pairs in self._stacks:
            if known == (*owners, rank):
                return pairs
        where: Any = owners[0] if len(owners) == 1 else self._array(np.asarray(owners, np.int32))
        pairs = {
            path: (_joined(a[where], rank), _joined(b[where], rank)) for path, (a, b) in self._pairs.items()
        }
        self._settle(pairs)
        self._stacks = [((*owners, rank), pairs), *self._stacks[: _KEPT - 1]]
        return pairs

    # -- slots

    def _room(self, rank: int, adapters: Collection[AdapterWeights]) -> int:
        """Slots that there may be for adapters of this rank on the projections of these."""
        [some, *_] = adapters
        return min(_MOST, max(_LEAST, BYTES // (rank * some.numbers_a_rank * self._bytes)))

    def _use(self, adapters: Mapping[int, AdapterWeights]) -> None:
        """Give each of these a slot."""
        new: list[AdapterWeights] = []
        for key, one in adapters.items():
            if key in self._held and self._held[key][0]() is one:
                self._held.move_to_end(key)
            else:
                new.append(one)
        if not new:
            return
        # First: what a framework's pending work still refers to, it would have to copy.
        self._stacks, self._last = [], None
        for key in [key for key, (known, _) in self._held.items() if known() is None]:
            self._free.append(self._held.pop(key)[1])
        try:
            self._fit(adapters)
            for one in new:
                self._put(one)
            self._settle(self._pairs)
        except BaseException:  # as without memory: who is in which slot is not known any more
            self._clear()
            raise

    def _fit(self, adapters: Mapping[int, AdapterWeights]) -> None:
        """Have slots for these, wide enough and as many as are used, if that changes anything."""
        rank = max(self._rank, _widest(adapters.values()))
        if self._room(rank, adapters.values()) < len(adapters):  # some idle one is wider than they are
            rank = _widest(adapters.values())
        room = max(self._room(rank, adapters.values()), len(adapters))
        used = len({*self._held, *adapters})
        if rank == self._rank and (used <= self._slots or self._slots >= room):
            return
        kept = [one for known, _ in self._held.values() if (one := known()) and one.width <= rank]
        self._clear()  # before there are new ones
        slots = min(room, 1 << (used - 1).bit_length())
        [some, *_] = adapters.values()
        self._pairs = {
            path: (self._zeros((slots + 1, rank, a.shape[1])), self._zeros((slots + 1, rank, b.shape[0])))
            for path, (a, b) in some.pairs.items()
            if a.ndim == 2
        }
        self._rank, self._slots, self._free = rank, slots, [*range(slots, 0, -1)]
        for one in kept[-slots:]:
            self._put(one)

    def _clear(self) -> None:
        """Nobody has a slot, and there are none."""
        self._pairs, self._held, self._free = {}, OrderedDict(), []
        self._stacks, self._last = [], None
        self._rank = self._slots = 0

    def _put(self, one: AdapterWeights) -> None:
        slot = self._free.pop() if self._free else self._held.popitem(last=False)[1][1]
        for path, halves in self._pairs.items():
            a, b = one.pairs[path]
            for half, own in zip(halves, (a, b.T * np.float32(one.scale)), strict=True):
                padded = np.zeros((self._rank, own.shape[1]), np.float32)
                padded[: len(own)] = own
                half[slot] = self._array(padded)
        self._held[id(one)] = ref(one), slot


def _widest(adapters: Iterable[AdapterWeights]) -> int:
    return max(one.width for one in adapters)


def _joined(half: Any, rank: int) -> Any:
    """The first so many rows of each of several adapters as one matrix."""
    return half[..., :rank, :].reshape(-1, half.shape[-1])
