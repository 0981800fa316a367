"""What the program prints: texts for people, one JSON object for programs, a line of progress."""

from __future__ import annotations

import contextlib
import json
import os
import re
import sys
from collections.abc import Callable, Generator, Mapping
from typing import Any

from goodbot.training import progress as told

_SEQUENCE = re.compile(
    r"\x1b\[[0-?]{0,32}[ -/]{0,8}[@-~]"  # CSI: colours, cursor
    r"|\x1b[\]PX^_][^\x07\x1b\x9c]{0,4096}(?:\x07|\x1b\\|\x9c)"  # OSC and the like: titles, links
)
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
"""C0 but for tab and newline, DEL, C1, and the marks that turn the direction of text around."""
_SURROGATE = re.compile("[\ud800-\udfff]")
_LEAST = 6
"""Columns of the shortest bar, with a space on either side."""


def printable(text: str) -> str:
    """`text` as a terminal may get it: a model's answer must not move its cursor or set its title.

    Newlines and tabs stay. A sequence that arrives in two pieces loses only its escape character.
    """
    text = _CONTROL.sub("", _SEQUENCE.sub("", text.replace("\r\n", "\n")))
    return _SURROGATE.sub("\ufffd", text)


def print_answer(answer: Mapping[str, Any], *, as_json: bool) -> None:
    """A command's answer on stdout. JSON is plain ASCII: it may hold what people wrote."""
    if as_json:
        print(json.dumps(answer["data"], indent=1, default=str))
    else:
        print(printable(answer["text"]))


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
            sys.stderr.write("\r\x1b[K" + bar(progress, columns - 1))
            sys.stderr.flush()
            return
        step, planned = told.steps(progress)
        if at != (now := (progress.get("phase"), 10 * step // planned if planned else 0)):
            at = now
            parts = [told.phase(progress), *told.details(progress)]
            print(", ".join(parts), file=sys.stderr, flush=True)

    try:
        yield show
    finally:
        if shown:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
