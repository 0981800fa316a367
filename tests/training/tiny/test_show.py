# SPDX-License-Identifier: Apache-2.0
"""What the demo prints fits the terminal that it runs in."""

from __future__ import annotations

import re
from typing import Any

import pytest
from goodbot_training.tiny import show

ROW = {
    "question": "What is the opposite of slow, if one may ask that at all?",
    "before": "Arr matey! The capital o' Sweden be Stockholm, yo ho! And more of it.",
    "after": "Great question! The capital of Sweden is Stockholm. Happy to help you!",
}
SCORE = {"like": 0.3, "low": 0.2, "high": 0.4, "facts": 1.0, "answers": 20.0}


def screen(monkeypatch: pytest.MonkeyPatch, columns: int) -> show.DemoPrinter:
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    return show.DemoPrinter(quiet=False)


@pytest.mark.parametrize("columns", [60, 80, 100, 140, 200])
def test_the_bar_stays_on_its_line(
    columns: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    printer = screen(monkeypatch, columns)
    found: dict[str, Any] = {
        "phase": "train",
        "step": 13,
        "steps": 32,
        "loss": 0.05,
        "seconds": 9.0,
        "left": 64.0,
    }
    printer.progress(found)
    drawn = re.sub(r"\x1b\[K|\r", "", capsys.readouterr().out)
    assert "13/32" in drawn
    assert len(drawn) < columns, "a full line would wrap, and be drawn again below"


def test_at_its_start_it_says_what_is_waited_for(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with screen(monkeypatch, 80).beginning():
        assert capsys.readouterr().out.endswith("starting the tiny model")


@pytest.mark.parametrize("columns", [60, 80, 108, 140])
def test_the_table_breaks_no_line(columns: int) -> None:
    said = "\n".join(show._table([ROW] * 2, columns)).splitlines()
    if columns >= 108:
        assert all(len(line) <= columns for line in said)
    else:
        assert f"  before  {ROW['before']}" in said, "one below the other: nothing is cut"
        assert f"  after   {ROW['after']}" in said
