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
from goodbot.api.events import Button, ChannelKind, Reply
from goodbot.base.errors import RetriableError
from goodbot.conversation.generate import Generator
from goodbot.store import ledger
from goodbot.testing.host import RecordingHost
from goodbot_connectors.telegram import SPEC
from goodbot_connectors.telegram.api import Api, SentMessage
from goodbot_fakes.telegram import FakeTelegram, Person
from goodbot_fakes.telegram.keyboards import buttons

from tests.connectors.copies import TURN, knows_a_first_copy
from tests.connectors.telegram.fake import ENVIRON, Driver, channel, connected
from tests.core.builders import Bot, check_store, open_bot, rows, until


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
            patch.setattr(Generator, "keep", die)
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


def rates(message: dict[str, Any]) -> dict[str, Any]:
    """The message without what it tells whoever has pressed or reacted, which may come at any time."""
    rows = message["reply_markup"]["inline_keyboard"]
    kept = [row for row in rows if row[0]["text"] == "…" or not row[0]["callback_data"].startswith("note:")]
    return {**message, "reply_markup": {"inline_keyboard": kept}}


def probes(fake: FakeTelegram) -> list[int]:
    """Which messages Telegram was asked to show: a button came that says nothing."""
    calls = fake.calls("editMessageReplyMarkup")
    return [call["message_id"] for call in calls if _says_nothing(call.get("reply_markup"))]


def _says_nothing(markup: Any) -> bool:
    return [one["callback_data"].partition(":")[0] for one in buttons({"reply_markup": markup or {}})] == [
        "note"
    ]


async def test_b10_a_reaction_on_the_first_copy_counts_and_on_both_it_is_one_label(
    tmp_path: Path, fake: FakeTelegram, ada: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    await killed(tmp_path, fake, ada, monkeypatch)
    [first] = ada.sees()
    before = first.json
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
        assert rates(first.json) == rates(before), "as it was"
        assert "…" not in [call["text"] for call in fake.calls("sendMessage")]
        await check_store(bot.store)


async def test_b10_a_reaction_counts_that_comes_later_and_once_telegram_can_be_asked(
    tmp_path: Path, fake: FakeTelegram, ada: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    await killed(tmp_path, fake, ada, monkeypatch)
    [first] = ada.sees()
    async with beside(tmp_path, fake, ada) as bot:
        await until(lambda: carrying(bot))
        fake.fail("editMessageReplyMarkup", 500, "Internal Server Error")
        ada.reacts(first.id, "👍")
        await until(lambda: any(call.error for call in fake.seen.calls))
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
    status = fake.account.post(ada.chat, fake.account.user, text="It runs.")
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


@pytest.mark.parametrize("group_buttons", [False, True])
@pytest.mark.parametrize("room", [ChannelKind.PRIVATE, ChannelKind.SHARED])
async def test_b10_the_first_copy_is_known_by_its_words_and_nothing_else_is(
    room: ChannelKind, group_buttons: bool, fake: FakeTelegram, tmp_path: Path
) -> None:
    """In groups, too; and each message is left as it was, with its buttons."""
    driver = Driver(fake, group_buttons=group_buttons)
    host = RecordingHost(SPEC, state_dir=tmp_path, environ=ENVIRON)
    chat = driver.chat(room)
    stood: dict[int, Any] = {}

    def reads() -> list[int]:
        return probes(fake)

    def vanish(id_: str) -> None:
        stood.update({one.id: dict(one.json) for one in chat.messages.values()})
        del chat.messages[int(id_)], stood[int(id_)]

    async with connected(driver, host) as connector:
        await knows_a_first_copy(
            connector,
            host,
            driver,
            "4 < 5 & _so_ on, @everyone.",
            vanish=vanish,
            reads=reads,
            stream=lambda asked: connector.stream(asked.channel, asked.message_id),
            room=room,
            asked_for=3,
        )
        assert {one.id: one.json for one in chat.messages.values()}.items() >= stood.items()
        assert not any(_says_nothing(one.json.get("reply_markup")) for one in chat.messages.values())
    await host.close()


async def test_b10_what_asks_something_by_buttons_keeps_them(fake: FakeTelegram, tmp_path: Path) -> None:
    """Telegram would not tell which they were; that it is no answer is known, after a restart, too."""
    driver = Driver(fake)
    host = RecordingHost(SPEC, state_dir=tmp_path, environ=ENVIRON)
    place = channel(driver)
    yes = Button(action="run:yes", label="Yes")
    async with connected(driver, host) as connector:
        [asks] = await connector.send(place, Reply(text="Really?", buttons=(yes,)))
    async with connected(driver, host) as connector:
        [last] = await connector.stream(place).finish(Reply(text="Really?", turn=TURN))
        answer = SentAnswer(turn=TURN, text="Really?", question=str(int(asks.id) - 1), messages=(last,))
        assert await connector.copied(asks, [answer]) == ""
    assert probes(fake) == []
    await host.close()


async def test_b10_one_who_was_killed_while_asking_leaves_nothing_that_stays(
    tmp_path: Path, fake: FakeTelegram, ada: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The button that came last time goes once Telegram is asked again, and proves nothing."""
    await killed(tmp_path, fake, ada, monkeypatch)
    [first] = ada.sees()
    async with beside(tmp_path, fake, ada) as bot:
        await until(lambda: carrying(bot))
        before = first.json["reply_markup"]
        sign = {"inline_keyboard": [[{"text": "…", "callback_data": "note:1"}]]}
        first.json["reply_markup"] = sign
        ada.reacts(first.id, "👍")
        await until(lambda: is_now(bot, ada, 1.0))
        assert first.json["reply_markup"] == before


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
