# SPDX-License-Identifier: Apache-2.0
"""What goodbot says that a round on the real model takes, beside what it took."""

from __future__ import annotations

import sys

import pytest

from tests.real.conftest import Pupil

pytestmark = [
    pytest.mark.real,
    pytest.mark.timeout(2400),
    pytest.mark.skipif(sys.platform != "linux", reason="what a process takes is read from /proc"),
]


def test_memory_is_told_as_it_is_taken(pupil: Pupil) -> None:
    told = pupil.planned["estimate"]
    needed = told["peak"] or told["memory"]["needed"]
    taken = pupil.taken["train"].memory
    print(f"a round: {needed / 1e9:.2f} GB told, {taken / 1e9:.2f} GB taken")
    assert 0.9 * taken < needed < 1.5 * taken


def test_what_the_model_costs_is_told_before_it_is_taken(pupil: Pupil) -> None:
    cost = pupil.cost["estimate"]
    serving, training = pupil.taken["serve"].memory, pupil.taken["train"].memory
    print(f"serving: {cost['serving'] / 1e9:.2f} GB told, {serving / 1e9:.2f} GB taken")
    assert 0.8 * serving < cost["serving"] < 1.6 * serving
    assert 0.9 * training < cost["usual"] < 2.5 * training, "it is for longer turns than these"
    assert cost["usual"] < cost["training"]


def test_time_is_told_as_it_is_taken(pupil: Pupil) -> None:
    """In seconds of processors; beside busy ones the same work takes up to twice as many."""
    told = pupil.planned["estimate"]
    least, most = (told[name]["cpu"] for name in ("least", "most"))
    taken = pupil.taken["train"].cpu
    print(f"a round: {told['total']['cpu']:.0f} s told ({least:.0f} to {most:.0f}), {taken:.0f} s taken")
    assert least / 2 < taken < 2.5 * most
