# SPDX-License-Identifier: Apache-2.0
"""The last line of a terminal counts the seconds of whoever waits; elsewhere whole lines are printed."""

from __future__ import annotations

import io
import time

import pytest
from goodbot.base import live_line
from goodbot.base.live_line import LiveLine

from tests.support import patience


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def out(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    monkeypatch.setenv("COLUMNS", "30")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(live_line, "_STILL", 0.01)
    return Terminal()


def sees(out: Terminal, text: str) -> None:
    end = time.monotonic() + patience(10)
    while text not in out.getvalue():
        assert time.monotonic() < end, out.getvalue()
        time.sleep(0.01)


def test_it_moves_while_a_program_says_nothing(out: Terminal) -> None:
    with LiveLine(out, "installing") as line:
        sees(out, "installing … 0 s")
        line.say("There it is.")
        sees(out, "There it is.\n")
        sees(out, "one moment … 0 s")
        line.show("asking")
        sees(out, "asking … 0 s")
    assert out.getvalue().endswith("\r\x1b[K"), "nothing is left of it"


def test_what_stands_where_nothing_is_said_is_the_callers_word(out: Terminal) -> None:
    with LiveLine(out, moment="einen Moment"):
        sees(out, "einen Moment … 0 s")


def test_it_is_never_longer_than_the_terminal(out: Terminal) -> None:
    with LiveLine(out, "x" * 90):
        pass
    assert max(len(one) for one in out.getvalue().split("\r\x1b[K")) == 29


@pytest.mark.parametrize("dumb", [True, False])
def test_without_a_terminal_whole_lines_are_printed(monkeypatch: pytest.MonkeyPatch, dumb: bool) -> None:
    monkeypatch.setenv("TERM", "dumb")
    out = Terminal() if dumb else io.StringIO()
    with LiveLine(out, "installing") as line:
        line.show("asking")
        line.say("There it is.")
    assert out.getvalue() == "There it is.\n"


def test_a_quiet_one_prints_nothing(out: Terminal) -> None:
    with LiveLine(out, "installing", quiet=True) as line:
        line.say("There it is.")
    assert out.getvalue() == ""
