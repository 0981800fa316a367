# SPDX-License-Identifier: Apache-2.0
"""What the tests of `init` and `connect` share: a home, what lies in it, and a platform's far side."""

from __future__ import annotations

import asyncio
import contextlib
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from tests.cli.program import PROGRAM, environment
from tests.support import patience

T = TypeVar("T")


def configured(home: Path, text: str) -> Path:
    """A config that is there before; the file."""
    (home / ".goodbot").mkdir(mode=0o700)
    file = home / ".goodbot" / "config.toml"
    file.write_text(text)
    file.chmod(0o600)
    return file


def listing(home: Path) -> dict[str, bytes]:
    """Every file and directory below, with what is in it."""
    return {
        str(path.relative_to(home)): path.read_bytes() if path.is_file() else b""
        for path in sorted(home.rglob("*"))
    }


def tokens(home: Path) -> str:
    """What secrets.env holds."""
    file = home / ".goodbot" / "secrets.env"
    return file.read_text() if file.exists() else ""


def call(home: Path, *words: str, input: str = "", text: bool = True, **env: str) -> Any:
    """`goodbot WORDS` without a terminal, to its end."""
    surroundings = {"HOME": str(home), "GOODBOT_HOME": str(home / ".goodbot"), **env}
    return subprocess.run(
        [*PROGRAM, *words],
        input=input if text else None,
        capture_output=True,
        text=text,
        timeout=patience(100),
        env=environment(**surroundings),
        check=False,
    )


@dataclass
class Far(Generic[T]):
    """A platform that serves on a thread of its own, for programs in processes of theirs."""

    there: T
    loop: asyncio.AbstractEventLoop

    def do(self, change: Callable[[T], Any]) -> None:
        """Change something there, between two requests."""
        done = threading.Event()
        self.loop.call_soon_threadsafe(lambda: (change(self.there), done.set()))
        assert done.wait(patience(10))


@contextlib.contextmanager
def far_side(made: Callable[[], AbstractAsyncContextManager[T]]) -> Iterator[Far[T]]:
    """Serve what `made` makes until the end of the block."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    platform = made()
    try:
        there = asyncio.run_coroutine_threadsafe(_begun(platform), loop).result(patience(10))
        try:
            yield Far(there, loop)
        finally:
            asyncio.run_coroutine_threadsafe(_ended(platform), loop).result(patience(10))
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join(patience(10))
        loop.run_until_complete(loop.shutdown_asyncgens())  # connections that are closing close
        loop.close()


async def _begun(platform: AbstractAsyncContextManager[T]) -> T:
    return await platform.__aenter__()


async def _ended(platform: AbstractAsyncContextManager[Any]) -> None:
    await platform.__aexit__(None, None, None)
