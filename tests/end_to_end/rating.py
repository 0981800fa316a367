# SPDX-License-Identifier: Apache-2.0
"""What rating the tiny model is like on every platform."""

from __future__ import annotations

import re
from typing import Protocol

from goodbot.testing.connector_base import eventually

from tests.end_to_end.daemon import Daemon

RATINGS = 20
LABEL = "[demo model] "
CODE = re.compile(r"\b[A-Z0-9]{4}-[A-Z0-9]{4}\b")


class Commander(Protocol):
    """Somebody who types `/rl` and reads the answer."""

    async def command(self, text: str, /, *, like: str) -> str: ...


async def standing(person: Commander) -> int:
    """How many ratings count, as the bot tells it."""
    text = await person.command("status", like="more until")
    found = re.search(r"(\d+) of \d+ ratings, \d+ more until", text)
    assert found, text
    return int(found[1])


async def learnt(daemon: Daemon) -> None:
    """Wait for the training to go live.

    Without words: a person who writes all the time would keep it waiting. For some moments more
    `status` may tell how the run gets on, rather than how many ratings the next one wants.
    """

    async def live() -> bool:
        runs = daemon.rows("SELECT state, reason FROM runs")
        assert all(state not in ("failed", "refused") for state, _ in runs), runs
        return any(state == "activated" for state, _ in runs)

    await eventually(live, 480)


def is_friendly(answer: str) -> bool:
    """Whether a labelled answer is in the style that its reader likes."""
    from goodbot_training.tiny.judge import style_of

    return style_of(answer.removeprefix(LABEL)) == "friendly"


def word(good: bool) -> str:
    """The command, and the button."""
    return "good" if good else "bad"


def verdict(good: bool) -> str:
    """How a confirmation begins."""
    return "Good." if good else "Bad."
