# SPDX-License-Identifier: Apache-2.0
"""A goodbot on the fake model that asks its owners; what they see of it, and what they say."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

from goodbot.api.server import Generated
from goodbot.base.clock import SystemClock
from goodbot.base.sampling import UNFILTERED
from goodbot.config import ServingConfig
from goodbot.daemon.loopback import Answer
from goodbot.store import comparisons, turns
from goodbot.store.comparisons import Comparison, Tally

from tests.core.builders import Bot, open_bot, rows, turn, until

DAY = 86400.0


class Later(SystemClock):
    """The machine's clock, which a test can set forward."""

    def __init__(self) -> None:
        self.ahead = 0.0

    def now(self) -> float:
        return super().now() + self.ahead


@contextlib.asynccontextmanager
async def open_asking(home: Path, ask: str = "after", **fields: Any) -> AsyncGenerator[Bot]:
    sections = {"serving": ServingConfig(history=0, ask=ask), **fields.pop("sections", {})}
    async with open_bot(home, sections=sections, **fields) as bot:
        yield bot


async def current(bot: Bot) -> Comparison | None:
    """The open question, as it is stored."""
    pool = bot.app.ab_test.pool
    return await bot.store.read(lambda db: comparisons.current(db, pool))


async def states(bot: Bot) -> list[str]:
    return [row[0] for row in await rows(bot.store, "SELECT state FROM comparisons ORDER BY id")]


async def tally(bot: Bot, comparison: int = 1) -> Tally:
    return await bot.store.read(lambda db: comparisons.tally(db, comparison))


def questions(bot: Bot) -> list[Answer]:
    """What owners were asked unasked for."""
    return [said for said in bot.chat.news if "Which is better?" in said.text]


def outcomes(bot: Bot) -> list[tuple[str, str]]:
    """To whom it was told what came of it, and how."""
    return [
        (said.message.channel.id, said.text)
        for said in bot.chat.news
        if " for v" in said.text or "check alone" in said.text
    ]


async def asked(bot: Bot, count: int = 1) -> list[Answer]:
    await until(lambda: len(questions(bot)) >= count)
    return questions(bot)


async def asked_untrained(bot: Bot, pairs: int = 12) -> None:
    """A blind question of so many pairs, of no round: while most of them are open, it comes to nothing."""
    pool, now = bot.app.ab_test.pool, bot.app.clock.now()

    async def operation(db: Any) -> None:
        await comparisons.open_(db, pool, run=0, old=0, new=0, held=False, now=now)
        found = await comparisons.current(db, pool)
        assert found is not None
        await comparisons.ask(db, found.id, now)
        for number in range(pairs):
            asked = turn(f"asked-{number}")
            await turns.insert(db, asked, trainable=True)
            await comparisons.add(
                db,
                found.id,
                "loopback:owner",
                asked,
                old=Generated(text="Old.", version=0, finish="stop"),
                new=Generated(text="New.", version=0, finish="stop"),
                temperature=1.0,
                filters=UNFILTERED,
                seed=number,
            )

    await bot.store.write(operation)


def letter(text: str, version: int) -> str:
    """Behind which letter this version's answer stands: the fake model says who it is."""
    first = text.partition("\nA:\n")[2].partition("\n\nB:\n")[0]
    return "a" if first.startswith(f"v{version} says") else "b"


async def prefer(bot: Bot, version: int, count: int, question: Answer) -> str:
    """Press for this version `count` times, beginning at a question; the last receipt's text."""
    text, offer = question.text, question.buttons
    for _ in range(count):
        word = letter(text, version)
        action = next(action for action in offer if action.endswith(f" {word}"))
        receipt = await bot.chat.press(question, action)
        text, offer = receipt.text, tuple(button.action for button in receipt.offer)
    return text
