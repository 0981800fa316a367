# SPDX-License-Identifier: Apache-2.0
"""A run under way in words, and as a line on a terminal: phase, step, time left; for who asks, the figures.

What the trainer's `progress` events hold is told in `docs/worker-protocol.md`. The same words reach
the terminal, `status` and the chat. Nothing heavy is imported: the command line needs it at once.
"""

from __future__ import annotations

import contextlib
import math
import os
import sys
from collections.abc import Generator, Mapping
from typing import Any

from goodbot.api.control import Progress
from goodbot.api.texts import commas, ended, explained, figure, joined, percent, say
from goodbot.api.texts.terminal import here
from goodbot.base.columns import padded, wide
from goodbot.base.printing import draw, one_line, printable
from goodbot.base.printing import say as write

_LEAST = 6
"""Columns of the shortest bar, with a space on either side."""
_LONGEST = 40
"""Characters of a word that is none of ours."""
PHASES = ("load", "rollouts", "train", "gate", "notes")


def phase(progress: Mapping[str, Any], language: str = "") -> str:
    """What is being done; where we have no word for it, the one that was given, as a line for people."""
    said = progress.get("phase")
    if said in PHASES:
        return say(f"phase_{said}", language)
    return one_line(printable(str(said)))[:_LONGEST]  # a terminal may get it in a line that is drawn


def steps(progress: Mapping[str, Any]) -> tuple[int, int]:
    """`(done, planned)`; 0 planned: not known."""
    return int(progress.get("step") or 0), int(progress.get("steps") or 0)


def block(progress: Mapping[str, Any], width: int) -> str:
    """A bar of `width` characters."""
    step, planned = steps(progress)
    filled = min(width, width * step // planned) if planned else 0
    return "█" * filled + "·" * (width - filled)


def details(progress: Mapping[str, Any], language: str = "", *, figures: bool = False) -> list[str]:
    """`12/32`, `2 min left`; with `figures` also `loss 0.312`, `94% of tokens, 88% of answers fit`.

    What is known, the most important first, for whoever has little room. A token fits while the model says
    it about as likely as who wrote the answer did, an answer as far as the objective lets it in.

    Args:
        progress: A `progress` event.
        language: What the reader reads.
        figures: Whether it says the loss and what fits, too.

    Returns:
        Parts of a line, without anything between them.
    """
    step, planned = steps(progress)
    parts = [f"{step}/{planned}"] if planned else []
    if figures and (loss := _number(progress, "loss")) is not None:
        parts.append(say("loss", language, loss=figure(loss, language, digits=3)))
    if (eta := _number(progress, "eta")) is not None:
        parts.append(left(eta, language))
    return [*parts, *_fit(progress, language)] if figures else parts


def _fit(progress: Mapping[str, Any], language: str) -> list[str]:
    """Which part of the tokens and of the answers fits, where it is known."""
    tokens, answers = (
        None if (share := _number(progress, f"{name}_acceptance")) is None else percent(share, language)
        for name in ("token", "trajectory")
    )
    if tokens and answers:
        return [say("fit", language, tokens=tokens, answers=answers)]
    if tokens:
        return [say("fit_tokens", language, tokens=tokens)]
    return [say("fit_answers", language, answers=answers)] if answers else []


def sentence(progress: Mapping[str, Any], language: str = "", *, figures: bool = False) -> str:
    """Say in one line how far a training is: `learning: 12/32, 2 min left`.

    Args:
        progress: A `progress` event.
        language: What the reader reads.
        figures: Whether it says the loss and what fits, too.

    Returns:
        A line without a full stop; where it started over, with what waits as a second sentence.
    """
    doing = phase(progress, language)
    told = commas(language, *details(progress, language, figures=figures))
    said = explained(doing, told, language) if told else doing
    if not (left := progress.get("left")):
        return said
    over = say("started_over", language, waiting=waiting(left, language))
    return joined(language, ended(said, language), over)


def waiting(answers: int, language: str = "") -> str:
    """That a training goes on without some of its answers."""
    return say("answers_wait", language, answers=answers)


def brief(progress: Mapping[str, Any], language: str = "") -> str:
    """For whoever looks while they do something else: `learning: 12/32, 2 min left`."""
    return sentence({name: progress.get(name) for name in ("phase", "step", "steps", "eta")}, language)


def left(seconds: float, language: str = "") -> str:
    """`45 s left`, `12 min left`, `3.5 h left`."""
    if seconds < 100:
        return say("left_seconds", language, count=f"{seconds:.0f}")
    if seconds < 6000:
        return say("left_minutes", language, count=f"{seconds / 60:.0f}")
    return say("left_hours", language, count=figure(seconds / 3600, language, digits=1))


def _number(progress: Mapping[str, Any], name: str) -> float | None:
    value = progress.get(name)
    return float(value) if isinstance(value, int | float) and math.isfinite(value) else None


def bar(progress: Mapping[str, Any], columns: int = 80, language: str = "", *, figures: bool = False) -> str:
    """Draw how far a run is: phase, bar, step, time left.

    Where there is little room the bar is shorter and begins earlier; then what fits goes first.

    Args:
        progress: A `progress` event.
        columns: The most that the line takes.
        language: What the reader reads.
        figures: Whether it says the loss and what fits, too.

    Returns:
        One line.
    """
    name, parts = phase(progress, language), details(progress, language, figures=figures)
    while parts and wide(name) + _LEAST + wide(" ".join(parts)) > columns:
        parts.pop()
    text = " ".join(parts)
    if 20 + 2 * _LEAST + wide(text) <= columns:
        name = padded(name, 20)
    width = max(0, min(24, columns - wide(name) - wide(text) - 2))
    return f"{name} {block(progress, width)} {text}".rstrip()[:columns]


@contextlib.contextmanager
def progress_line(*, quiet: bool, figures: bool = False) -> Generator[Progress]:
    """A function that shows progress on stderr: in place on a terminal, else line by line.

    A line for each phase, and for each tenth of its steps; `figures` as for `details`.
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
            draw("\r\x1b[K" + bar(progress, columns - 1, here(), figures=figures), file=sys.stderr)
            return
        step, planned = steps(progress)
        if at != (now := (progress.get("phase"), 10 * step // planned if planned else 0)):
            at = now
            parts = [phase(progress, here()), *details(progress, here(), figures=figures)]
            write(commas(here(), *parts), file=sys.stderr, flush=True)

    try:
        yield show
    finally:
        if shown:
            draw("\r\x1b[K", file=sys.stderr)
