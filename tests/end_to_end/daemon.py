# SPDX-License-Identifier: Apache-2.0
"""A real `goodbot run` in a process of its own."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sqlite3
import sys
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

from goodbot.testing.connector_base import eventually

from tests.support import patience


class Daemon:
    """`goodbot run --demo-model` in `home`, with this text as its config."""

    def __init__(self, home: Path, config: str, environ: Mapping[str, str]) -> None:
        self.home = home
        home.mkdir(mode=0o700, exist_ok=True)
        (home / "config.toml").write_text(config, encoding="utf-8")
        self._environ = {**os.environ, **environ}
        self._log = (home / "daemon.log").open("ab")
        self.process: asyncio.subprocess.Process | None = None

    async def start(self, seconds: float = 120.0) -> None:
        """Returns when it says that it answers."""
        size = self._log.tell()
        self.process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "goodbot",
            "--home",
            str(self.home),
            "run",
            "--demo-model",
            stdin=asyncio.subprocess.DEVNULL,
            stderr=self._log,
            env=self._environ,
        )

        async def greeted() -> bool:
            assert self.process is not None
            assert self.process.returncode is None, self.log()
            return "Ctrl-C stops." in self.log(size)

        await eventually(greeted, seconds)

    async def cli(self, *words: str) -> str:
        """What `goodbot WORDS` prints, beside the running one."""
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "goodbot",
            "--home",
            str(self.home),
            *words,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            env=self._environ,
        )
        said, _ = await process.communicate()
        assert process.returncode == 0
        return said.decode()

    def log(self, since: int = 0) -> str:
        return (self.home / "daemon.log").read_bytes()[since:].decode()

    async def end(self, how: signal.Signals = signal.SIGTERM) -> int:
        """Send a signal and wait; the exit status."""
        assert self.process is not None
        if self.process.returncode is None:
            self.process.send_signal(how)
        return await asyncio.wait_for(self.process.wait(), patience(30))

    async def close(self) -> None:
        if self.process is not None and self.process.returncode is None:
            await self.end(signal.SIGKILL)
        self._log.close()

    def rows(self, query: str, *values: Any) -> list[tuple[Any, ...]]:
        """What the database says, read only."""
        address = f"file:{self.home / 'goodbot.db'}?mode=ro"
        with contextlib.closing(sqlite3.connect(address, uri=True)) as db:
            return db.execute(query, values).fetchall()


@contextlib.asynccontextmanager
async def running(daemon: Daemon) -> AsyncIterator[Daemon]:
    """A started daemon, killed at the end if it has not ended by itself."""
    try:
        await daemon.start()
        yield daemon
    finally:
        await daemon.close()
