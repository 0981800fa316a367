# SPDX-License-Identifier: Apache-2.0
"""Where a run's child works: a folder of the staging directory.

Where the state directory is encrypted, that folder is in memory (`goodbot.config.clear`), and of what a child
keeps to go on from, the newest is written to the staging directory, encrypted: so a run outlives goodbot.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import stat
import tarfile
from collections.abc import Generator, Mapping
from pathlib import Path
from typing import BinaryIO, cast

from goodbot.api.adapters.files import folder as opened_folder
from goodbot.base import trees
from goodbot.base.durable import sync
from goodbot.base.encrypted import ENDING
from goodbot.base.errors import AdapterError, GoodbotError
from goodbot.base.safe_tar import ArchiveError, add, copy, next_member
from goodbot.config import clear, private
from goodbot.store import Store, runs

logger = logging.getLogger(__name__)

CHECKPOINTS = "checkpoints"
_NEW = ".new"
_TRIES = 5
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class RunFolders:
    """Those of one state directory."""

    def __init__(self, home: Path) -> None:
        self.staging = home / "staging"

    def of(self, run: int) -> Path:
        """Where the child of a run works; what was kept of it is there. Raises OSError, StoreError."""
        place = clear.of(self.staging) / f"run-{run}"
        kept = self._kept(run)
        if place.parent != self.staging and not place.exists() and kept.exists():
            place.mkdir(mode=0o700, parents=True)
            try:
                _unpack(kept, place / CHECKPOINTS)
            except (GoodbotError, OSError) as error:
                logger.warning("run %d begins anew, its checkpoint cannot be read: %s", run, error)
                trees.remove(place, ignore_errors=True)
        return place

    def keep(self, run: int) -> None:
        """Write down, encrypted, how far its child has come. Raises OSError, GoodbotError."""
        place = clear.of(self.staging) / f"run-{run}"
        if place.parent == self.staging:
            return
        kept = self._kept(run)
        kept.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        partial = kept.with_name(kept.name + _NEW)
        with _newest(place / CHECKPOINTS) as files:
            if files is None:
                return  # it writes the next one already, and says so
            _pack(files, partial)
        partial.replace(kept)
        sync(kept.parent)

    def remove(self, run: int) -> None:
        """All of a run's; what cannot be deleted stays for the next start."""
        trees.remove(self.staging / f"run-{run}", ignore_errors=True)
        with contextlib.suppress(GoodbotError, OSError):
            trees.remove(clear.of(self.staging) / f"run-{run}", ignore_errors=True)

    async def remove_ended(self, store: Store) -> None:
        """All of the runs that are over, whatever else is under way. Raises StoreError.

        Who is forgotten has ended theirs in the store, and is in its checkpoints.
        """
        there = await asyncio.to_thread(self._all)  # before: what begins meanwhile is not among them
        running = await store.read(runs.unfinished)
        for folder in there:
            if folder.name not in {f"run-{run}" for run in running}:
                await asyncio.to_thread(trees.remove, folder, ignore_errors=True)

    def _all(self) -> list[Path]:
        return [one for place in {self.staging, clear.of(self.staging)} for one in place.glob("run-*")]

    def _kept(self, run: int) -> Path:
        return self.staging / f"run-{run}" / f"{CHECKPOINTS}.tar{ENDING}"


@contextlib.contextmanager
def _newest(checkpoints: Path) -> Generator[dict[str, BinaryIO] | None]:
    """The open files of the newest checkpoint, by name; None: it went meanwhile.

    A child removes one only once the next has its name: so what is still the newest after its files were
    opened was whole. What is no plain file there is not read: the child may have put anything there.
    """
    for _ in range(_TRIES):
        with contextlib.ExitStack() as opened:
            try:
                top = opened.enter_context(opened_folder(checkpoints))
                files = {name: opened.enter_context(_plain(name, top)) for name in _names(top)}
                if step := _step(top):
                    inner = os.open(step, _FILE | os.O_DIRECTORY, dir_fd=top)
                    opened.callback(os.close, inner)
                    names = _names(inner)
                    files |= {f"{step}/{name}": opened.enter_context(_plain(name, inner)) for name in names}
                if step != _step(top):
                    continue
            except (OSError, AdapterError):
                continue
            yield files
            return
    yield None


def _step(top: int) -> str:
    return max((name for name in os.listdir(top) if name.startswith("step-")), default="")


def _names(within: int) -> list[str]:
    """Of its files; what is being written begins with a dot."""
    return sorted(
        name
        for name in os.listdir(within)
        if name[0] != "." and not stat.S_ISDIR(os.stat(name, dir_fd=within, follow_symlinks=False).st_mode)
    )


def _plain(name: str, within: int) -> BinaryIO:
    """Raises OSError, also for what is no plain file of its own."""
    file = os.fdopen(os.open(name, _FILE, dir_fd=within), "rb")
    found = os.fstat(file.fileno())
    if not stat.S_ISREG(found.st_mode) or found.st_nlink > 1:
        file.close()
        raise OSError(f"{name!a} is no plain file")
    return file


def _pack(files: Mapping[str, BinaryIO], partial: Path) -> None:
    """Raises OSError, StoreError."""
    with contextlib.closing(private.create(partial)) as out:
        with tarfile.open(fileobj=cast("BinaryIO", out), mode="w", format=tarfile.USTAR_FORMAT) as tar:
            for name, file in files.items():
                add(tar, name, os.fstat(file.fileno()).st_size, 0.0, file)
        out.finish()


def _unpack(kept: Path, into: Path) -> None:
    """Raises OSError, GoodbotError."""
    into.mkdir(mode=0o700)
    with private.opened(kept) as file:
        while (member := next_member(file)) is not None:
            name, size = member
            parts = name.split("/")
            if len(parts) > 2 or any(not part or part.startswith(".") for part in parts):
                raise ArchiveError(f"{name[:80]!a} has no place in it")
            target = into.joinpath(*parts)
            target.parent.mkdir(mode=0o700, exist_ok=True)
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
            with os.fdopen(os.open(target, flags, 0o600), "wb") as out:
                copy(file, size, out)
