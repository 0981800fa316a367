# SPDX-License-Identifier: Apache-2.0
"""A busy machine gets more time, and a quiet one no more than it was given."""

from __future__ import annotations

import pytest
from goodbot.testing import patience as module
from goodbot.testing.patience import patience, slowness

from tests.busy import default


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> dict[str, float]:
    """What is measured from now on: the loop's seconds, and how many want each processor."""
    found = {"loop": 0.018, "wanted": 0.1}
    monkeypatch.setattr(module, "_loop_seconds", lambda: found["loop"])
    monkeypatch.setattr(module, "_wanted", lambda: found["wanted"])
    monkeypatch.setattr(module, "_KEPT_SECONDS", -1.0)
    return found


@pytest.mark.parametrize(
    ("loop", "wanted", "times"),
    [
        (0.018, 0.1, 1.0),
        (0.001, 0.0, 1.0),
        (0.054, 0.1, 3.0),
        (0.018, 4.5, 4.5),
        (0.054, 4.5, 4.5),
        (9.0, 80.0, 20.0),
    ],
)
def test_patience_is_as_much_longer_as_the_machine_is_slow(
    machine: dict[str, float], loop: float, wanted: float, times: float
) -> None:
    machine |= {"loop": loop, "wanted": wanted}
    assert slowness() == pytest.approx(times)
    assert patience(10) == pytest.approx(10 * times)


def test_a_measurement_is_good_for_a_few_seconds(
    machine: dict[str, float], monkeypatch: pytest.MonkeyPatch
) -> None:
    before = slowness()
    monkeypatch.setattr(module, "_KEPT_SECONDS", 3600.0)
    machine["wanted"] = 9.0
    assert slowness() == before
    monkeypatch.setattr(module, "_KEPT_SECONDS", -1.0)
    assert slowness() == 9.0


def test_the_limit_of_a_test_has_room(request: pytest.FixtureRequest) -> None:
    [args] = [mark.args for mark in request.node.iter_markers("timeout")]
    assert args[0] >= 2 * default(request.config) > 0


@pytest.mark.timeout(1000)
def test_so_has_one_that_a_test_asks_for(request: pytest.FixtureRequest) -> None:
    assert request.node.get_closest_marker("timeout").args[0] >= 2000
