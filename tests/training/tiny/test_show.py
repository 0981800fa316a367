# SPDX-License-Identifier: Apache-2.0
"""What the demo prints fits the terminal that it runs in."""

from __future__ import annotations

import re
from typing import Any

import pytest
from goodbot.api.texts import LANGUAGES
from goodbot.api.texts.terminal import speaking
from goodbot.base.columns import wide
from goodbot_training.tiny import show

ROW = {
    "question": "What is the opposite of slow, if one may ask that at all?",
    "before": "Arr matey! The capital o' Sweden be Stockholm, yo ho! And more of it.",
    "after": "Great question! The capital of Sweden is Stockholm. Happy to help you!",
}
SCORE = {"liked_share": 0.3, "liked_low": 0.2, "liked_high": 0.4, "facts": 1.0, "answers": 20.0}
RESULT: dict[str, Any] = {
    "before": SCORE,
    "after": SCORE,
    "answers": [ROW],
    "seconds": 29.0,
    "train_seconds": 9.0,
    "adapter": {"sha256": "94df2d9cfff4" * 5},
    "adapter_directory": "/h/demo/v1",
    "home": "/h/demo",
}
ENGLISH = """
answers in the liked style: 30% (20%–40%) → 30% (20%–40%)
right answers:              20 of 20 → 20 of 20
(20 new questions, which were never rated; 95 % intervals)

training 9 s, everything 29 s
the adapter:  /h/demo/v1  (sha256 94df2d9cfff4…)
all its data: /h/demo

What next:
"""
"""As docs/demo.md has it."""


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


def told(capsys: pytest.CaptureFixture[str]) -> list[str]:
    """All that the demo says, from its beginning to its end."""
    printer = show.DemoPrinter(quiet=False)
    with printer.beginning():
        printer.opening("mlx")
        printer.word_over(2, 3)
        printer.owner("friendly", 40)
        printer.asking("before", 20, 20)
        printer.rated(40, 40, "", "", 1)
        printer.training_started(40)
        printer.verdict("activated", "…")
        printer.verdict("refused", "…")
        printer.verdict("failed", "…")
        printer.asking("after", 20, 20)
    printer.result(RESULT)
    return capsys.readouterr().out.splitlines()


def test_in_english_it_says_what_the_page_shows(capsys: pytest.CaptureFixture[str]) -> None:
    with speaking("en"):
        assert ENGLISH in "\n".join(told(capsys)) + "\n"


@pytest.mark.parametrize("language", [language for language in LANGUAGES if language != "en"])
def test_all_of_it_is_in_the_language_of_the_terminal(
    language: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with speaking("en"):
        english = told(capsys)
    with speaking(language):
        said = told(capsys)
    assert len(said) == len(english)
    shown = str(ROW["question"])[:28]
    assert [line for line in said if line in english and line and not line.startswith(shown)] == []


@pytest.mark.parametrize("language", sorted(LANGUAGES))
def test_what_stands_below_each_other_begins_in_one_column(
    language: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Also where a sign takes two columns."""
    with speaking(language):
        said = told(capsys)
        names = "\n".join(show._table([ROW], 60)).splitlines()[2:]
    places = [line for line in said if "/h/demo" in line]
    assert len(places) == 2
    assert len({wide(line[: line.index("/h/demo")]) for line in places}) == 1
    begins = [
        wide(line[: line.index(ROW[when])]) for when, line in zip(("before", "after"), names, strict=True)
    ]
    assert begins[0] == begins[1]
