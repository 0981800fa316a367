"""What the program prints: texts for people, one JSON object for programs, a line of progress."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Generator, Mapping
from typing import Any

from goodbot.base.printing import draw, say, say_json
from goodbot.learning.training import progress as told

_LEAST = 6
"""Columns of the shortest bar, with a space on either side."""


def print_answer(answer: Mapping[str, Any], *, as_json: bool) -> None:
    """A command's answer on stdout. JSON is plain ASCII: it may hold what people wrote."""
    if as_json:
        say_json(answer["data"])
    else:
        say(answer["text"])


def bar(progress: Mapping[str, Any], columns: int = 80) -> str:
    """One line of at most `columns`: phase, bar, step, loss, time left, what fits.

    Where there is little room the bar is shorter and begins earlier; then what fits goes first.
    """
    name, details = told.phase(progress), told.details(progress)
    while details and len(name) + _LEAST + len(" ".join(details)) > columns:
        details.pop()
    text = " ".join(details)
    if 20 + 2 * _LEAST + len(text) <= columns:
        name = name.ljust(20)
    width = max(0, min(24, columns - len(name) - len(text) - 2))
    return f"{name} {told.block(progress, width)} {text}".rstrip()[:columns]


@contextlib.contextmanager
def progress_line(*, quiet: bool) -> Generator[Callable[[Mapping[str, Any]], None]]:
    """A function that shows progress on stderr: in place on a terminal, else line by line.

    A line for each phase, and for each tenth of its steps.
    """
    live = sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
    shown = False
    at: tuple[Any, int] = (None, 0)

    def show(progress: Mapping[str, Any]) -> None:
        nonlocal shown, at
        if quiet:
            return
        if live:
            shown = True
            try:
                columns = os.get_terminal_size(sys.stderr.fileno()).columns
            except OSError:
                columns = 80
            draw("\r\x1b[K" + bar(progress, columns - 1), file=sys.stderr)
            return
        step, planned = told.steps(progress)
        if at != (now := (progress.get("phase"), 10 * step // planned if planned else 0)):
            at = now
            parts = [told.phase(progress), *told.details(progress)]
            say(", ".join(parts), file=sys.stderr, flush=True)

    try:
        yield show
    finally:
        if shown:
            draw("\r\x1b[K", file=sys.stderr)
