# SPDX-License-Identifier: Apache-2.0
"""Stored moments, where this machine's clock was set back or jumped ahead since."""

from __future__ import annotations

import math

from goodbot.base.clock import Reached, Steady, ago
from goodbot.commands.status import _recent
from goodbot.conversation.notifications import serving
from goodbot.inference.servers.health import Righted
from goodbot.store.canaries import Trial
from goodbot.testing import VirtualClock

DAY = 86400.0


def test_how_long_ago_a_moment_of_a_time_to_come_was_nobody_knows() -> None:
    assert (ago(90.0, 100.0), ago(100.0, 100.0), ago(100.1, 100.0)) == (10.0, 0.0, math.inf)


def test_what_is_waited_for_counts_from_when_it_was_first_asked_for() -> None:
    clock = VirtualClock()
    began, reached = clock.now(), Reached(clock)
    assert reached.past(began - 5) == began - 5
    for passes in (0, 60, DAY):
        clock.advance(passes)
        assert reached.past(began + 9 * DAY) == began
    clock.jump(-2 * DAY)
    assert reached.past(began + 9 * DAY) == clock.now()
    clock.jump(11 * DAY)
    assert reached.past(began + 9 * DAY) == began + 9 * DAY


def test_a_jump_ahead_is_believed_once_it_has_lasted() -> None:
    clock = VirtualClock()
    steady = Steady(clock, 3600)
    seen: list[bool] = []
    for jumps, passes in ((0, 9 * DAY), (3599, 30), (3601, 30), (0, 3599), (0, 1), (-DAY, 30)):
        clock.jump(jumps)
        clock.advance(passes)
        seen.append(steady.look())
    assert seen == [True, True, False, False, True, True]


def test_a_machine_that_sleeps_each_night_is_believed_once_it_was_awake_for_long_enough() -> None:
    clock = VirtualClock()
    steady = Steady(clock)
    seen: list[bool] = []
    night = 0.9 * DAY
    for slept, awake in ((night, 1800), (night, 1799), (night, 1), (0, 0), (2 * DAY, 3599), (0, 1)):
        clock.jump(slept)
        seen.append(steady.look())
        clock.advance(awake)
    assert [*seen, steady.look()] == [False, False, False, True, False, False, True]


def test_at_start_a_clock_is_believed_that_is_not_far_from_what_was_stored_last() -> None:
    for ahead, believed in ((-9 * DAY, True), (DAY, True), (DAY + 1, False)):
        clock = VirtualClock()
        steady = Steady(clock)
        steady.started(clock.now() - ahead)
        assert steady.look() is believed
        clock.advance(3599)
        assert steady.look() is believed
        clock.advance(1)
        assert steady.look()


def test_what_ended_in_a_time_to_come_is_no_news() -> None:
    trial = Trial(version=2, against=1, state="passed", reason="", began_at=0.0, ended_at=10 * DAY)
    told = [bool([*serving.ended(trial, days * DAY)]) for days in (9, 10, 10.9, 11)]
    assert told == [False, True, True, False]
    righted = Righted(at=10 * DAY, what="the server served another version")
    assert _recent(righted, 9 * DAY, "en") == ""
    assert "2 min ago" in _recent(righted, 10 * DAY + 120, "en")
