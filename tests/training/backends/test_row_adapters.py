# SPDX-License-Identifier: Apache-2.0
"""Who has a slot, and what lies in it: no framework is needed for that."""

from __future__ import annotations

import gc
from typing import Any

import numpy as np
import pytest
from goodbot_training.backends import row_adapters
from goodbot_training.backends.adapters import AdapterWeights
from goodbot_training.backends.row_adapters import RowAdapters

INPUTS, OUTPUTS = 6, 10
A_RANK = 4 * (INPUTS + OUTPUTS)
"""Bytes."""


def adapter(number: int, rank: int = 2) -> AdapterWeights:
    """All of whose numbers are `number`."""
    a, b = np.full((rank, INPUTS), number, np.float32), np.full((OUTPUTS, rank), number, np.float32)
    return AdapterWeights(rank=rank, alpha=1.0, scale=0.5, pairs={"x": (a, b)})


@pytest.fixture
def held() -> RowAdapters:
    def zeros(shape: tuple[int, ...]) -> Any:
        return np.zeros(shape, np.float32)

    return RowAdapters(zeros, np.asarray)


def used(held: RowAdapters, *adapters: AdapterWeights | None) -> Any:
    with held.rows(adapters):
        return held.now


def slots(held: RowAdapters) -> dict[int, int]:
    """Slot → the number of the adapter in it."""
    half = held._pairs["x"][0]
    return {slot: int(half[slot, 0, 0]) for _, slot in held._held.values()}


def test_whoever_was_used_longest_ago_makes_room(held: RowAdapters, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_adapters, "BYTES", 4 * 2 * A_RANK)
    all_of_them = [adapter(number) for number in range(1, 7)]
    for one in all_of_them[:4]:
        used(held, one)
    used(held, all_of_them[0])
    used(held, all_of_them[4])
    assert sorted(slots(held).values()) == [1, 3, 4, 5]
    used(held, all_of_them[2], None, all_of_them[5])
    assert sorted(slots(held).values()) == [1, 3, 5, 6]


def test_there_are_no_more_slots_than_are_used(held: RowAdapters) -> None:
    kept = [adapter(number) for number in range(1, 6)]
    sizes: list[int] = []
    for one in kept:
        used(held, one)
        sizes.append(len(held._pairs["x"][0]) - 1)
    assert sizes == [1, 2, 4, 4, 8]
    assert sorted(slots(held).values()) == [1, 2, 3, 4, 5]
    for one in kept:
        held.forget(one)
    assert not held._pairs


def test_a_row_finds_its_own_and_the_base_zeros(held: RowAdapters, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_adapters, "FEW", 1)
    adapters = [adapter(1, 3), None, adapter(2, 1), adapter(3, 2)]
    now = used(held, *adapters)
    a, b = now.pairs["x"]
    for slot, one in zip(now.slots, adapters, strict=True):
        number, rank = (0, 0) if one is None else (one.pairs["x"][0][0, 0], one.rank)
        expected = np.repeat([number, 0], [rank, 3 - rank])
        np.testing.assert_array_equal(a[slot], expected[:, None].repeat(INPUTS, 1))
        np.testing.assert_array_equal(b[slot], 0.5 * expected[:, None].repeat(OUTPUTS, 1))


def test_of_a_slot_nothing_is_left_for_the_next(held: RowAdapters, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_adapters, "_LEAST", 1)
    monkeypatch.setattr(row_adapters, "BYTES", 0)
    wide, narrow = adapter(7, 4), adapter(8, 1)
    used(held, wide)
    used(held, narrow)
    a, b = held._pairs["x"]
    assert (a[1, 0] == 8).all()
    assert not a[1, 1:].any()
    assert not b[1, 1:].any()


def test_a_few_are_one_matrix_and_silent_where_a_row_is_anothers(held: RowAdapters) -> None:
    one, other = adapter(1), adapter(2)
    now = used(held, one, other, None)
    assert now.pairs["x"][0][:, 0].tolist() == [1, 1, 2, 2]
    assert now.silent[:, 0].tolist() == [[False, False, True, True], [True, True, False, False], [True] * 4]
    alone = used(held, other, other)
    assert alone.silent is None
    assert alone.pairs["x"][1].tolist() == [[1.0] * OUTPUTS] * 2
    assert not used(held, None, None).pairs


def test_who_writes_keeps_its_slot_because_no_more_are_let_in(
    held: RowAdapters, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(row_adapters, "BYTES", 6 * 2 * A_RANK)
    writing = [adapter(number) for number in range(1, 6)]
    assert held.holds(writing)
    assert not held.holds([*writing, adapter(6)]), "one is for whoever is only asked"
    used(held, *writing)
    before = slots(held)
    for number in range(20, 30):
        used(held, adapter(number))
        used(held, *writing)
        assert slots(held).items() >= before.items()


def test_a_wider_one_is_let_in_when_it_fits_and_takes_no_room_when_it_is_idle(
    held: RowAdapters, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(row_adapters, "BYTES", 16 * 2 * A_RANK)
    narrow, wide = [adapter(number) for number in range(1, 9)], adapter(9, 8)
    used(held, *narrow)
    assert not held.holds([*narrow, wide])
    used(held, wide)
    assert sum(half.nbytes for half in held._pairs["x"]) == (4 + 1) * 8 * A_RANK, "the base's, too"
    assert held.holds(narrow)
    used(held, *narrow)
    assert sorted(slots(held).values()) == [*range(1, 9)]
    assert held._pairs["x"][0].shape[1] == 2


def test_what_a_sampler_has_given_up_holds_no_slot(held: RowAdapters) -> None:
    given_up = adapter(1)
    used(held, given_up)
    del given_up
    gc.collect()
    used(held, adapter(2))
    assert list(slots(held).values()) == [2]
    assert len(held._pairs["x"][0]) == 2


@pytest.mark.parametrize("fails", range(1, 5))
def test_without_memory_for_one_nobody_keeps_a_slot_that_is_not_filled(fails: int) -> None:
    """The first calls fill slots again that are moved, the next ones the new slot; the last one settles."""
    left = [10**9]

    def counted(value: Any) -> Any:
        left[0] -= 1
        if not left[0]:
            raise MemoryError
        return np.asarray(value)

    held = RowAdapters(lambda shape: np.zeros(shape, np.float32), counted, lambda _: counted(0))
    one, other = adapter(1), adapter(2)
    used(held, one)
    left[0] = fails
    with pytest.raises(MemoryError):
        used(held, one, other)
    for _ in range(2):
        used(held, one, other)
        assert sorted(slots(held).values()) == [1, 2]
        assert len({slot for _, slot in held._held.values()} | {0}) == 3
        assert len(held._free) + len(held._held) == held._slots


def test_without_memory_for_slots_who_writes_gets_one_again(held: RowAdapters) -> None:
    one, other = adapter(1), adapter(2)
    used(held, one)
    zeros = held._zeros

    def full(_: object) -> Any:
        raise MemoryError

    held._zeros = full
    with pytest.raises(MemoryError):
        used(held, one, other)
    held._zeros = zeros
    used(held, one, other)
    assert sorted(slots(held).values()) == [1, 2]


def test_slots_are_as_narrow_as_they_can_be_when_the_widest_is_forgotten(held: RowAdapters) -> None:
    narrow, wide = adapter(1), adapter(2, 8)
    used(held, narrow, wide)
    assert held._pairs["x"][0].shape[1] == 8
    held.forget(wide)
    assert not held._pairs
    used(held, narrow)
    assert held._pairs["x"][0].shape[1] == 2
    assert slots(held) == {1: 1}
