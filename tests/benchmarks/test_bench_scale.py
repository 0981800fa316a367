# SPDX-License-Identifier: Apache-2.0
"""The benchmark of trainings elsewhere: its job and its rows. What it measures is nobody's test."""

from __future__ import annotations

from pathlib import Path

import pytest
from goodbot_training.job.types import HELD_OUT, Job

from tests.benchmarks.bench_scale import Told, ratings, show
from tests.training.ray import nodes


def test_all_train_on_the_same_ratings(tmp_path: Path) -> None:
    one, other = (Job.parse(ratings(tmp_path, tmp_path / name, 12)) for name in ("a", "b"))
    assert one.items == other.items
    assert len({item.id for item in one.items}) == 12
    assert sum(item.split == HELD_OUT for item in one.items) == 2
    assert {item.temperature for item in one.items} == {1.0}, "a Tinker server reads at no other"
    assert len({str(item.messages) for item in one.items}) == 12
    assert {item.reward for item in one.items} == {1.0, -1.0}


def test_a_row_says_how_far_it_is_from_one_process(capsys: pytest.CaptureFixture[str]) -> None:
    here = Told(losses=[1.0, 0.5], passed=True, seconds=2.0)
    show("here", here, here)
    show("near", Told(losses=[1.0, 0.25], passed=True, seconds=3.0, sent=12345), here)
    show("far", Told(losses=[1.0, 0.5], passed=False), here)
    assert capsys.readouterr().out.splitlines() == [
        "| here | 0.0e+00 | passed | 2.0 | 0 | 0 |",
        "| near | 2.5e-01 | passed (the same) | 3.0 | 12,345 | 0 |",
        "| far | 0.0e+00 | not passed (**not** the same) | 0.0 | 0 | 0 |",
    ]
    with pytest.raises(ValueError):
        show("short", Told(losses=[1.0], passed=True), here)


def test_what_is_not_installed_says_how_to_have_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nodes, "find_spec", lambda name: None)
    assert nodes.missing() == "ray is not installed: `make test-ray` does it"
