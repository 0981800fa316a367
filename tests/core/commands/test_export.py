# SPDX-License-Identifier: Apache-2.0
"""`export`: a file on the bot's own machine, for its owner, which forgetting takes along."""

from __future__ import annotations

import asyncio
import contextlib
import json
import stat
import threading
from pathlib import Path
from typing import Any

import pytest
from goodbot.commands.snapshot import Snapshot
from goodbot.store import exporting, forgetting, settings

from tests.core.builders import Bot, open_bot
from tests.support import patience


async def exported(bot: Bot) -> list[dict[str, Any]]:
    result = await bot.app.commands.execute(bot.chat.typed("export"))
    path = Path(result.data["path"])
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert path.name in result.text
    assert str(path) not in result.text, "a chat need not know where"
    lines = path.read_text(encoding="utf-8").splitlines()
    assert len(lines) == result.data["answers"]
    return [json.loads(line) for line in lines]


async def test_what_was_rated_and_said_is_exported_whole(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        assert await exported(bot) == []
        answer = await bot.say("How far\nis it? 🙂")
        await bot.say("Nobody rates this one")
        await bot.react(answer, "👎")
        await bot.chat.press(answer, "star:2")
        await bot.chat.comment(answer, "It is 4 km.", better=True)
        new = await bot.chat.again(answer, "short")
        await bot.say("next")  # the retry is recorded then
        await bot.react(new, "👍", user="rater")
        first, second = await exported(bot)
        assert first["messages"] == [{"role": "user", "content": "How far\nis it? 🙂"}]
        assert (first["answer"], first["instead_of"]) == (answer.text, None)
        assert first["ratings"] == {"loopback:owner": [-1.0, -0.5]}
        assert first["remarks"] == [{"kind": "better", "rater": "loopback:owner", "text": "It is 4 km."}]
        assert (second["instead_of"], second["ratings"]) == (answer.turn, {"loopback:rater": 1.0})


async def test_two_exports_of_one_second_are_two_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_bot(tmp_path) as bot:
        monkeypatch.setattr(bot.app.clock, "now", lambda: 1_800_000_000.5)
        paths = [(await bot.app.commands.execute(bot.chat.typed("export"))).data["path"] for _ in range(3)]
        data = [path for path in exporting.files(tmp_path / "bot") if path.suffix == ".jsonl"]
        assert sorted(paths) == sorted(map(str, data))
        assert [Path(path).name for path in paths] == [
            "20270115-080000.jsonl",
            "20270115-080000-2.jsonl",
            "20270115-080000-3.jsonl",
        ]


async def test_only_owners_export(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        assert await bot.command("export", user="stranger") == ""
        for user in ("talker", "rater"):
            assert await bot.command("export", user=user) == ("`export` is for the owners of this bot.")
        assert not (tmp_path / "bot" / "exports").exists()
        assert "0 rated answers: exports/" in await bot.command("export")


async def test_forgetting_deletes_what_was_exported(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        answer = await bot.say("My name is Ada", user="rater")
        await bot.react(answer, "👍", user="rater")
        assert len(await exported(bot)) == 1
        await bot.command("forget", "me", user="rater")
        said = await bot.command("forget", "me yes", user="rater")
        assert "What was exported is deleted too." in said
        assert list((tmp_path / "bot" / "exports").iterdir()) == []


async def test_a_disk_error_or_a_crash_only_delays_that(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_bot(tmp_path) as bot:
        await bot.react(await bot.say("My name is Ada", user="rater"), "👍", user="rater")
        await exported(bot)

        def fails(home: Path) -> None:
            raise OSError("the disk is gone")

        with monkeypatch.context() as patch:
            patch.setattr(exporting, "clear", fails)
            await bot.command("forget", "me", user="rater")
            said = await bot.command("forget", "me yes", user="rater")
            assert "Wiping the disk waits: the disk is gone." in said
            assert "is deleted too" not in said
    async with open_bot(tmp_path) as bot:
        assert exporting.files(tmp_path / "bot")
        await bot.app.eraser.sweep()
        assert exporting.files(tmp_path / "bot") == []


async def test_an_export_under_way_is_waited_for_and_deleted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_bot(tmp_path) as bot:
        await bot.react(await bot.say("My name is Ada", user="rater"), "👍", user="rater")
        begun, go = asyncio.Event(), threading.Event()
        finish, loop = Snapshot.finish, asyncio.get_running_loop()

        def slow(*args: Any) -> str:
            loop.call_soon_threadsafe(begun.set)
            go.wait(patience(10))
            return finish(*args)

        monkeypatch.setattr(Snapshot, "finish", slow)
        exporting_now = asyncio.create_task(exported(bot))
        await begun.wait()
        await bot.app.store.write(lambda db: settings.set_switch(db, forgetting.ERASE, "1"))
        sweeping = asyncio.create_task(bot.app.eraser.sweep())
        await asyncio.sleep(0.05)
        go.set()
        with contextlib.suppress(FileNotFoundError):
            await exporting_now
        await sweeping
        assert exporting.files(tmp_path / "bot") == []
