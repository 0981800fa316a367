# SPDX-License-Identifier: Apache-2.0
"""What the tests of exports share: a bot of which everything that can be said is said, and its files."""

from __future__ import annotations

import argparse
import contextlib
import json
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiosqlite
from goodbot.cli import importing
from goodbot.daemon.loopback import Answer
from goodbot.features.forms import plugin
from goodbot.store import exporting, selection, workshop

from tests.core.builders import Bot, open_bot


@dataclass(frozen=True)
class Said:
    """The answers of `rated`."""

    liked: Answer
    bad: Answer
    again: Answer
    tie: Answer
    commented: Answer
    private: Answer


@contextlib.asynccontextmanager
async def opened(home: Path, **more: Any) -> AsyncGenerator[Bot]:
    """A bot with the forms that ship."""
    async with open_bot(home, extra=(plugin,), **more) as bot:
        yield bot


async def rated(bot: Bot) -> Said:
    """Liked with stars; bad, with a better answer and a retry; a tie; a comment; somebody's private chat."""
    liked = await bot.say("How far\nis it to Łódź? 🙂")
    await bot.react(liked, "👍")
    await bot.chat.press(liked, "star:4")
    await bot.react(liked, "👍", user="rater")
    bad = await bot.say("And back?")
    await bot.react(bad, "👎")
    await bot.chat.comment(bad, "It is 4 km.", better=True)
    again = await bot.chat.again(bad, "short")
    await bot.say("nobody rates this")  # the retry is recorded then
    await bot.react(again, "👍")
    tie = await bot.say("Why?")
    await bot.react(tie, "👍")
    await bot.react(tie, "👎", user="rater")
    commented = await bot.say("Who?")
    await bot.chat.comment(commented, "Too long.")
    private = await bot.say("My secret", user="talker")
    await bot.react(private, "👍")
    return Said(liked, bad, again, tie, commented, private)


async def records(db: aiosqlite.Connection) -> list[dict[str, Any]]:
    """Of all that can be exported, what goodbot's own form holds, oldest first."""
    ids = await selection.chosen(db, selection.Selection())
    return [dict(one.record) for one in await exporting.answers(db, ids)]


async def export(bot: Bot, words: str = "") -> tuple[list[Any], dict[str, Any]]:
    """The lines of an export, or the entries of its list, and what the command says as data."""
    result = await bot.app.commands.execute(bot.chat.typed("export", words))
    path = Path(result.data["path"])
    text = path.read_text(encoding="utf-8")
    lines = json.loads(text) if path.suffix == ".json" else [json.loads(one) for one in text.splitlines()]
    assert len(lines) == result.data["lines"]
    return lines, dict(result.data)


async def bring_in(bot: Bot, path: Path, form: str = "jsonl", *, mine: bool = False) -> dict[str, Any]:
    """Import a file as `goodbot import` does; what it says as data, its text under `text`."""
    arguments = argparse.Namespace(home=bot.app.config.home, config=None, format=form, mine=mine)
    with importing._staged(arguments, path, lambda progress: None) as name:
        result = await bot.app.commands.execute(bot.chat.typed("import", name), direct=True)
    assert not [*(bot.app.config.home / workshop.IMPORTS).glob(f"{workshop.STAGED}*")]
    return {**result.data, "text": result.text}
