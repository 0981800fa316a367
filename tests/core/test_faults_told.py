# SPDX-License-Identifier: Apache-2.0
"""The truth about itself: what goes wrong is in `status`, `/readyz`, doctor, and one line of the log."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import io
import logging
import os
import sqlite3
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import aiosqlite
import pytest
from goodbot.api.connector import ConnectorSpec
from goodbot.api.setup import Check, CheckState, Examined
from goodbot.base import log
from goodbot.base.errors import StoreError
from goodbot.cli.doctor import connectors, data, files
from goodbot.daemon.http import readiness
from goodbot.store import settings
from goodbot.store.query import fetch
from goodbot_connectors.telegram import polling

from tests.core.builders import Bot, open_bot
from tests.core.cli.doctor.examining import examined

TIMES = 30
UNUSED = "predicted"
"""A table that nothing here reads."""


@pytest.fixture
def stderr() -> Iterator[io.StringIO]:
    """What a daemon would write there."""
    root, stream = logging.getLogger(), io.StringIO()
    changed = [root, *map(logging.getLogger, log._NOISY)]
    before = [one.level for one in changed]
    handler = logging.StreamHandler(stream)
    root.addHandler(handler)
    log.to_stderr()
    yield stream
    root.removeHandler(handler)
    for one, level in zip(changed, before, strict=True):
        one.setLevel(level)


async def no_space(db: aiosqlite.Connection, *_: object) -> None:
    error = sqlite3.OperationalError("database or disk is full")
    error.sqlite_errorcode = sqlite3.SQLITE_FULL
    raise error


async def full(bot: Bot, patch: pytest.MonkeyPatch) -> None:
    """Nothing finds space, what looks whether there is some included."""
    patch.setattr(settings, "set_switch", no_space)
    for _ in range(TIMES):
        with pytest.raises(StoreError):
            await bot.store.write(no_space)


async def damaged(bot: Bot, patch: pytest.MonkeyPatch) -> None:
    """A page is overwritten under it, and somebody reads it again and again."""

    async def into_the_file(db: aiosqlite.Connection) -> tuple[int, int]:
        await fetch(db, "PRAGMA wal_checkpoint(TRUNCATE)")
        [(page,)] = await fetch(db, "SELECT rootpage FROM sqlite_schema WHERE name = ?", (UNUSED,))
        [(size,)] = await fetch(db, "PRAGMA page_size")
        return page, size

    page, size = await bot.store._writer.alone(into_the_file)
    with bot.store.path.open("r+b") as file:
        file.seek((page - 1) * size)
        file.write(b"\xa5" * 64)

    async def read(_: aiosqlite.Connection) -> None:
        error = sqlite3.DatabaseError("database disk image is malformed")
        error.sqlite_errorcode = sqlite3.SQLITE_CORRUPT
        raise error

    for _ in range(TIMES):
        with pytest.raises(StoreError):
            await bot.store.read(read)
        with contextlib.suppress(StoreError):
            await bot.store.write(lambda db: settings.set_switch(db, "a", "b"))


async def out_of_descriptors(bot: Bot, patch: pytest.MonkeyPatch) -> None:
    bot.app.http.descriptors.watch()
    error = OSError(errno.EMFILE, os.strerror(errno.EMFILE))
    for _ in range(TIMES):
        about = {"message": "socket.accept() out of system resource", "exception": error, "socket": None}
        asyncio.get_running_loop().call_exception_handler(about)


async def unheld(bot: Bot, patch: pytest.MonkeyPatch) -> None:
    for _ in range(TIMES):
        bot.app.connectors.trouble("loopback", polling._UNHELD)


def store_of(status: Mapping[str, Any]) -> str:
    return str(status["store"])


def descriptors_of(status: Mapping[str, Any]) -> str:
    return str(status["descriptors"])


def connector_of(status: Mapping[str, Any]) -> str:
    return str(status["connectors"]["loopback"])


async def about_it(examined: Examined) -> Sequence[Check]:
    return connectors._state(cast("ConnectorSpec", SimpleNamespace(name="loopback")), examined)


@dataclass(frozen=True, kw_only=True)
class Fault:
    """How it comes about, what is said of it, and where that stands."""

    happens: Callable[[Bot, pytest.MonkeyPatch], Awaitable[None]]
    says: str
    part: str
    """Of `/readyz`."""
    status: Callable[[Mapping[str, Any]], str]
    doctor: Callable[[Examined], Awaitable[Sequence[Check]]]


FAULTS = {
    "full disk": Fault(
        happens=full, says="the disk is full", part="store", status=store_of, doctor=data.database
    ),
    "damage in a page": Fault(
        happens=damaged,
        says="damaged: bring a backup back",
        part="store",
        status=store_of,
        doctor=data.database,
    ),
    "out of descriptors": Fault(
        happens=out_of_descriptors,
        says="file descriptors are taken",
        part="descriptors",
        status=descriptors_of,
        doctor=files.descriptors,
    ),
    "polls that are not held": Fault(
        happens=unheld, says="does not hold a poll", part="loopback", status=connector_of, doctor=about_it
    ),
}


@pytest.mark.parametrize("name", FAULTS)
async def test_26_11_a_fault_is_seen_wherever_one_looks_and_in_one_line_of_the_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stderr: io.StringIO, name: str
) -> None:
    fault = FAULTS[name]
    async with open_bot(tmp_path) as bot:
        assert (await readiness.parts(bot.app))[fault.part] == "ok"
        assert fault.says not in fault.status(await bot.status())
        with monkeypatch.context() as patch:
            await fault.happens(bot, patch)
            assert (await readiness.parts(bot.app))[fault.part] == "down"
            status = await bot.status()
            assert fault.says in fault.status(status)
            [check] = await fault.doctor(examined(tmp_path / "bot", daemon=status))
            assert check.state is CheckState.FAIL
            assert fault.says in check.text
            assert stderr.getvalue().count(fault.says) == 1, stderr.getvalue()
