# SPDX-License-Identifier: Apache-2.0
"""The progress of a run in words: on a terminal one line in place, else plain lines."""

from __future__ import annotations

import io
import math
from typing import Any

import pytest
from goodbot.api import progress as told
from goodbot.api.progress import PHASES, bar, phase, progress_line

STEP = {
    "phase": "train",
    "step": 12,
    "steps": 32,
    "loss": 0.31249,
    "eta": 61.2,
    "token_acceptance": 0.941,
    "trajectory_acceptance": 0.88,
}


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True

    def fileno(self) -> int:
        raise OSError("its size is not known")


def test_the_bar_says_step_and_time_left_and_the_figures_to_who_asks() -> None:
    assert bar(STEP, 120) == "learning             █████████··············· 12/32 61 s left"
    assert bar(STEP, 120, figures=True) == (
        "learning             █████████··············· "
        "12/32 loss 0.312 61 s left 94% of tokens, 88% of answers fit"
    )


@pytest.mark.parametrize("columns", [20, 40, 60, 79, 80, 120])
def test_where_there_is_little_room_the_rest_goes_first(columns: int) -> None:
    line = bar(STEP, columns, figures=True)
    assert len(line) <= columns
    assert line.startswith("learning")
    assert ("61 s left" in line) == (columns >= 40)
    assert ("94% of tokens, 88% of answers fit" in line) == (columns >= 79), "a usual terminal"
    assert not line.endswith(("of", "tokens,", "loss"))


@pytest.mark.parametrize("said", PHASES)
def test_each_phase_of_a_round_has_words_of_its_own(said: str) -> None:
    """That of the notes was told by the protocol's own word, in every language."""
    told = {phase({"phase": said}, language) for language in ("en", "de", "ja")}
    assert len(told) == 3
    assert said not in told


def test_before_anything_is_known_the_phase_is_told() -> None:
    assert told.sentence({"phase": "load", "step": 0, "steps": 0}) == "loading"
    assert bar({"phase": "downloading (MB)"}).startswith("downloading (MB)")
    older = {name: value for name, value in STEP.items() if name != "trajectory_acceptance"}
    assert told.details(older, figures=True)[-1] == "94% of tokens fit"
    assert told.details(older)[-1] == "61 s left"


@pytest.mark.parametrize("stream", [Terminal(), io.StringIO()], ids=["terminal", "file"])
def test_s8_a_foreign_word_is_a_line_for_people(monkeypatch: pytest.MonkeyPatch, stream: io.StringIO) -> None:
    """A child's own word for what it does was drawn as it came: it set the terminal's title, say."""
    monkeypatch.setattr("sys.stderr", stream)
    monkeypatch.setenv("TERM", "xterm")
    word = "\x1b]0;mine\x07\x1b[2Jof a\nworker\r\x9b31m\u202e" + "x" * 500
    with progress_line(quiet=False) as show:
        show({"phase": word, "step": 1, "steps": 2, "loss": math.nan, "eta": math.inf})
    text = stream.getvalue().replace("\r\x1b[K", "")
    assert text.startswith(r"of a\nworker")
    assert not set(text.rstrip("\n")) & set("\x1b\x07\r\n\x9b\u202e")
    assert "x" * 50 not in text
    assert "nan" not in text
    assert "inf" not in text


def test_status_says_as_much_and_who_does_something_else_hears_less() -> None:
    assert told.sentence(STEP) == "learning: 12/32, 61 s left"
    assert told.sentence({**STEP, "left": 1}).startswith("learning: 12/32, 61 s left. I started over: 1 ")
    assert told.sentence(STEP, figures=True) == (
        "learning: 12/32, loss 0.312, 61 s left, 94% of tokens, 88% of answers fit"
    )
    assert told.brief(STEP) == "learning: 12/32, 61 s left"


@pytest.mark.parametrize(
    ("seconds", "says"), [(0.4, "0 s left"), (99, "99 s left"), (125, "2 min left"), (12600, "3.5 h left")]
)
def test_the_time_left_is_as_exact_as_it_is_known(seconds: float, says: str) -> None:
    assert told.left(seconds) == says


def shown(
    monkeypatch: pytest.MonkeyPatch, stream: io.StringIO, *, quiet: bool = False, figures: bool = False
) -> str:
    monkeypatch.setattr("sys.stderr", stream)
    monkeypatch.setenv("TERM", "xterm")
    events: list[dict[str, Any]] = [{"phase": "load", "step": 0, "steps": 1}]
    events += [{**STEP, "step": step} for step in range(1, 33)]
    with progress_line(quiet=quiet, figures=figures) as show:
        for event in events:
            show(event)
            show(event)  # the daemon is asked five times a second
    return stream.getvalue()


def test_on_a_terminal_it_is_one_line_that_is_taken_away(monkeypatch: pytest.MonkeyPatch) -> None:
    text = shown(monkeypatch, Terminal())
    assert "\n" not in text
    assert text.count("\r\x1b[K") == 2 * 33 + 1
    assert text.endswith("\r\x1b[K")


def test_in_a_log_it_is_a_line_for_each_tenth(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = shown(monkeypatch, io.StringIO()).splitlines()
    assert lines[0] == "loading, 0/1"
    assert lines[-1] == "learning, 32/32, 61 s left"
    assert len(shown(monkeypatch, io.StringIO(), figures=True).splitlines()) == len(lines)
    all_of_it = shown(monkeypatch, io.StringIO(), figures=True).splitlines()[-1]
    assert all_of_it == "learning, 32/32, loss 0.312, 61 s left, 94% of tokens, 88% of answers fit"
    assert len(lines) == 1 + 11
    assert not any("\x1b" in line or "█" in line for line in lines)


def test_a_program_hears_nothing_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    assert shown(monkeypatch, io.StringIO(), quiet=True) == ""
    assert shown(monkeypatch, Terminal(), quiet=True) == ""
