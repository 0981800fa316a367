# SPDX-License-Identifier: Apache-2.0
"""What the reward model is least sure of: sorted by for who rates, and asked for where an owner says so."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
from goodbot.api.events import ChannelKind
from goodbot.api.predicted import Predicted, PredictedAnswer
from goodbot.api.queues import QueueShare, QueueWanted
from goodbot.base.errors import ConfigError
from goodbot.config import HttpConfig
from goodbot.features.reward_model import plugin
from goodbot.store import predictions, review_queue
from goodbot.store.predictions import mixed
from goodbot.store.query import fetch
from goodbot.store.review_queue import Filter, Viewer

from tests.core.builders import Bot, add_turn, open_bot, rows
from tests.core.commands.test_people_page import user
from tests.core.daemon.http.site import PLUGIN, Site
from tests.core.made import CHANNEL

SHARED = replace(CHANNEL, kind=ChannelKind.SHARED)
PEOPLE = {"owners": ["boss"], "raters": ["ann"], "talkers": ["tom"]}
ON: dict[str, Any] = {"reward_model": {}}
ASKS: dict[str, Any] = {"reward_model": {"ask": True}}


@contextlib.asynccontextmanager
async def served(home: Path, port: int, features: Mapping[str, Any] = ON) -> AsyncGenerator[tuple[Bot, Site]]:
    """A goodbot with pages."""
    sections = {"http": HttpConfig(port=port), "connectors": {"web": PEOPLE}, "features": features}
    async with open_bot(home, extra=(PLUGIN, plugin), sections=sections) as bot:
        yield bot, cast("Site", bot.app.connectors.running["web"])


@contextlib.asynccontextmanager
async def opened(home: Path, features: Mapping[str, Any]) -> AsyncGenerator[Bot]:
    async with open_bot(home, extra=(plugin,), sections={"features": features}) as bot:
        yield bot


async def predict(bot: Bot, chances: Mapping[str, float]) -> None:
    """As if the child had said so of answers that nobody has rated."""
    said = [PredictedAnswer(id=turn, chance=chance, good=None) for turn, chance in chances.items()]
    figures: dict[str, Any] = {"answers": 300, "good": 150, "left_out": 0, "questions": 90}
    found = Predicted(**figures, by_person=True, auc=0.8, low=0.7, high=0.9, said=said)
    since = await bot.store.read(predictions.seen)
    await bot.store.write(lambda db: predictions.keep(db, bot.app.pool, found, since, 1.0))


async def six(bot: Bot) -> None:
    """Answers of a shared channel; of the newest nothing is said."""
    for number in range(6):
        await add_turn(bot.store, f"t{number}", channel=SHARED, response=f"Answer {number}")
    await predict(bot, {"t0": 0.9, "t1": 0.5, "t2": 0.45, "t3": 0.2, "t4": 0.5})


async def test_who_rates_sees_the_least_sure_first_page_by_page(tmp_path: Path, unused_tcp_port: int) -> None:
    async with served(tmp_path, unused_tcp_port) as (bot, site):
        await six(bot)
        assert await site.inbox("ann", unsure=True) == ["t4", "t1", "t2", "t3", "t0"]
        assert await site.inbox("ann", unsure=True, limit=2) == ["t4", "t1"]
        assert await site.inbox("ann", unsure=True, limit=2, before="t1") == ["t2", "t3"]
        assert await site.inbox("ann", unsure=True, before="t3") == ["t0"]
        assert await site.inbox("ann", unsure=True, before="gone") == []
        assert await site.inbox("ann", unsure=True, before="t5") == [], "of it nothing is said"
        assert await site.inbox("ann", unsure=True, text="answer 2") == ["t2"]
        assert await site.inbox("ann", unsure=True, connector="slack") == []
        assert await site.inbox("ann", unsure=True, rated=True) == []
        assert await site.inbox("ann") == ["t5", "t4", "t3", "t2", "t1", "t0"], "as ever, unasked"
        assert await site.inbox("tom", unsure=True) == []


async def test_what_anybody_has_rated_is_not_among_them_any_more(
    tmp_path: Path, unused_tcp_port: int
) -> None:
    async with served(tmp_path, unused_tcp_port) as (bot, site):
        await six(bot)
        await site.rate("ann", "t4")
        assert await site.inbox("ann", unsure=True, limit=2) == ["t1", "t2"]
        assert await site.inbox("boss", unsure=True, limit=2) == ["t1", "t2"]
        assert "t4" in await site.inbox("boss")


async def test_it_shows_nobody_more_than_the_inbox_does(tmp_path: Path, unused_tcp_port: int) -> None:
    async with served(tmp_path, unused_tcp_port) as (bot, site):
        secret = await bot.say("What only the owner asks", user="owner")
        await add_turn(bot.store, "open", channel=SHARED)
        await predict(bot, {secret.turn: 0.5, "open": 0.9})
        assert await site.inbox("ann", unsure=True) == ["open"]
        assert await site.inbox("loopback:owner", unsure=True) == [secret.turn, "open"]


async def test_of_a_queue_the_least_sure_come_first_too(tmp_path: Path, unused_tcp_port: int) -> None:
    async with served(tmp_path, unused_tcp_port) as (bot, site):
        await six(bot)
        turns, everybody = ["t0", "t2", "t3", "t5"], QueueShare(kind="all")
        wanted = QueueWanted(do="make", name="Look", turns=turns, shared=[everybody])
        await bot.chat.host.change_queue(user("owner"), wanted)
        assert await site.inbox("ann", unsure=True, queue=1) == ["t2", "t3", "t0"]


async def test_where_it_is_off_or_another_model_has_said_it_there_is_nothing(
    tmp_path: Path, unused_tcp_port: int
) -> None:
    async with served(tmp_path / "off", unused_tcp_port, {}) as (bot, site):
        await six(bot)
        assert await site.inbox("ann", unsure=True) == []
    async with served(tmp_path / "on", unused_tcp_port) as (bot, site):
        await six(bot)
        await bot.store.write(lambda db: db.execute("UPDATE predicted SET model = 'another'"))
        assert await site.inbox("ann", unsure=True) == []


async def test_the_least_sure_are_found_by_what_is_predicted_and_not_among_all_answers(
    tmp_path: Path,
) -> None:
    async with opened(tmp_path, ON) as bot:
        viewer = Viewer(person="loopback:owner", accounts=("loopback:owner",), owner=True)
        seen: list[str] = []

        async def look(db: Any) -> None:
            await db.set_trace_callback(seen.append)
            await review_queue.page(db, viewer, Filter(unsure=bot.app.model.name), 5)
            await db.set_trace_callback(None)

        await bot.store.write(look)
        [sql] = [one for one in seen if "predictions" in one and "folded" in one]
        plan = [row[3] for row in await bot.store.read(lambda db: fetch(db, f"EXPLAIN QUERY PLAN {sql}"))]
        assert not [line for line in plan if line.startswith("SCAN t") and line.split()[1] == "t"], plan


# -- who is asked


async def waiting(bot: Bot) -> list[str]:
    result = await bot.app.commands.execute(bot.chat.typed("waiting"))
    return [one["turn"] for one in result.data["waiting"]]


@pytest.mark.parametrize(("features", "at"), [(ON, [8, 7, 6, 5, 4]), (ASKS, [0, 1, 2, 8, 7])])
async def test_what_it_is_least_sure_of_waits_first_if_an_owner_says_so(
    tmp_path: Path, features: Mapping[str, Any], at: list[int]
) -> None:
    async with opened(tmp_path, features) as bot:
        turns = [(await bot.say(f"question {number}")).turn for number in range(9)]
        await predict(bot, {turns[0]: 0.5, turns[1]: 0.6, turns[2]: 0.99})
        assert await waiting(bot) == [turns[number] for number in at]


@pytest.mark.parametrize(
    ("features", "at", "more"),
    [(ON, {4, 5, 6, 7}, ""), (ASKS, {0, 1, 6, 7}, " 2 of them are what the reward model is least sure of.")],
)
async def test_half_of_a_new_queue_is_unsure_if_an_owner_says_so(
    tmp_path: Path, features: Mapping[str, Any], at: set[int], more: str
) -> None:
    async with opened(tmp_path, features) as bot:
        await bot.command("enable", channel="#team")
        turns = [(await bot.say(f"question {n}", channel="#team")).turn for n in range(8)]
        secret = (await bot.say("my own")).turn
        await predict(bot, {secret: 0.5, turns[0]: 0.5, turns[1]: 0.6, turns[2]: 0.99})
        wanted = QueueWanted(do="make", name="Look", newest=4, shared=[QueueShare(kind="all")])
        told = await bot.chat.host.change_queue(user("owner"), wanted)
        assert told == f"The queue is made: 4 answers.{more}"
        chosen = {turn for (turn,) in await rows(bot.store, "SELECT turn FROM queue_answers")}
        assert chosen == {turns[number] for number in at}
        named = QueueWanted(do="make", name="Named", turns=turns[5:], shared=[QueueShare(kind="all")])
        assert await bot.chat.host.change_queue(user("owner"), named) == "The queue is made: 3 answers."


async def test_the_setting_is_yes_or_no(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="ask"):
        async with opened(tmp_path, {"reward_model": {"ask": "often"}}):
            pass


@pytest.mark.parametrize(
    ("newest", "unsure", "limit", "both"),
    [
        ("abcde", "xy", 5, "axbyc"),
        ("abcde", "", 5, "abcde"),
        ("abc", "ca", 3, "acb"),
        ("", "xy", 5, "xy"),
        ("a", "xyz", 2, "ax"),
    ],
)
def test_none_is_in_it_twice(newest: str, unsure: str, limit: int, both: str) -> None:
    assert mixed(newest, unsure, limit) == list(both)
