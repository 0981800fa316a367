# SPDX-License-Identifier: Apache-2.0
"""B10: killed between Telegram's ok and our record, an answer is sent again; its first copy is found."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import goodbot_connectors.telegram
import pytest
from goodbot.conversation.generate import Generator
from goodbot.store import ledger
from goodbot_fakes.telegram import FakeTelegram, Person

from tests.connectors.telegram.fake import ENVIRON, Driver
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


async def test_b10_the_first_copy_is_found_and_what_a_person_wrote_beside_is_not_taken_for_it(
    tmp_path: Path, fake: FakeTelegram, ada: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    question = await killed(tmp_path, fake, ada, monkeypatch)
    [first] = ada.sees()
    ada.reacts(first.id, "👍")  # while nobody is there
    between = ada.says("", photo=[{"file_id": "p", "file_unique_id": "p", "width": 1, "height": 1}])
    async with beside(tmp_path, fake, ada) as bot:
        await until(lambda: ada.sees()[1:])
        second = ada.sees()[1]
        assert question < first.id < between < second.id
        await until(lambda: rows(bot.store, "SELECT 1 FROM labels"))
        assert (await carrying(bot))[:2] == [second.id, first.id], "the newer copy first"
        assert (await labels(bot))[0] == {f"telegram:{ada.id}": 1.0}
        ada.reacts(between, "👎")
        ada.reacts(second.id, "👎")
        await until(lambda: is_now(bot, ada, -1.0))
        ada.reacts(first.id)
        ada.reacts(second.id)
        await until(lambda: is_now(bot, ada, None))
        assert between not in await carrying(bot)
        await check_store(bot.store)


async def is_now(bot: Bot, ada: Person, value: float | None) -> bool:
    return (await labels(bot))[0] == ({} if value is None else {f"telegram:{ada.id}": value})


async def test_b10_where_more_of_ours_stands_there_than_the_answer_has_none_is_taken_for_it(
    tmp_path: Path, fake: FakeTelegram, ada: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a command was answered meanwhile is no answer; nothing says which of the two is."""
    await killed(tmp_path, fake, ada, monkeypatch)
    fake.account.post(ada.chat, fake.account.user, text="It runs.")
    async with beside(tmp_path, fake, ada) as bot:
        await until(lambda: ada.sees()[2:])
        await until(lambda: fake.calls("editMessageCaption")[1:])
        ada.reacts(ada.sees()[0].id, "👍")
        ada.reacts(ada.sees()[2].id, "👎")
        await until(lambda: is_now(bot, ada, -1.0))
        assert await carrying(bot) == [ada.sees()[2].id]


async def test_b10_an_answer_that_is_sent_once_asks_telegram_of_no_message(
    tmp_path: Path, fake: FakeTelegram, ada: Person
) -> None:
    async with beside(tmp_path, fake, ada) as bot:
        ada.says("What is love?")
        await until(lambda: carrying(bot))
        ada.says("And what is hate?")
        await until(lambda: rows(bot.store, "SELECT 1 FROM messages LIMIT 1 OFFSET 1"))
        assert fake.calls("editMessageCaption") == []
