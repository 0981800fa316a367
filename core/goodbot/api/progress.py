# SPDX-License-Identifier: Apache-2.0
"""A run under way in words, and as a line on a terminal: phase, step, loss, time left, what fits.

What the trainer's `progress` events hold is told in `docs/worker-protocol.md`. The same words reach
the terminal, `status` and the chat. Nothing heavy is imported: the command line needs it at once.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Generator, Mapping
from typing import Any

from goodbot.api.control import Progress
from goodbot.base.printing import draw, say

_LEAST = 6
"""Columns of the shortest bar, with a space on either side."""
PHASES = {"load": "loading", "rollouts": "reading the answers", "train": "learning", "gate": "checking"}


def phase(progress: Mapping[str, Any]) -> str:
    """What is being done; the worker's own word where we have none."""
    said = str(progress.get("phase"))
    return PHASES.get(said, said)


def steps(progress: Mapping[str, Any]) -> tuple[int, int]:
    """`(done, planned)`; 0 planned: not known."""
    return int(progress.get("step") or 0), int(progress.get("steps") or 0)


def block(progress: Mapping[str, Any], width: int) -> str:
    """A bar of `width` characters."""
    step, planned = steps(progress)
    filled = min(width, width * step // planned) if planned else 0
    return "█" * filled + "·" * (width - filled)


def details(progress: Mapping[str, Any]) -> list[str]:
    """`12/32`, `loss 0.312`, `2 min left`, `94% of tokens, 88% of answers fit`: what is known.

    The most important first, for whoever has little room. A token fits while the model says it about as
    likely as who wrote the answer did, an answer as far as the objective lets it in.
    """
    step, planned = steps(progress)
    parts = [f"{step}/{planned}"] if planned else []
    if (loss := _number(progress, "loss")) is not None:
        parts.append(f"loss {loss:.3f}")
    if (eta := _number(progress, "eta")) is not None:
        parts.append(left(eta))
    fit = [
        f"{share:.0%} of {what}"
        for what, name in (("tokens", "token_acceptance"), ("answers", "trajectory_acceptance"))
        if (share := _number(progress, name)) is not None
    ]
    return [*parts, f"{', '.join(fit)} fit"] if fit else parts


def sentence(progress: Mapping[str, Any]) -> str:
    """One line for `status`: `learning: 12/32, loss 0.312, 2 min left, 94% of tokens fit`."""
    told = ", ".join(details(progress))
    said = f"{phase(progress)}: {told}" if told else phase(progress)
    left = progress.get("left")
    return f"{said}. I started over: {waiting(left)}" if left else said


def waiting(answers: int) -> str:
    """That a training goes on without some of its answers."""
    some, have = ("1 answer waits", "its rating") if answers == 1 else (f"{answers} answers wait", "ratings")
    return f"{some} for the next training, since {have} changed during this one."


def brief(progress: Mapping[str, Any]) -> str:
    """For whoever looks while they do something else: `learning: 12/32, 2 min left`."""
    return sentence({name: progress.get(name) for name in ("phase", "step", "steps", "eta")})


def left(seconds: float) -> str:
    """`45 s left`, `12 min left`, `3.5 h left`."""
    if seconds < 100:
        return f"{seconds:.0f} s left"
    if seconds < 6000:
        return f"{seconds / 60:.0f} min left"
    return f"{seconds / 3600:.1f} h left"


def _number(progress: Mapping[str, Any], name: str) -> float | None:
    value = progress.get(name)
    return float(value) if isinstance(value, int | float) else None


def bar(progress: Mapping[str, Any], columns: int = 80) -> str:
    """One line of at most `columns`: phase, bar, step, loss, time left, what fits.

    Where there is little room the bar is shorter and begins earlier; then what fits goes first.
    """
    name, parts = phase(progress), details(progress)
    while parts and len(name) + _LEAST + len(" ".join(parts)) > columns:
        parts.pop()
    text = " ".join(parts)
    if 20 + 2 * _LEAST + len(text) <= columns:
        name = name.ljust(20)
    width = max(0, min(24, columns - len(name) - len(text) - 2))
    return f"{name} {block(progress, width)} {text}".rstrip()[:columns]


@contextlib.contextmanager
def progress_line(*, quiet: bool) -> Generator[Progress]:
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
        step, planned = steps(progress)
        if at != (now := (progress.get("phase"), 10 * step // planned if planned else 0)):
            at = now
            parts = [phase(progress), *details(progress)]
            say(", ".join(parts), file=sys.stderr, flush=True)

    try:
        yield show
    finally:
        if shown:
            draw("\r\x1b[K", file=sys.stderr)
