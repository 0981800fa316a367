"""What the program prints: texts for people, one JSON object for programs, a line of progress."""

from __future__ import annotations

import contextlib
import json
import os
import re
import sys
from collections.abc import Callable, Generator, Mapping
from typing import Any

PHASES = {
    "load": "loading",
    "rollouts": "reading the answers",
    "train": "learning",
    "gate": "checking",
}

_SEQUENCE = re.compile(
    r"\x1b\[[0-?]{0,32}[ -/]{0,8}[@-~]"  # CSI: colours, cursor
    r"|\x1b[\]PX^_][^\x07\x1b\x9c]{0,4096}(?:\x07|\x1b\\|\x9c)"  # OSC and the like: titles, links
)
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
"""C0 but for tab and newline, DEL, C1, and the marks that turn the direction of text around."""
_SURROGATE = re.compile("[\ud800-\udfff]")


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


def bar(progress: Mapping[str, Any], width: int = 24) -> str:
    """One line: phase, bar, step, loss, seconds left."""
    step, steps = int(progress.get("step") or 0), int(progress.get("steps") or 0)
    filled = width * step // steps if steps else 0
    parts = [
        f"{PHASES.get(str(progress.get('phase')), str(progress.get('phase'))):20}",
        "█" * filled + "·" * (width - filled),
        f"{step}/{steps}" if steps else "",
    ]
    if isinstance(progress.get("loss"), (int, float)):
        parts.append(f"loss {progress['loss']:.3f}")
    if isinstance(progress.get("eta"), (int, float)):
        parts.append(f"{progress['eta']:.0f} s left")
    return " ".join(part for part in parts if part)


@contextlib.contextmanager
def progress_line(*, quiet: bool) -> Generator[Callable[[Mapping[str, Any]], None]]:
    """A function that shows progress in place on stderr, if that is a terminal."""
    live = not quiet and sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
    shown = False

    def show(progress: Mapping[str, Any]) -> None:
        nonlocal shown
        if live:
            shown = True
            try:
                columns = os.get_terminal_size(sys.stderr.fileno()).columns
            except OSError:
                columns = 80
            sys.stderr.write("\r\x1b[K" + bar(progress)[: columns - 1])
            sys.stderr.flush()

    try:
        yield show
    finally:
        if shown:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
