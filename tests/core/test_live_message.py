# SPDX-License-Identifier: Apache-2.0
"""`/rl train` where messages can be edited: one message, which shows the run and ends in its verdict."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from goodbot import hookimpl
from goodbot.api.connector import Capability, ConnectorSpec
from goodbot.api.events import ChannelKind, ChannelRef, MessageRef, Reply
from goodbot.api.sentences import clause_of
from goodbot.base.errors import ConnectorError, RetriableError
from goodbot.conversation.notifications.live import LiveMessage
from goodbot.daemon import loopback
from goodbot.daemon.app import App
from goodbot.daemon.loopback import Loopback
from goodbot.inference.servers import plugin as own_servers
from goodbot.store.comparisons import COMPARED
from goodbot.testing import VirtualClock

from tests.core.builders import GRANTS, Bot, Fake, FakePlugin, config, rewards, until

ROOM = "#room"
CHANNEL = ChannelRef(connector="board", account="board", id="owner", kind=ChannelKind.PRIVATE)


class Board(Loopback):
    """A platform in memory where messages can be edited."""

    spec = replace(
        loopback.SPEC,
        name="board",
        factory="tests.core.test_live_message:Board",
        capabilities=loopback.SPEC.capabilities | Capability.EDITS,
    )

    def __init__(self, host: Any, settings: Any) -> None:
        super().__init__(host, settings)
        self.edits: list[tuple[str, str]] = []
        self.errors: list[Exception] = []

    async def edit(self, message: MessageRef, reply: Reply) -> None:
        if self.errors:
            raise self.errors.pop(0)
        self.edits.append((message.id, reply.text))


class BoardPlugin:
    @hookimpl
    def register_connector(self) -> ConnectorSpec:
        return Board.spec


@contextlib.asynccontextmanager
async def open_board(home: Path, ask: str = "never") -> AsyncGenerator[tuple[Bot, Board]]:
    from goodbot.api.plugins import PluginHost

    host, fake = PluginHost(), Fake(home / "fake")
    for name, plugin in (
        ("fake", FakePlugin()),
        ("board", BoardPlugin()),
        ("rewards", rewards),
        ("servers", own_servers),
    ):
        host.register(plugin, name)
    settings = config(home / "bot", fake)
    settings = replace(settings, serving=replace(settings.serving, ask=ask))
    async with App.open(settings, host, grants={"board": GRANTS}) as app:
        bot = Bot(app, fake)
        assert isinstance(bot.chat, Board)
        yield bot, bot.chat


async def test_an_owner_gets_one_message_that_ends_in_the_verdict(tmp_path: Path) -> None:
    async with open_board(tmp_path) as (bot, board):
        await bot.rated(8)
        board.news.clear()
        await bot.command("train")
        [said] = board.news
        assert said.text == "Learning from 8 ratings"
        assert board.edits == [
            (
                said.message.id,
                "v1 is live. It learnt from 6 rated answers (3 good, 3 bad); 2 more were "
                "kept to check it.\nbetter\n"
                "`/rl why` shows before and after, `/rl rollback` takes it back.",
            )
        ]
        await bot.app.news.look()
        assert board.news == [said], "the news would say it once more"


async def test_what_waits_says_for_what_and_is_news_once_it_is_live(tmp_path: Path) -> None:
    async with open_board(tmp_path, ask="before") as (bot, board):
        await bot.rated(8)
        await bot.command("train")
        assert board.edits[-1][1] == f"v1 is trained. better v1 waits: {clause_of(COMPARED)}."
        await bot.rollback("1")

        async def told() -> bool:
            await bot.app.news.look()
            return any(said.text.startswith("v1 is live.") for said in board.news)

        await until(told)


async def test_the_other_owners_hear_of_it_as_before(tmp_path: Path) -> None:
    people = replace(GRANTS, owners=("owner", "second"))
    fake = Fake(tmp_path / "fake")
    from tests.core.builders import plugins

    async with App.open(
        config(tmp_path / "bot", fake), plugins(BoardPlugin()), grants={"board": people}
    ) as app:
        bot = Bot(app, fake)
        await bot.rated(8)
        bot.chat.news.clear()
        await bot.command("train")
        await until(lambda: len(bot.chat.news) == 2)
        assert [item.message.channel.id for item in bot.chat.news] == ["owner", "second"]


async def test_a_refusal_and_a_cancelled_run_are_told_too(tmp_path: Path) -> None:
    async with open_board(tmp_path) as (bot, board):
        await bot.rated(8)
        bot.fake.set(train="refuse")
        await bot.command("train")
        assert board.edits[-1][1].startswith("The base model goes on answering: the new version")
        bot.fake.set(train="nan")
        await bot.rated(8)
        await bot.command("train")
        assert "The loss was nan." in board.edits[-1][1]


async def test_a_shared_channel_hears_no_reasons(tmp_path: Path) -> None:
    async with open_board(tmp_path) as (bot, board):
        await bot.command("enable", channel=ROOM)
        await bot.rated(8)
        bot.fake.set(train="refuse")
        await bot.command("train", channel=ROOM)
        assert [text for _, text in board.edits] == ["Nothing has changed."]
        await bot.rated(8)
        bot.fake.set(train="ok")
        await bot.command("train", channel=ROOM)
        assert board.edits[-1][1] == "v1 answers now."


async def test_not_even_who_waits_hears_them_there(tmp_path: Path) -> None:
    async with open_board(tmp_path) as (bot, _):
        await bot.command("enable", channel=ROOM)
        await bot.rated(8)
        bot.fake.set(train="nan")
        told = await bot.command("train", "wait", channel=ROOM)
        assert told == "Nothing has changed."


async def test_if_the_message_is_lost_the_news_tell_it(tmp_path: Path) -> None:
    async with open_board(tmp_path) as (bot, board):
        await bot.rated(8)
        board.errors = [ConnectorError("somebody deleted the message")]
        await bot.command("train")
        await bot.app.news.look()
        assert [item.text for item in board.news if item.text.startswith("v1 is live.")] != []


# -- the pace


class Run:
    """A run whose progress the test writes, and a clock that it moves."""

    def __init__(self) -> None:
        self.clock = VirtualClock(waits=True)
        self.board = Board(None, None)  # type: ignore[arg-type]
        self.said: Mapping[str, Any] | None = None
        self.ended = asyncio.Event()

    async def begin(self) -> None:
        message = await LiveMessage.post(self.board, CHANNEL, self.clock, "Learning")
        assert message is not None
        self.message = message
        self.task = asyncio.create_task(self.ended.wait())
        self.following = asyncio.create_task(message.follow(self.task, lambda: self.said))

    async def step(self, seconds: float, **said: Any) -> list[str]:
        """Let so much time pass with this progress; what the message was made to say meanwhile."""
        before = len(self.board.edits)
        self.said = {"phase": "train", "steps": 100, **said}
        for _ in range(int(seconds)):
            await self._everybody()
            self.clock.advance(1.0)
        await self._everybody()
        return [text for _, text in self.board.edits[before:]]

    async def _everybody(self) -> None:
        """Whoever could go on has done so: by turns of the loop, which no clock hurries."""
        for _ in range(50):
            await asyncio.sleep(0)


async def test_it_is_edited_every_tenth_and_never_faster_than_the_platform_bears() -> None:
    run = Run()
    await run.begin()
    assert await run.step(4, step=50) == []
    accepted = {"token_acceptance": 0.941, "trajectory_acceptance": 1.0}
    [text] = await run.step(2, step=50, loss=0.25, eta=30.0, **accepted)
    assert text == "Learning\nlearning ██████······ 50/100 · 30 s left", "no figures in a chat"
    edits = [await run.step(1, step=step) for step in range(51, 91)]
    assert sum(map(len, edits)) == 4, "a tenth more each"
    run.ended.set()
    await run.following


async def test_a_run_that_hardly_moves_is_shown_every_minute() -> None:
    run = Run()
    await run.begin()
    assert len(await run.step(10, step=1)) == 1
    assert await run.step(50, step=2) == []
    assert len(await run.step(10, step=2)) == 1
    run.ended.set()
    await run.following


async def test_a_platform_that_asks_for_patience_gets_it() -> None:
    run = Run()
    await run.begin()
    run.board.errors = [RetriableError("slow down", retry_after=40.0)]
    assert await run.step(30, step=20) == []
    assert len(await run.step(20, step=40)) == 1
    run.ended.set()
    await run.following


async def test_a_deleted_message_is_left_alone() -> None:
    run = Run()
    await run.begin()
    run.board.errors = [ConnectorError("message to edit not found")]
    await run.step(100, step=50)
    assert run.board.edits == []
    run.ended.set()
    await run.following
    assert not await run.message.end("done")


@pytest.mark.parametrize("connector", [None, Loopback(None, None)])  # type: ignore[arg-type]
async def test_where_nothing_can_be_edited_there_is_no_message(connector: Any) -> None:
    assert await LiveMessage.post(connector, CHANNEL, VirtualClock(), "Learning") is None
