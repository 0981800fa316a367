# SPDX-License-Identifier: Apache-2.0
"""B10: killed between an answer's sending and its record, it is sent again, and both copies are known."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import itertools
from collections.abc import AsyncGenerator, Coroutine
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from goodbot.api.connector import ReplyStream
from goodbot.api.events import ChannelKind, MessageRef, Outcome, Reply
from goodbot.conversation.copies import Copies
from goodbot.conversation.generate import Generator
from goodbot.daemon.loopback import Answer, chat
from goodbot.store import ledger, messages, retries

from tests.core.builders import Bot, check_store, open_bot, rate, rows, until


class KilledError(Exception):
    """The process is dead: nothing reaches the store any more."""


async def killed(
    bot: Bot, asks: Coroutine[Any, Any, Answer], at: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ask, and die where the writer would call its method `at`."""
    reached = asyncio.Event()

    async def die(*_: object) -> None:
        reached.set()
        await asyncio.Event().wait()

    with monkeypatch.context() as patch:
        patch.setattr(Generator, at, die)
        asking = asyncio.create_task(asks)
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
            await killed(bot, bot.say("What is love?"), at, monkeypatch)
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


@pytest.fixture
def in_two(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another answer is in two messages: the one that it takes the place of, and `more-0`, `more-1` …"""
    whole, numbers = chat._Stream.finish, itertools.count()

    async def finish(stream: Any, reply: Reply) -> tuple[MessageRef, ...]:
        sent = await whole(stream, reply)
        if stream._place is None:
            return sent
        more = MessageRef(channel=stream._channel, id=f"more-{next(numbers)}")
        await stream.created(more)
        return (*sent, more)

    monkeypatch.setattr(chat._Stream, "finish", finish)


@contextlib.asynccontextmanager
async def another(
    home: Path, at: str, monkeypatch: pytest.MonkeyPatch
) -> AsyncGenerator[tuple[Bot, Answer, Answer]]:
    """As `restarted`, with an answer and the one that has taken its place since."""
    with contextlib.suppress(KilledError):
        async with open_bot(home) as bot:
            answer = await bot.say("What is love?")
            await until(lambda: recorded(bot, answer))
            await killed(bot, bot.chat.again(answer, "long"), at, monkeypatch)
    async with open_bot(home) as bot:
        await until(lambda: len(bot.chat.edits) == 1)
        [new] = bot.chat.edits
        await until(lambda: recorded(bot, new))
        yield bot, answer, new
        await check_store(bot.store)


@pytest.mark.usefixtures("in_two")
async def test_b10_of_another_answer_too_both_copies_are_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with another(tmp_path, "_record", monkeypatch) as (bot, answer, new):
        place = answer.message.channel
        [known] = await bot.store.read(lambda db: messages.sent_again(db, place))
        assert [ref.id for ref in known.messages] == [answer.message.id, "more-1", "more-0"]
        assert (known.turn, known.question) == (new.turn, answer.message.id)
        await bot.react(at(new, "more-0"), "👍")
        assert await labels(bot, new.turn) == {"loopback:owner": 1.0}


@pytest.mark.usefixtures("in_two")
async def test_b10_what_another_answer_began_with_is_known_as_it_is_stored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its second message was there before all of it was written."""

    async def append(stream: Any, _: str) -> None:
        if stream._place and not stream.messages:
            await stream.created(MessageRef(channel=stream._channel, id="begun"))

    monkeypatch.setattr(chat._Stream, "append", append)
    async with another(tmp_path, "send", monkeypatch) as (bot, _, new):
        await bot.react(at(new, "begun"), "👍")
        assert await labels(bot, new.turn) == {"loopback:owner": 1.0}


@pytest.mark.usefixtures("in_two")
async def test_b10_the_first_message_is_rated_as_what_stands_there_though_the_second_is_recorded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_bot(tmp_path) as bot:
        answer = await bot.say("What is love?")
        await until(lambda: recorded(bot, answer))
        real, told = Generator.send, []

        async def send(*args: Any) -> Any:
            sent = await real(*args)
            press = rate("press", bot.chat._count + 100, 1.0, message_id=answer.message.id, source="button")
            told.extend(await bot.chat.host.submit([dataclasses.replace(press, turn=args[-1].turn)]))
            return sent

        monkeypatch.setattr(Generator, "send", send)
        new = await bot.chat.again(answer, "long")
        await until(lambda: recorded(bot, new))
        assert [(one.outcome, one.turn) for one in told] == [(Outcome.ACCEPTED, new.turn)]


async def test_b10_an_answer_that_comes_back_is_known_where_it_stands_then(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No other answer came, and somebody had deleted the message that was to be changed."""
    async with open_bot(tmp_path) as bot:
        answer = await bot.say("What is love?")
        await until(lambda: recorded(bot, answer))

        async def broken(*_: Any, **__: Any) -> None:
            raise LookupError("unexpected")

        async def finish(stream: Any, reply: Reply) -> tuple[MessageRef, ...]:
            stream._chat._post(stream._channel, reply, stream._reply_to)
            return (MessageRef(channel=stream._channel, id="anew"),)

        monkeypatch.setattr(Generator, "write", broken)
        monkeypatch.setattr(chat._Stream, "finish", finish)
        await bot.chat.again(answer, "long")
        anew = at(answer, "anew")
        await until(lambda: recorded(bot, anew))
        await bot.react(anew, "👍")
        assert await labels(bot, answer.turn) == {"loopback:owner": 1.0}
