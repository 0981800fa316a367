# SPDX-License-Identifier: Apache-2.0
"""Adapters in memory: who goes, who stays, and that whoever went comes back as it was."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from goodbot.base.errors import AdapterError
from goodbot_training.backends import residency
from goodbot_training.backends.adapters import AdapterWeights
from goodbot_training.backends.residency import Residency, StoredAdapter


class World:
    """Files whose names are what lies in them."""

    def __init__(self) -> None:
        self.read: list[str] = []
        self.dropped: list[int] = []
        self.in_use: set[int] = set()
        self.residency = Residency(self.weights, lambda: self.in_use, lambda one, _: self.dropped.append(one))

    def weights(self, directory: Path) -> AdapterWeights:
        self.read.append(directory.name)
        if directory.name == "gone":
            raise AdapterError("no such file")
        half = np.full((1, 128), float(directory.name), np.float32)
        return AdapterWeights(rank=1, alpha=1.0, scale=1.0, pairs={"x": (half, half.T)})

    def keep(self, *versions: int) -> None:
        for version in versions:
            directory = Path(str(version))
            self.residency.keep(version, StoredAdapter(directory=directory, weights=self.weights(directory)))
        self.read.clear()

    def number(self, version: int) -> float:
        return float(self.residency.weights(version).pairs["x"][0][0, 0])


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    """With room for three."""
    monkeypatch.setattr(residency, "BYTES", 3 * 2 * 128 * 4)
    return World()


def test_what_was_not_used_for_longest_is_dropped_and_read_again(world: World) -> None:
    world.keep(1, 2, 3)
    assert world.number(1) == 1.0
    world.keep(4)
    assert world.dropped == [2]
    assert [world.residency.lacking(version) for version in (1, 2, 9)] == [None, Path("2"), None]
    assert 2 in world.residency
    assert world.number(2) == 2.0
    assert (world.read, world.dropped) == (["2"], [2, 3])


def test_who_is_active_or_writes_is_never_dropped(world: World) -> None:
    world.keep(1, 2)
    world.in_use = {1, 2}
    world.keep(3, 4, 5)
    assert world.dropped == [3, 4]
    world.in_use = {1, 2, 5, 6}
    world.keep(6)
    assert world.dropped == [3, 4], "beyond the bound for as long as it must be"
    world.in_use = set()
    world.keep(7)
    assert world.dropped == [3, 4, 1, 2]


def test_another_in_its_place_is_not_the_old_one(world: World) -> None:
    world.keep(1)
    world.residency.note(1, Path("8"))
    assert world.dropped == [1]
    assert world.number(1) == 8.0
    world.residency.remove(1)
    assert 1 not in world.residency
    assert world.residency.lacking(1) is None


def test_files_that_went_away_are_told(world: World) -> None:
    world.residency.note(1, Path("gone"))
    with pytest.raises(AdapterError, match="no such file"):
        world.residency.weights(1)
    assert world.residency.lacking(1) == Path("gone")


def test_the_room_of_what_was_dropped_is_free(world: World) -> None:
    for _ in range(3):
        world.keep(*range(1, 10))
    held: Any = world.residency._weights
    assert list(held) == [7, 8, 9]
    assert world.residency._bytes == sum(one.nbytes for one in held.values())
