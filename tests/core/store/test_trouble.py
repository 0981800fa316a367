"""A disk that fails is seen where people look: `status` says it, and that it is over."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
from goodbot.errors import StoreError

from tests.core.builders import open_bot


async def test_status_says_that_nothing_is_stored(tmp_path: Path) -> None:
    async def fail() -> None:
        error = sqlite3.OperationalError("disk I/O error")
        error.sqlite_errorcode = sqlite3.SQLITE_IOERR
        raise error

    async with open_bot(tmp_path) as bot:
        answer = await bot.say("hello")
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
        assert (await bot.status())["ratings"] == 1
