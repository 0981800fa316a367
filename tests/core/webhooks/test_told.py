# SPDX-License-Identifier: Apache-2.0
"""Of which ratings and trainings anything is told, and how much of them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from goodbot.api.events import ChannelKind, ChannelRef, Outcome, RatingKind, Receipt
from goodbot.api.feature import HappenedWanted
from goodbot.api.turns import CHOICE
from goodbot.base import redact
from goodbot.store import happened, ledger
from goodbot.store.importing import ACCOUNT

from tests.core.builders import Bot, add_turn, open_bot, rate

ROOM = ChannelRef(connector="loopback", account="loopback", id="#room", kind=ChannelKind.SHARED)


async def rated(bot: Bot, id_: str, of: Mapping[str, Any] | None = None, **turn: Any) -> None:
    made = await add_turn(bot.store, id_, **turn)
    event = rate(f"e-{id_}", 1, 1.0, id_, channel=made.channel, **(of or {}))
    accepted = Receipt(event_id="", outcome=Outcome.ACCEPTED)
    await bot.store.write(lambda db: ledger.insert(db, event, id_, "loopback:owner", accepted, 1e9))


async def write(bot: Bot, query: str) -> None:
    await bot.store.write(lambda db: db.execute(query))


async def told(bot: Bot, **wanted: Any) -> list[Mapping[str, Any]]:
    """All ratings and trainings that there are."""
    asks, mark = (
        HappenedWanted(kinds=("rating", "training"), **wanted),
        json.dumps({"rating": [0], "training": [0]}),
    )
    found: list[Mapping[str, Any]] = []
    while True:
        one, mark = await bot.store.read(lambda db, m=mark: happened.after(db, bot.app.pool, asks, m))
        if one is None:
            return found
        found.append(one.data)


async def answers(bot: Bot, **wanted: Any) -> list[str]:
    return [one["turn"] for one in await told(bot, **wanted)]


async def test_what_nobody_may_rate_blind_choices_and_imports_are_no_news(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        for id_ in ("vetoed", "told"):
            await rated(bot, id_, channel=ROOM)
        await write(bot, "UPDATE turns SET trainable = 0 WHERE id = 'vetoed'")
        await rated(bot, "choice", channel=ROOM, kind=CHOICE)
        await rated(bot, "brought in", channel=replace(ROOM, account=ACCOUNT))
        assert await answers(bot, private_chats=True) == ["told"]


async def test_a_private_chat_is_told_once_everybody_in_it_has_said_share_on(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        await rated(bot, "an owner's")  # it trains without a word of theirs
        assert await answers(bot, private_chats=True) == []
        await bot.command("share", "on")
        assert await answers(bot, private_chats=True) == ["an owner's"]
        assert await answers(bot) == []
        await write(
            bot,
            "INSERT INTO traces (trace, connector, account, channel, talker, turn, answer)"
            " SELECT 'a', 'codex', 'codex', 'c', 'ada', id, '' FROM turns",
        )
        assert await answers(bot, private_chats=True) == []
        await write(bot, "INSERT INTO shares VALUES ('codex:ada', 1)")
        assert await answers(bot, private_chats=True) == ["an owner's"]
        await write(bot, "UPDATE turns SET channel_kind = 'encrypted'")
        assert await answers(bot, private_chats=True) == []


async def test_what_a_program_calls_itself_goes_out_with_words_only(tmp_path: Path) -> None:
    said = {
        "reaction:+1": "reaction:+1",
        "stars:4": "stars:4",
        "button": "button",
        "outcome:Ada's laptop": "outcome",
        "Ada's laptop: it works": "Ada's laptop",
    }
    async with open_bot(tmp_path) as bot:
        for number, source in enumerate(said):
            kind = RatingKind.OUTCOME if number > 2 else RatingKind.RATE
            await rated(bot, f"t{number}", {"source": source, "kind": kind}, channel=ROOM)
        assert [one["source"] for one in await told(bot)] == list(said.values())
        assert [one["source"] for one in await told(bot, words=True)] == list(said)


async def test_of_long_words_the_beginning_is_told_and_no_more_is_looked_through(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At each try everybody waited while eight megabytes were looked through for keys."""
    looked, whole = list[int](), redact.redact

    def counted(text: str) -> str:
        looked.append(len(text))
        return whole(text)

    monkeypatch.setattr(redact, "redact", counted)
    before, key = "é " * 15_995, "sk-proj-" + "aB3" * 10
    async with open_bot(tmp_path) as bot:
        await rated(bot, "long", channel=ROOM, response=f"{before}{key}{' é' * 50_000}")
        [one] = await told(bot, words=True)
    assert one["answer"].startswith(f"{before}***")
    assert len(one["answer"]) == 32_000
    assert 32_000 <= max(looked) <= 33_000


async def test_a_training_that_was_undone_before_it_was_told_is_told_as_that(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        await write(
            bot,
            "INSERT INTO runs (scope, state, parent, why, reason, backend, settings, last_event_seq,"
            " started_at) VALUES ('default', 'released', 0, '', 'why', '', '{}', 0, 1)",
        )
        [training] = await told(bot)
        assert (training["training"], training["state"], training["reason"]) == (1, "released", "")
