# SPDX-License-Identifier: Apache-2.0
"""A full disk costs no training: it waits, and goes on once there is room."""

from __future__ import annotations

import errno
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from goodbot.access import limits
from goodbot.base import full_disk
from goodbot.base.errors import AdapterError, GoodbotError, ServerError, StoreFullError, TrainingError
from goodbot.base.full_disk import is_full
from goodbot.learning.adapters import retention
from goodbot.learning.training import attempts, disk_room

from tests.core.builders import Bot, check, open_bot, rows, until

FULL = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


async def fails(bot: Bot) -> None:
    """It is told what to do, and the run waits."""
    with pytest.raises(GoodbotError, match=r"free some space\. Then the training goes on"):
        await bot.train()
    run = await bot.last_run()
    assert (run.id, run.state) == (1, "running")


async def goes_on(bot: Bot) -> None:
    bot.fake.set(train="ok")
    await bot.command("resume")
    await bot.settle()
    run = await bot.last_run()
    assert (run.id, run.state) == (1, "activated"), run.reason
    await check(bot)


async def test_t10_a_disk_that_is_full_for_its_child_costs_no_training(tmp_path: Path) -> None:
    """It failed, and so did the next two, one after the other."""
    async with open_bot(tmp_path) as bot:
        await bot.rated(8)
        await bot.command("pause")  # so that it does not go on by itself before it is looked at
        bot.fake.set(train="disk")
        await fails(bot)
        assert await rows(bot.store, "SELECT count(*) FROM set_aside") == [(0,)]
        await goes_on(bot)


async def test_t10_nor_does_one_that_is_full_when_its_version_is_laid_down(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_bot(tmp_path) as bot:
        await bot.rated(8)
        await bot.command("pause")

        async def go(*args: Any, **more: Any) -> Any:
            raise FULL

        with monkeypatch.context() as patch:
            patch.setattr(bot.app.trainer._going_live, "go", go)
            await fails(bot)
        await goes_on(bot)


def not_converted() -> AdapterError:
    error = AdapterError("it was not converted")
    error.__cause__ = FULL
    return error


def said_by_a_child() -> ServerError:
    error = ServerError("it was not converted")
    error.__cause__ = TrainingError("full", kind=full_disk.KIND)
    return error


@pytest.mark.parametrize("error", [StoreFullError("full"), not_converted()], ids=["database", "copy"])
async def test_t10_nor_does_one_that_is_full_once_its_version_was_recorded(
    error: GoodbotError, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was given up then, and all its answers were trained anew."""
    async with open_bot(tmp_path) as bot:
        await bot.rated(8)
        await bot.command("pause")

        async def activate(*args: Any, **more: Any) -> Any:
            raise error

        with monkeypatch.context() as patch:
            patch.setattr(bot.app.registry, "activate", activate)
            for _ in range(attempts.MOST + 1):
                await fails(bot)
        assert [row.version for row in await bot.app.registry.rows()] == [1]
        assert await bot.app.registry.active() == 0
        with monkeypatch.context() as patch:
            patch.setattr(full_disk, "_free", lambda home: 400_000_000)
            await bot.command("resume")
            assert "until 500 MB of the disk are free" in (await bot.status())["next"]
        bot.app.scheduler.wake()
        await bot.settle()
        run = await bot.last_run()
        assert (run.id, run.state) == (1, "activated"), run.reason
        assert await bot.app.registry.active() == 1, "it was not trained once more"
        await check(bot)
        assert not list((tmp_path / "bot" / "staging").iterdir())


@pytest.mark.parametrize("kind", [AdapterError, ServerError])
async def test_t10_what_a_server_says_of_its_own_disk_lets_no_version_wait(
    kind: type[GoodbotError], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would wait for as long as the server says so, and nothing else would train."""
    async with open_bot(tmp_path) as bot:
        await bot.rated(8)

        async def activate(*args: Any, **more: Any) -> Any:
            raise kind(f"it refuses the adapter: {os.strerror(errno.ENOSPC)}")

        monkeypatch.setattr(bot.app.registry, "activate", activate)
        monkeypatch.setattr(full_disk, "_free", lambda home: 1 << 40)
        assert (await bot.train()).state == "failed"


@pytest.mark.parametrize("kind", [AdapterError, ServerError])
async def test_t10_but_where_our_disk_is_full_its_words_are_of_that(
    kind: type[GoodbotError], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A child of ours that starts, or a server on this machine, has nothing else to say it with."""
    async with open_bot(tmp_path) as bot:
        await bot.rated(8)
        await bot.command("pause")
        monkeypatch.setattr(full_disk, "_free", lambda home: 1 << 40)

        async def activate(*args: Any, **more: Any) -> Any:
            monkeypatch.setattr(full_disk, "_free", lambda home: 0)
            raise kind(f"it ended: {os.strerror(errno.ENOSPC)}")

        with monkeypatch.context() as patch:
            patch.setattr(bot.app.registry, "activate", activate)
            await fails(bot)
        monkeypatch.setattr(full_disk, "_free", lambda home: 1 << 40)
        await goes_on(bot)


async def test_t10_nor_does_what_a_child_says_for_longer_than_a_day_where_there_is_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_bot(tmp_path) as bot:
        await bot.rated(8)
        await bot.command("pause")

        free = 0  # what is left once it goes live

        async def activate(*args: Any, **more: Any) -> Any:
            monkeypatch.setattr(full_disk, "_free", lambda home: free)
            raise said_by_a_child()

        monkeypatch.setattr(bot.app.registry, "activate", activate)
        monkeypatch.setattr(full_disk, "_free", lambda home: 1 << 40)
        await fails(bot)
        waits = bot.app.trainer._going_live
        assert waits._kept is not None
        assert waits._kept.kept == 0.0, "there was no room: its day begins when there is"
        free = 1 << 40
        monkeypatch.setattr(full_disk, "_free", lambda home: free)
        await fails(bot)
        assert waits._kept is not None
        waits._kept = replace(waits._kept, kept=waits._kept.kept - 86_000.0)
        await fails(bot)
        waits._kept = replace(waits._kept, kept=waits._kept.kept - 1000.0)
        assert (await bot.train()).state == "failed"


async def test_t10_what_waits_for_the_disk_keeps_its_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is neither what answers nor one that was gone back from: by age alone its files would make room."""
    async with open_bot(tmp_path) as bot:
        for _ in range(2):
            await bot.rated(8)
            assert (await bot.train()).state == "activated"
        await bot.rated(8)
        await bot.command("pause")

        async def activate(*args: Any, **more: Any) -> Any:
            raise FULL

        with monkeypatch.context() as patch:
            patch.setattr(bot.app.registry, "activate", activate)
            with pytest.raises(GoodbotError, match="free some space"):
                await bot.train()
        await retention.prune(bot.store, bot.app.registry, keep=2, now=0.0)
        assert await rows(bot.store, "SELECT erased_at FROM adapters WHERE version = 3") == [(None,)]
        await bot.command("resume")
        await bot.settle()
        run = await bot.last_run()
        assert (run.id, run.state) == (3, "activated"), run.reason
        assert await bot.app.registry.active() == 3
        await check(bot)


async def test_t10_what_waits_for_the_disk_does_not_go_live_once_its_rating_has_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_bot(tmp_path) as bot:
        made = await bot.rated(8)
        await bot.command("pause")

        async def activate(*args: Any, **more: Any) -> Any:
            raise FULL

        with monkeypatch.context() as patch:
            patch.setattr(bot.app.registry, "activate", activate)
            await fails(bot)
        learnt = await bot.trained(1)
        await bot.command("undo", next(one.turn for one in made if one.turn in learnt))
        bot.fake.set(train="ok")
        await bot.command("resume")
        await check(bot)
        assert await bot.app.registry.active() != 1


async def test_t10_where_there_seems_to_be_room_it_is_not_tried_for_ever(tmp_path: Path) -> None:
    """A quota, say, which nothing tells."""
    async with open_bot(tmp_path) as bot:
        await bot.rated(8)
        await bot.command("pause")
        bot.fake.set(train="disk")
        for _ in range(attempts.MOST - 1):
            await fails(bot)
        assert (await bot.train()).state == "failed"
        assert (await bot.status())["ratings"] == 8


@pytest.mark.parametrize("begun", [False, True])
async def test_t10_a_training_waits_for_the_room_that_it_needs(
    begun: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_bot(tmp_path) as bot:
        await bot.rated(8)
        if begun:
            await bot.command("pause")
            bot.fake.set(train="disk")
            await fails(bot)
        with monkeypatch.context() as patch:
            patch.setattr(full_disk, "_free", lambda home: 400_000_000)
            assert "waits until 500 MB of the disk are free" in await bot.command("train")
            if begun:
                await bot.command("resume")
                assert "until 500 MB of the disk are free" in (await bot.status())["next"]
            assert not bot.app.scheduler.training
            assert len(await rows(bot.store, "SELECT 1 FROM runs")) == begun
            bot.fake.set(train="ok")
        if begun:
            bot.app.scheduler.wake()
            await bot.settle()
        else:
            await bot.train()
        run = await bot.last_run()
        assert (run.id, run.state) == (1, "activated"), run.reason
        await check(bot)


async def test_t10_by_itself_none_begins_without_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(full_disk, "_free", lambda home: 0)
    async with open_bot(tmp_path, schedule="auto") as bot:
        await bot.rated(8)

        async def waits() -> bool:
            return "of the disk are free" in (await bot.status())["next"]

        await until(waits)
        monkeypatch.setattr(full_disk, "_free", lambda home: 1 << 40)
        bot.app.scheduler.wake()
        await until(bot.app.registry.active)


def test_what_is_needed_grows_with_what_is_learnt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(full_disk, "_free", lambda home: 600_000_000)
    assert disk_room.DiskRoom(home=tmp_path, needed=100_000_000).missing() is None
    missing = disk_room.DiskRoom(home=tmp_path, needed=100_000_001).missing()
    assert missing is not None
    assert missing.facts == {"megabytes": 601}
    said = limits.no_reserve(tmp_path, ahead=100_000_001)
    assert said is not None
    assert said.facts == missing.facts, "whoever asks is told the same"
    monkeypatch.undo()
    assert disk_room.DiskRoom(home=tmp_path / "gone", needed=0).missing() is None


@pytest.mark.parametrize(
    ("error", "full"),
    [
        (FULL, True),
        (OSError(errno.EDQUOT, "quota"), True),
        (StoreFullError("full"), True),
        (TrainingError("full", kind="disk"), True),
        (ExceptionGroup("both", [ValueError()]), False),
        (OSError(errno.EACCES, "no"), False),
        (None, False),
    ],
)
def test_a_full_disk_is_told_from_other_faults(error: Exception | None, full: bool) -> None:
    assert is_full(error) is full
    outer = GoodbotError("outer")
    outer.__cause__ = error
    assert is_full(outer) is full
    outer.__context__ = outer
    outer.__cause__ = None
    assert not is_full(outer), "it ends"
