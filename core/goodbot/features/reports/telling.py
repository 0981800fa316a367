# SPDX-License-Identifier: Apache-2.0
"""How the parts of a report say a share, a count and a version."""

from __future__ import annotations

from goodbot.base.intervals import wilson

ENOUGH = 20
"""Rated answers below which nothing is compared."""
SHOWN = 10
"""Rows of a table for people; programs get all."""


def liked(good: int, rated: int) -> str:
    """`liked 70% (61% to 78%) of 120`; of few only how many."""
    if rated < ENOUGH:
        return f"liked {good} of {rated}"
    low, high = wilson(good, rated)
    return f"liked {good / rated:.0%} ({low:.0%} to {high:.0%}) of {rated:,}"


def counted(count: int, one: str, several: str = "") -> str:
    """`1 answer`, `1,200 answers`."""
    return f"{count:,} {one if count == 1 else several or f'{one}s'}"


def version(number: int) -> str:
    """`v7`, or `base`."""
    return f"v{number}" if number else "base"


def short(text: str, most: int = 40) -> str:
    """An id that somebody else's program made may be long."""
    return text if len(text) <= most else f"{text[: most - 1]}…"
