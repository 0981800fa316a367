# SPDX-License-Identifier: Apache-2.0
"""What the demo prints: a story on a terminal, plain lines elsewhere, or one JSON object."""

from __future__ import annotations

import contextlib
import shutil
import sys
from collections.abc import Generator, Mapping, Sequence
from typing import Any

from goodbot.api.progress import bar
from goodbot.base.live_line import LiveLine
from goodbot.base.printing import say_json

_SHOWN_ANSWERS = 6
_SHOWN_RATINGS = 8
_QUESTION = 28
_LEAST = 36
"""Columns that an answer needs beside another."""
_WIDTH = 38
"""Columns of the answer before where nobody has a screen."""


class DemoPrinter:
    """Prints on stdout; with `quiet` only the JSON object at the end."""

    def __init__(self, *, quiet: bool) -> None:
        self._quiet = quiet
        self._line = LiveLine(sys.stdout, quiet=quiet)

    @contextlib.contextmanager
    def beginning(self) -> Generator[None]:
        """Something moves on a terminal from here on, also while nothing is said."""
        self._say("Good bot. Bad bot. It learns.\n")
        with self._line:
            self._line.show("starting the tiny model")
            yield

    def opening(self, backend: str) -> None:
        self._say(
            f"A tiny model (1M parameters, {backend}) answers in three styles at random.\n\n"
            "First one bad rating, with its reason. Nothing is trained."
        )

    def disliked(self, question: str, answer: str, chip: str) -> None:
        self._say(f"      {question}  →  {answer}\n  👎  {chip}")

    def follows(self, question: str, answer: str) -> None:
        self._say(f"      {question}  →  {answer}")

    def word_over(self, short: int, asked: int) -> None:
        followed = f"The next answers: {short} of {asked} are short."
        self._say(f"{followed} The rating is taken back, and its note with it.\n")

    def owner(self, like: str, ratings: int) -> None:
        self._say(
            f"Now {ratings} ratings. The owner likes “{like}” and presses the wrong button one time in ten.\n"
        )

    def asking(self, name: str, done: int, total: int) -> None:
        self._update(f"new questions, {name} training: {done}/{total}", end=done == total)

    def rated(self, done: int, total: int, question: str, answer: str, value: int) -> None:
        if done <= _SHOWN_RATINGS:
            self._say(f"  {'👍' if value > 0 else '👎'}  {question}  →  {answer}")
        else:
            self._update(f"  … rated {done}/{total}", end=done == total)

    def training_started(self, items: int) -> None:
        self._say(f"\n{items} ratings: training starts by itself, in a process of its own.")

    def progress(self, progress: Mapping[str, Any]) -> None:
        last = progress.get("step") == progress.get("steps") and progress.get("phase") == "gate"
        self._update("  " + bar(progress, _columns() - len("  ") - 1), end=last)

    def verdict(self, state: str, reason: str) -> None:
        self._update("", end=False)
        word = {"activated": "It passed the safety check", "refused": "It failed the safety check"}.get(
            state, state
        )
        self._say(f"{word}: {reason}\n")

    def result(self, result: Mapping[str, Any]) -> None:
        if self._quiet:
            say_json(result)
            return
        before, after = result["before"], result["after"]
        program = sys.argv[0] if sys.argv[0].endswith("goodbot") else "python -m goodbot"
        for row in _table(result["answers"][:_SHOWN_ANSWERS], _columns() if self._line.live else None):
            self._say(row)
        self._say(
            f"\nanswers in the liked style: {_share(before)} → {_share(after)}"
            f"\nright answers:              {_right(before)} → {_right(after)}"
            f"\n({after['answers']:.0f} new questions, which were never rated; 95 % intervals)"
            f"\n\ntraining {result['train_seconds']:.0f} s, everything {result['seconds']:.0f} s"
        )
        if result["adapter"]:
            self._say(
                f"the adapter:  {result['adapter_directory']}  (sha256 {result['adapter']['sha256'][:12]}…)"
            )
        self._say(
            f"all its data: {result['home']}\n\nWhat next:"
            f"\n  {program} chat --demo-model   talk to the tiny model and rate it yourself"
            f"\n  {program} demo --like terse   teach it another style"
            f"\n  {program} init                set up a bot of your own, on a platform or here"
        )

    def _say(self, text: str) -> None:
        self._line.say(text)

    def _update(self, text: str, *, end: bool) -> None:
        """One line that changes in place; elsewhere only its end is printed."""
        if end:
            self._line.say(text)
        else:
            self._line.show(text)


def _columns() -> int:
    return shutil.get_terminal_size().columns


def _table(answers: Sequence[Mapping[str, str]], columns: int | None) -> list[str]:
    """Question, before and after in one line each; where they do not fit beside each other, below."""
    side = _WIDTH if columns is None else (columns - _QUESTION - 4) // 2
    if side < _LEAST:
        below = "\n{question}\n  before  {before}\n  after   {after}"
        return [below.format_map(row) for row in answers]
    lines = [f"\n{'question':{_QUESTION}}  {'before':{side}}  after"]
    for row in answers:
        after = row["after"] if columns is None else row["after"][:side]
        beside = f"{row['question'][:_QUESTION]:{_QUESTION}}  {row['before'][:side]:{side}}"
        lines.append(f"{beside}  {after}")
    return lines


def _right(score: Mapping[str, float]) -> str:
    return f"{score['facts'] * score['answers']:.0f} of {score['answers']:.0f}"


def _share(score: Mapping[str, float]) -> str:
    return f"{score['liked_share']:.0%} ({score['liked_low']:.0%}–{score['liked_high']:.0%})"
