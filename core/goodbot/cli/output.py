"""What the program prints: texts for people, one JSON object for programs, a line of progress."""

from __future__ import annotations

import contextlib
import json
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any

_PHASES = {"load": "loading", "rollouts": "reading the answers", "train": "learning", "gate": "checking"}


def print_answer(answer: Mapping[str, Any], *, as_json: bool) -> None:
    """A command's answer on stdout."""
    if as_json:
        print(json.dumps(answer["data"], ensure_ascii=False, indent=1, default=str))
    else:
        print(answer["text"])


def bar(progress: Mapping[str, Any], width: int = 24) -> str:
    """One line: phase, bar, step, loss, seconds left."""
    step, steps = int(progress.get("step") or 0), int(progress.get("steps") or 0)
    filled = width * step // steps if steps else 0
    parts = [
        f"{_PHASES.get(str(progress.get('phase')), str(progress.get('phase'))):20}",
        "█" * filled + "·" * (width - filled),
        f"{step}/{steps}" if steps else "",
    ]
    if isinstance(progress.get("loss"), (int, float)):
        parts.append(f"loss {progress['loss']:.3f}")
    if isinstance(progress.get("eta"), (int, float)):
        parts.append(f"{progress['eta']:.0f} s left")
    return " ".join(part for part in parts if part)


@contextlib.contextmanager
def progress_line(*, quiet: bool) -> Iterator[Callable[[Mapping[str, Any]], None]]:
    """A function that shows progress in place on stderr, if that is a terminal."""
    shown = False

    def show(progress: Mapping[str, Any]) -> None:
        nonlocal shown
        if not quiet and sys.stderr.isatty():
            shown = True
            columns = shutil.get_terminal_size().columns - 1
            sys.stderr.write("\r\x1b[K" + bar(progress)[:columns])
            sys.stderr.flush()

    try:
        yield show
    finally:
        if shown:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
