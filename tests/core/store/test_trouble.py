# SPDX-License-Identifier: Apache-2.0
"""A disk that fails is seen where people look: `status` says it, and that it is over."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pytest
from goodbot.base.errors import StoreError
from goodbot.daemon.loopback import Loopback

from tests.core.builders import Bot, check, open_bot, rows, until


async def test_status_says_that_nothing_is_stored(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        answer = await bot.say("hello")
        await until(lambda: recorded(bot))  # else that is tried again meanwhile, and opens the file
        assert (await bot.status())["store"] == "ok"
        away = bot.store.path.with_name("away")
        bot.store.path.rename(away)
        bot.store._writing.commit = fail  # type: ignore[method-assign]
        with pytest.raises(StoreError):
            await bot.react(answer, "👍")
        assert "disk failed" in (await bot.status())["store"]
        result = await bot.app.commands.execute(bot.chat.typed("status"))
        assert "nothing can be stored, so ratings are not taken: the disk failed" in result.text
        away.rename(bot.store.path)
        await bot.react(answer, "👍")
        assert (await bot.status())["store"] == "ok"
        await until(lambda: rated(bot))


async def test_an_answer_that_was_sent_while_the_disk_failed_is_recorded_when_it_is_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else its ratings would wait for the next start, and not for ever."""
    async with open_bot(tmp_path) as bot:
        away = bot.store.path.with_name("away")
        post = Loopback._post

        def fails_after_it(chat: Loopback, *args: Any) -> Any:
            sent = post(chat, *args)
            bot.store.path.rename(away)
            bot.store._writing.commit = fail  # type: ignore[method-assign]
            return sent

        with monkeypatch.context() as patch:
            patch.setattr(Loopback, "_post", fails_after_it)
            answer = await bot.say("hello")
            await until(lambda: bot.store.trouble)
        away.rename(bot.store.path)
        await bot.react(answer, "👍")
        await until(lambda: rated(bot))
        await check(bot)


async def fail() -> None:
    error = sqlite3.OperationalError("disk I/O error")
    error.sqlite_errorcode = sqlite3.SQLITE_IOERR
    raise error


async def recorded(bot: Bot) -> bool:
    """Whether the answer that was sent last is stored whole."""
    return not await rows(bot.store, "SELECT 1 FROM inbox WHERE payload <> ''")


async def rated(bot: Bot) -> bool:
    return (await bot.status())["ratings"] == 1
