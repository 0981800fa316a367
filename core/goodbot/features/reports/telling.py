# SPDX-License-Identifier: Apache-2.0
"""How the parts of a report say a share, a count and a version, in their reader's language."""

from __future__ import annotations

from collections.abc import Sequence

from goodbot.api.texts import figure, joined, percent, say
from goodbot.base.intervals import wilson

ENOUGH = 20
"""Rated answers below which nothing is compared."""
SHOWN = 10
"""Rows of a table for people; programs get all."""


def liked(good: int, rated: int, language: str) -> str:
    """`liked 70% (61% to 78%) of 120`; of few only how many."""
    if rated < ENOUGH:
        return say("page_liked_few", language, good=good, rated=rated)
    low, high = wilson(good, rated)
    shares = {name: percent(share, language) for name, share in (("low", low), ("high", high))}
    share = percent(good / rated, language)
    return say("page_liked_share", language, share=share, rated=number(rated, language), **shares)


def number(count: int, language: str) -> int | str:
    """A count for a text: 0 and 1 as they are, which decide its plural; more as the language writes it."""
    return count if count < 2 else figure(count, language)


def version(number: int, language: str) -> str:
    """`v7`, or `base`."""
    return f"v{number}" if number else say("page_base", language)


def short(text: str, most: int = 40) -> str:
    """An id that somebody else's program made may be long."""
    return text if len(text) <= most else f"{text[: most - 1]}…"


def listed(told: str, ids: Sequence[str], read: str) -> list[str]:
    """What is said of some answers, with the command that leaves out those that are listed."""
    which = say("report_first", read, count=SHOWN) if len(ids) > SHOWN else ""
    return [joined(read, told, which), f"  `rollback answers {' '.join(ids[:SHOWN])}`"]
