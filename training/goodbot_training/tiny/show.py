# SPDX-License-Identifier: Apache-2.0
"""What the demo prints: a story on a terminal, plain lines elsewhere, or one JSON object."""

from __future__ import annotations

import contextlib
import shutil
import sys
from collections.abc import Generator, Mapping, Sequence
from typing import Any

from goodbot.api.progress import bar
from goodbot.api.texts import beside, explained, percent
from goodbot.api.texts.terminal import here, phrase
from goodbot.base.columns import padded, wide
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
        self._line = LiveLine(sys.stdout, quiet=quiet, moment=phrase("demo_moment"))

    @contextlib.contextmanager
    def beginning(self) -> Generator[None]:
        """Something moves on a terminal from here on, also while nothing is said."""
        self._say(f"{phrase('help_motto')}\n")
        with self._line:
            self._line.show(phrase("demo_starting"))
            yield

    def opening(self, backend: str) -> None:
        self._say(f"{phrase('demo_model', backend=backend)}\n\n{phrase('demo_first')}")

    def disliked(self, question: str, answer: str, chip: str) -> None:
        self._say(f"      {question}  →  {answer}\n  👎  {chip}")

    def follows(self, question: str, answer: str) -> None:
        self._say(f"      {question}  →  {answer}")

    def word_over(self, short: int, asked: int) -> None:
        self._say(f"{phrase('demo_followed', short=short, asked=asked)}\n")

    def owner(self, like: str, ratings: int) -> None:
        self._say(f"{phrase('demo_owner', ratings=ratings, like=like)}\n")

    def asking(self, name: str, done: int, total: int) -> None:
        self._update(phrase(f"demo_asked_{name}", done=done, total=total), end=done == total)

    def rated(self, done: int, total: int, question: str, answer: str, value: int) -> None:
        if done <= _SHOWN_RATINGS:
            self._say(f"  {'👍' if value > 0 else '👎'}  {question}  →  {answer}")
        else:
            self._update(f"  {phrase('demo_rated', done=done, total=total)}", end=done == total)

    def training_started(self, items: int) -> None:
        self._say(f"\n{phrase('demo_trains', ratings=items)}")

    def progress(self, progress: Mapping[str, Any]) -> None:
        last = progress.get("step") == progress.get("steps") and progress.get("phase") == "gate"
        self._update("  " + bar(progress, _columns() - len("  ") - 1, here()), end=last)

    def verdict(self, state: str, reason: str) -> None:
        self._update("", end=False)
        key = {"activated": "demo_passed", "refused": "demo_refused"}.get(state, f"run_{state}")
        self._say(f"{explained(phrase(key), reason, here())}\n")

    def result(self, result: Mapping[str, Any]) -> None:
        if self._quiet:
            say_json(result)
            return
        before, after = result["before"], result["after"]
        for row in _table(result["answers"][:_SHOWN_ANSWERS], _columns() if self._line.live else None):
            self._say(row)
        figures = [
            (phrase("demo_style"), f"{_share(before)} → {_share(after)}"),
            (phrase("demo_right"), f"{_right(before)} → {_right(after)}"),
        ]
        asked, everything = f"{after['answers']:.0f}", f"{result['seconds']:.0f}"
        self._say("\n" + "\n".join([*_aligned(figures), phrase("demo_new", asked=asked)]))
        training = f"{result['train_seconds']:.0f}"
        self._say(f"\n{phrase('demo_took', training=training, everything=everything)}")
        places = [(phrase("demo_data"), result["home"])]
        if result["adapter"]:
            named = f"{result['adapter_directory']}  (sha256 {result['adapter']['sha256'][:12]}…)"
            places.insert(0, (phrase("demo_adapter"), named))
        self._say("\n".join(_aligned(places)))
        self._say("\n".join(["", phrase("demo_next"), *_next_steps()]))

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


def _next_steps() -> list[str]:
    """Commands, each with what it is for."""
    program = sys.argv[0] if sys.argv[0].endswith("goodbot") else "python -m goodbot"
    steps = {
        f"  {program} chat --demo-model": phrase("demo_to_chat"),
        f"  {program} demo --like terse": phrase("demo_to_like"),
        f"  {program} init": phrase("demo_to_init"),
    }
    first = max(map(wide, steps))
    return [f"{padded(command, first)}   {what}" for command, what in steps.items()]


def _aligned(named: Sequence[tuple[str, str]]) -> list[str]:
    """`name: what` in lines, what in one column."""
    heads = [explained(name, "", here()).rstrip() for name, _ in named]
    first = max(map(wide, heads)) + 1
    return [f"{padded(head, first)}{what}" for head, (_, what) in zip(heads, named, strict=True)]


def _table(answers: Sequence[Mapping[str, str]], columns: int | None) -> list[str]:
    """Question, before and after in one line each; where they do not fit beside each other, below."""
    side = _WIDTH if columns is None else (columns - _QUESTION - 4) // 2
    before, after = phrase("demo_before"), phrase("demo_after")
    if side < _LEAST:
        first = max(wide(before), wide(after)) + 2
        names = [f"  {padded(name, first)}" for name in (before, after)]
        return [
            f"\n{row['question']}\n{names[0]}{row['before']}\n{names[1]}{row['after']}" for row in answers
        ]
    lines = [f"\n{padded(phrase('demo_question'), _QUESTION)}  {padded(before, side)}  {after}"]
    for row in answers:
        said = row["after"] if columns is None else row["after"][:side]
        shown = f"{row['question'][:_QUESTION]:{_QUESTION}}  {row['before'][:side]:{side}}"
        lines.append(f"{shown}  {said}")
    return lines


def _right(score: Mapping[str, float]) -> str:
    right, asked = f"{score['facts'] * score['answers']:.0f}", f"{score['answers']:.0f}"
    return phrase("demo_of", right=right, asked=asked)


def _share(score: Mapping[str, float]) -> str:
    low, high = (percent(score[end], here()) for end in ("liked_low", "liked_high"))
    return beside(percent(score["liked_share"], here()), f"{low}–{high}", here())
