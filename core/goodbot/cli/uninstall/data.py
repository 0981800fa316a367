# SPDX-License-Identifier: Apache-2.0
"""The state directory itself, and what a restore or a backup has put elsewhere."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence
from pathlib import Path

from goodbot.api.texts import commas, explained
from goodbot.api.texts.terminal import here, phrase
from goodbot.base.errors import UsageError
from goodbot.cli.uninstall.trace import Leaving, Trace, delete, size_of, staying
from goodbot.config.layout import beside, is_home, ours
from goodbot.config.lock import HomeLock
from goodbot.store import workshop


async def home(leaving: Leaving) -> Sequence[Trace]:
    """Every entry that is goodbot's own; anything else stays, and the directory with it.

    Raises UsageError for a directory that is no state directory.
    """
    place = leaving.home
    if leaving.keep_data or not place.exists():
        return ()
    if place.is_symlink() or place == Path.home() or not is_home(place):
        raise UsageError(phrase("uninstall_no_home", path=place))
    names = sorted(entry.name for entry in place.iterdir())
    own = [name for name in names if ours(name)]

    async def remove() -> None:
        await asyncio.to_thread(_remove, place)

    what = explained(str(place), commas(here(), *own) or phrase("uninstall_empty"), here())
    why = phrase("uninstall_not_ours")
    traces = [staying("data", str(place / name), why) for name in names if not ours(name)]
    size = sum(size_of(place / name) for name in own)
    return [*traces, Trace(kind="data", what=what, size=size, remove=remove)]


def _remove(place: Path) -> None:
    lock = HomeLock(place)
    lock.acquire()
    try:
        # The lock goes last: who comes now finds it held.
        for entry in sorted(place.iterdir(), key=lambda entry: entry.name == "lock"):
            if ours(entry.name):
                delete(entry)
        with contextlib.suppress(OSError):  # somebody else's files are in it
            place.rmdir()
    finally:
        lock.release()


async def restores(leaving: Leaving) -> Sequence[Trace]:
    """State directories that a restore has replaced, or did not come to put in place."""
    if leaving.keep_data:
        return ()
    return [
        Trace(kind="data", what=str(path), size=size_of(path), remove=_deleting(path))
        for path in beside(leaving.home)
    ]


async def backups(leaving: Leaving) -> Sequence[Trace]:
    """What a killed backup, or a killed export, has left beside what it was to be."""
    if leaving.keep_data:
        return ()
    return [
        Trace(kind="data", what=str(path), size=size_of(path), remove=_deleting(path))
        for path in await asyncio.to_thread(workshop.left, leaving.home)
    ]


def _deleting(path: Path):
    async def remove() -> None:
        await asyncio.to_thread(delete, path)

    return remove
