# SPDX-License-Identifier: Apache-2.0
"""B10: killed between an answer's sending and its record, it is sent again, and both copies are known."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
from collections.abc import AsyncGenerator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from goodbot.api.connector import ReplyStream
from goodbot.api.events import ChannelKind, MessageRef
from goodbot.conversation.copies import Copies
from goodbot.conversation.generate import Generator
from goodbot.daemon.loopback import Answer, chat
from goodbot.store import ledger, messages, retries

from tests.core.builders import Bot, check_store, open_bot, rows, until


class KilledError(Exception):
    """The process is dead: nothing reaches the store any more."""


async def killed(bot: Bot, text: str, at: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ask, and die where the writer would call its method `at`."""
    reached = asyncio.Event()

    async def die(*_: object) -> None:
        reached.set()
        await asyncio.Event().wait()

    with monkeypatch.context() as patch:
        patch.setattr(Generator, at, die)
        asking = asyncio.create_task(bot.say(text))
        await until(reached.is_set)
        asking.cancel()

    async def lost(*_: Any) -> Any:
        raise KilledError

    bot.store._writer.write = lost  # type: ignore[method-assign]


async def recorded(bot: Bot, answer: Answer) -> bool:
    found = await rows(bot.store, "SELECT turn FROM messages WHERE message = ?", (answer.message.id,))
    return found == [(answer.turn,)]


async def labels(bot: Bot, turn: str) -> object:
    return await bot.store.read(lambda db: ledger.labels(db, turn))


@contextlib.asynccontextmanager
async def restarted(
    home: Path, at: str, monkeypatch: pytest.MonkeyPatch
) -> AsyncGenerator[tuple[Bot, Answer]]:
    """A goodbot that was killed `at`, and the answer that it has sent since."""
    with contextlib.suppress(KilledError):
        async with open_bot(home) as bot:
            await bot.say("Hello!")
            await killed(bot, "What is love?", at, monkeypatch)
    async with open_bot(home) as bot:
        await until(lambda: len(bot.replies) == 1)
        [answer] = bot.replies
        await until(lambda: recorded(bot, answer))
        yield bot, answer
        await check_store(bot.store)


def at(answer: Answer, message: str) -> Answer:
    """The same answer, in another message."""
    return dataclasses.replace(answer, message=dataclasses.replace(answer.message, id=message))


@pytest.fixture
def begun(monkeypatch: pytest.MonkeyPatch) -> str:
    """Answers begin in a message with this id, before they are stored."""

    async def append(stream: ReplyStream, _: str) -> None:
        if not stream.messages:
            place = cast("Any", stream)._channel
            await stream.created(MessageRef(channel=place, id="begun"))

    monkeypatch.setattr(chat._Stream, "append", append)
    return "begun"


async def test_b10_a_reaction_on_either_copy_counts_and_on_both_it_is_one_label(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with restarted(tmp_path, "_record", monkeypatch) as (bot, second):
        [(other,)] = await rows(
            bot.store,
            "SELECT message FROM messages WHERE turn = ? AND message <> ?",
            (second.turn, second.message.id),
        )
        first = at(second, other)
        await bot.react(first, "👍")
        assert await labels(bot, first.turn) == {"loopback:owner": 1.0}
        await bot.react(second, "👎")
        assert await labels(bot, first.turn) == {"loopback:owner": -1.0}, "their last word"


async def test_b10_a_reaction_counts_that_came_before_the_second_copy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, begun: str
) -> None:
    """Killed while the answer was still being sent; what it began with was known with the turn."""
    async with restarted(tmp_path, "send", monkeypatch) as (bot, answer):
        await bot.react(at(answer, begun), "👍")
        assert await labels(bot, answer.turn) == {"loopback:owner": 1.0}
        standing = await bot.store.read(lambda db: retries.standing(db, answer.turn))
        assert [ref.id for ref in standing] == [answer.message.id, begun], "the newer copy first"


async def test_b10_a_first_copy_in_a_group_is_asked_for_too(tmp_path: Path) -> None:
    """Others write there: it is for the connector to tell their messages from ours."""
    looked: list[MessageRef] = []

    async def asked(message: MessageRef, _: object) -> str:
        looked.append(message)
        return ""

    async with open_bot(tmp_path) as bot:
        answer = await bot.say("What is love?")
        await until(lambda: recorded(bot, answer))
        await bot.store.write(lambda db: messages.sending_again(db, answer.turn, "question"))
        await bot.react(at(answer, "first"), "👍")
        group = dataclasses.replace(answer.message.channel, kind=ChannelKind.SHARED)
        model = SimpleNamespace(label="")
        connectors = SimpleNamespace(running={group.connector: SimpleNamespace(copied=asked)})
        core = cast("Any", SimpleNamespace(store=bot.store, model=model))
        copies = Copies(core, generator=cast("Any", None), connectors=cast("Any", connectors))
        await copies.look(group)
    assert looked == [MessageRef(channel=group, id="first")]


async def test_b10_what_an_answer_does_not_end_in_is_rated_by_no_reaction(tmp_path: Path, begun: str) -> None:
    async with open_bot(tmp_path) as bot:
        answer = await bot.say("What is love?")
        await until(lambda: recorded(bot, answer))
        await bot.react(at(answer, begun), "👍")
        assert await labels(bot, answer.turn) == {}


async def test_b10_an_answer_that_broke_down_is_rated_by_no_reaction(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its message was known already, and says now that something went wrong."""
    known = list[object]()
    async with open_bot(tmp_path) as bot:

        async def fails(*_: object) -> None:
            known.extend(await rows(bot.store, "SELECT message FROM messages"))
            raise ValueError("unexpected")

        monkeypatch.setattr(Generator, "_record", fails)
        asking = asyncio.create_task(bot.say("What is love?"))
        await until(lambda: len(bot.replies) == 2)
        assert known == [(bot.replies[0].message.id,)]
        await bot.react(bot.replies[0], "👍")
        assert await rows(bot.store, "SELECT count(*) FROM labels") == [(0,)]
        asking.cancel()
