# SPDX-License-Identifier: Apache-2.0
"""B10: killed between Telegram's ok and our record, we send an answer again; both copies can be rated."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import goodbot_connectors.telegram
import pytest
from goodbot.api.connector import SentAnswer
from goodbot.api.events import ChannelKind, ChannelRef, MessageRef
from goodbot.base.errors import RetriableError
from goodbot.conversation.generate import Generator
from goodbot.store import ledger
from goodbot_connectors.telegram.api import Api, SentMessage
from goodbot_connectors.telegram.connector import TelegramConnector
from goodbot_fakes.telegram import FakeTelegram, Person
from goodbot_fakes.telegram.keyboards import buttons

from tests.connectors.telegram.fake import ENVIRON, Driver
from tests.core.builders import Bot, check_store, open_bot, rows, until

KEYBOARD = {"inline_keyboard": [[{"text": "Yes", "callback_data": "yes:"}]]}


class KilledError(Exception):
    """The process is dead: nothing reaches the store any more."""


@pytest.fixture
def ada(fake: FakeTelegram, monkeypatch: pytest.MonkeyPatch) -> Person:
    for name, value in ENVIRON.items():
        monkeypatch.setenv(name, value)
    return Driver(fake).people["ada"]


@contextlib.asynccontextmanager
async def beside(home: Path, fake: FakeTelegram, ada: Person) -> AsyncGenerator[Bot]:
    """A goodbot on that Telegram, which Ada owns; what she says there is answered by drafts."""
    own = {"owners": [str(ada.id)], "api_base": fake.api, "poll_timeout": 1}
    sections = {"connectors": {"telegram": own}}
    async with open_bot(home, extra=(goodbot_connectors.telegram,), sections=sections) as bot:
        yield bot


async def killed(home: Path, fake: FakeTelegram, ada: Person, monkeypatch: pytest.MonkeyPatch) -> int:
    """Ask, and die where Telegram has the whole answer and we have not yet recorded that; its question."""
    question, reached = 0, asyncio.Event()

    async def die(*_: object) -> None:
        reached.set()
        await asyncio.Event().wait()

    async def lost(*_: Any) -> Any:
        raise KilledError

    with contextlib.suppress(KilledError), monkeypatch.context() as patch:
        async with beside(home, fake, ada) as bot:
            patch.setattr(Generator, "_keep", die)
            question = ada.says("What is love?")
            await until(reached.is_set)
            bot.store._writer.write = lost  # type: ignore[method-assign]
    return question


async def labels(bot: Bot) -> list[object]:
    found = await rows(bot.store, "SELECT id FROM turns ORDER BY seq")
    return [await bot.store.read(lambda db, one=id_: ledger.labels(db, one)) for (id_,) in found]


async def carrying(bot: Bot) -> list[int]:
    found = await rows(bot.store, "SELECT message FROM messages ORDER BY turn, position")
    return [int(id_) for (id_,) in found]


async def is_now(bot: Bot, ada: Person, *values: float | None) -> bool:
    found = [{} if value is None else {f"telegram:{ada.id}": value} for value in values]
    return (await labels(bot))[: len(found)] == found


def probes(fake: FakeTelegram) -> list[int]:
    """Which messages Telegram was asked to show."""
    asked = [call for call in fake.calls("sendMessage") if call["text"] == "…"]
    return [one["reply_parameters"]["message_id"] for one in asked]


async def test_b10_a_reaction_on_the_first_copy_counts_and_on_both_it_is_one_label(
    tmp_path: Path, fake: FakeTelegram, ada: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    await killed(tmp_path, fake, ada, monkeypatch)
    [first] = ada.sees()
    ada.reacts(first.id, "👍")  # while nobody is there
    async with beside(tmp_path, fake, ada) as bot:
        await until(lambda: is_now(bot, ada, 1.0))
        second = ada.sees()[1]
        assert await carrying(bot) == [second.id, first.id], "the newer copy first"
        assert probes(fake) == [first.id]
        ada.reacts(second.id, "👎")
        await until(lambda: is_now(bot, ada, -1.0))
        ada.reacts(first.id)
        ada.reacts(second.id)
        await until(lambda: is_now(bot, ada, None))
        assert "…" not in [message.json["text"] for message in ada.sees()]
        await check_store(bot.store)


async def test_b10_a_reaction_counts_that_comes_later_and_once_telegram_can_be_asked(
    tmp_path: Path, fake: FakeTelegram, ada: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    await killed(tmp_path, fake, ada, monkeypatch)
    [first] = ada.sees()
    async with beside(tmp_path, fake, ada) as bot:
        await until(lambda: carrying(bot))
        fake.fail("sendMessage", 500, "Internal Server Error")
        ada.reacts(first.id, "👍")
        await until(lambda: any(call.error for call in fake.seen.calls if call.method == "sendMessage"))
        ada.reacts(first.id, "👎")
        await until(lambda: is_now(bot, ada, -1.0))


async def test_b10_nothing_else_that_stands_there_is_taken_for_a_copy(
    tmp_path: Path, fake: FakeTelegram, ada: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a command was answered, what she wrote herself, a picture, a message that is gone, words of hers
    that are the answer's, and what came after the answer."""
    await killed(tmp_path, fake, ada, monkeypatch)
    [first] = ada.sees()
    words = first.json["text"]
    status = fake.account.post(ada.chat, fake.account.user, text="It runs.", reply_markup=KEYBOARD)
    picture = fake.account.post(ada.chat, fake.account.user, photo=[], caption=words)
    gone = fake.account.post(ada.chat, fake.account.user, text=words)
    hers = ada.says(words)
    async with beside(tmp_path, fake, ada) as bot:
        await until(lambda: is_now(bot, ada, None, None))
        await until(lambda: rows(bot.store, "SELECT 1 FROM messages LIMIT 1 OFFSET 1"))
        before, after = (
            {status.id: dict(status.json)},
            fake.account.post(ada.chat, fake.account.user, text=words),
        )
        for one in (status.id, picture.id, gone.id, hers, after.id):
            ada.reacts(one, "👎")
        del ada.chat.messages[gone.id]
        ada.reacts(first.id, "👍")
        await until(lambda: is_now(bot, ada, 1.0, None))
        assert await labels(bot) == [{f"telegram:{ada.id}": 1.0}, {}]
        assert first.id in await carrying(bot)
        assert not {status.id, picture.id, gone.id, hers, after.id} & set(await carrying(bot))
        assert ada.chat.messages[status.id].json == before[status.id], "it is as it was"
        assert after.id not in probes(fake)
        assert len(probes(fake)) == len(set(probes(fake))), "each is asked for once"


async def test_b10_an_older_answer_in_the_same_words_is_none(
    tmp_path: Path, fake: FakeTelegram, ada: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that goodbot has forgotten meanwhile, as it forgets what nobody has rated."""
    older = fake.account.post(ada.chat, fake.account.user, text="x")
    await killed(tmp_path, fake, ada, monkeypatch)
    first = ada.sees()[-1]
    older.json["text"] = first.json["text"]
    async with beside(tmp_path, fake, ada) as bot:
        await until(lambda: carrying(bot))
        ada.reacts(older.id, "👎")
        ada.reacts(first.id, "👍")
        await until(lambda: is_now(bot, ada, 1.0))
        assert older.id not in await carrying(bot)
        assert probes(fake) == [first.id]


async def test_b10_where_no_answer_was_sent_again_telegram_is_asked_for_nothing(
    tmp_path: Path, fake: FakeTelegram, ada: Person
) -> None:
    async with beside(tmp_path, fake, ada) as bot:
        question = ada.says("What is love?")
        await until(lambda: carrying(bot))
        ada.reacts(question, "👍")
        await until(lambda: rows(bot.store, "SELECT 1 FROM events"))
        ada.says("And what is hate?")
        await until(lambda: rows(bot.store, "SELECT 1 FROM messages LIMIT 1 OFFSET 1"))
        assert probes(fake) == []


async def test_b10_an_answer_whose_sending_broke_off_counts_in_both_copies(
    tmp_path: Path, fake: FakeTelegram, ada: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody was killed: Telegram took the message, and the line broke before it said so."""
    real, broken = Api.send, list[int]()

    async def breaks(api: Api, message: dict[str, Any]) -> SentMessage:
        sent = await real(api, message)
        if not broken:
            broken.append(sent.message_id)
            raise RetriableError("the line broke")
        return sent

    monkeypatch.setattr(Api, "send", breaks)
    async with beside(tmp_path, fake, ada) as bot:
        ada.says("What is love?")
        await until(lambda: carrying(bot))
        assert broken[0] not in await carrying(bot)
        ada.reacts(broken[0], "👎")
        await until(lambda: is_now(bot, ada, -1.0))
        assert broken[0] in await carrying(bot)


async def test_b10_in_a_group_nothing_is_answered_to_be_told_what_stands_there() -> None:
    group = ChannelRef(connector="telegram", account="1", id="-100", kind=ChannelKind.SHARED)
    anybodys = MessageRef(channel=group, id="2")
    last = SentAnswer(turn="t", text="x", question="1", messages=(MessageRef(channel=group, id="3"),))
    not_connected: Any = object()
    assert await TelegramConnector.copied(not_connected, anybodys, [last]) == ""


async def test_b10_a_button_of_the_first_copy_counts_before_anybody_asks_what_it_is(
    tmp_path: Path, fake: FakeTelegram, ada: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It names its answer."""
    await killed(tmp_path, fake, ada, monkeypatch)
    [first] = ada.sees()
    async with beside(tmp_path, fake, ada) as bot:
        await until(lambda: carrying(bot))
        ada.presses(first.id, next(one for one in buttons(first.json))["callback_data"])
        await until(lambda: is_now(bot, ada, 1.0))
        assert probes(fake) == []
