# SPDX-License-Identifier: Apache-2.0
"""The decision: what objects, in which words, and at which hour."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from goodbot.api.sentences import waits
from goodbot.config import TrainingConfig
from goodbot.config.hours import Hours
from goodbot.learning.idle import Lasting, Limits, Readings

NOON = datetime.fromisoformat("2027-01-15T12:00")
IDLE = Readings(on_battery=False, others_load=0.1, others_gpu=0.0)
BUSY = waits("processors", load=0.8, limit=0.75)
BUSIER = waits("processors", load=0.9, limit=0.75)


def objection(readings: Readings, at: datetime = NOON, **training: object) -> str:
    found = Limits.of(TrainingConfig(**training)).objection(readings, at)  # type: ignore[arg-type]
    return found.for_everybody() if found else ""


def test_what_cannot_be_read_objects_to_nothing() -> None:
    assert objection(Readings()) == ""
    assert objection(IDLE) == ""


def test_each_pressure_says_what_would_change_it() -> None:
    assert objection(Readings(on_battery=True)) == "training waits until the machine is plugged in"
    assert (
        objection(Readings(others_load=0.83))
        == "training waits until other programs use 75% of the processors or less (now 83%)"
    )
    assert (
        objection(Readings(others_gpu=0.9))
        == "training waits until other programs use 30% of the GPU or less (now 90%)"
    )
    assert objection(IDLE, quiet_hours="11:30-13:00") == "training waits until 13:00: these are quiet hours"


def test_each_limit_is_the_owners() -> None:
    assert objection(Readings(on_battery=True), on_battery=True) == ""
    assert objection(Readings(others_load=1.0), max_load=1.0) == ""
    assert objection(Readings(others_load=0.2), max_load=0.1) != ""
    assert objection(Readings(others_gpu=0.4), max_gpu=0.5) == ""


@pytest.mark.parametrize(
    ("window", "inside", "outside"),
    [
        ("23:00-07:00", ["23:00", "23:59", "00:00", "06:59"], ["07:00", "12:00", "22:59"]),
        ("9:00-17:30", ["09:00", "17:29"], ["08:59", "17:30", "00:00"]),
        ("00:00-00:01", ["00:00"], ["00:01", "23:59"]),
        (" 22:15 - 22:45 ", ["22:15"], ["22:45"]),
    ],
)
def test_quiet_hours_may_go_over_midnight(window: str, inside: list[str], outside: list[str]) -> None:
    hours = Hours.parse(window)
    assert hours is not None

    def at(text: str) -> datetime:
        return datetime.fromisoformat(f"2027-01-15T{text}")

    assert [text for text in inside + outside if hours.hold(at(text))] == inside


def test_no_quiet_hours_are_none() -> None:
    assert Hours.parse("") is None
    day = [NOON + timedelta(minutes=15 * n) for n in range(96)]
    assert {objection(IDLE, at) for at in day} == {""}


def test_a_run_is_held_after_a_minute_of_pressure_and_goes_on_after_two_of_ease() -> None:
    lasting = Lasting()
    assert lasting.look(BUSY, 0) is None
    assert lasting.look(BUSY, 59) is None
    assert lasting.look(BUSY, 60) is BUSY
    assert lasting.look(BUSIER, 70) is BUSIER  # the figures are today's
    assert lasting.look(None, 80) is BUSIER
    assert lasting.look(None, 199) is BUSIER
    assert lasting.look(None, 200) is None


def test_a_peak_holds_no_run_and_a_lull_frees_none() -> None:
    lasting = Lasting()
    for now in range(0, 600, 50):  # a peak every 50 s, with ease between
        assert lasting.look(BUSY, now) is None
        assert lasting.look(None, now + 25) is None
    lasting.look(BUSY, 1000)
    assert lasting.look(BUSY, 1060) is BUSY
    for now in range(1100, 2000, 100):
        assert lasting.look(None, now) is BUSY
        assert lasting.look(BUSY, now + 50) is BUSY
