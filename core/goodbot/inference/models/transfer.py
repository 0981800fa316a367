# SPDX-License-Identifier: Apache-2.0
"""A model's files, from the hub into the cache that all programs share, each hash checked.

The hub's library keeps no part of a broken download; here a part stays, and the next attempt goes on
from there.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import shutil
from pathlib import Path
from typing import BinaryIO, Protocol

from goodbot.base import durable
from goodbot.base.errors import BusyError, GoodbotError
from goodbot.base.worded import Worded
from goodbot.inference.models.fetched import partial_name
from goodbot.inference.models.hub import HubError, HubFile, HubModel, get, sentences


class DamagedError(GoodbotError):
    """A file arrived with another hash than the hub says."""


class Meter(Protocol):
    """Is told how a download comes on, in bytes."""

    def kept(self, count: int) -> None:
        """So much lies here already, from an earlier attempt."""
        ...

    def arrived(self, count: int) -> None:
        """So much came over the network."""
        ...

    def lost(self, count: int) -> None:
        """So much has to come again."""
        ...


def missing(model: HubModel, folder: Path) -> int:
    """Bytes that a download would still have to bring."""
    total = 0
    for file in model.files:
        if not (folder / "blobs" / file.digest).exists():
            with contextlib.suppress(FileNotFoundError):
                total -= (folder / "blobs" / partial_name(file.digest)).stat().st_size
            total += file.size
    return max(0, total)


def download(model: HubModel, folder: Path, token: str | None, meter: Meter) -> Path:
    """Bring all files into the cache's layout; the snapshot's directory. Raises GoodbotError."""
    blobs, snapshot = folder / "blobs", folder / "snapshots" / model.commit
    try:
        blobs.mkdir(parents=True, exist_ok=True)
        needed = missing(model, folder)
        if (free := shutil.disk_usage(blobs).free) < needed + (1 << 28):
            full = (
                "{repo} needs {needed} GB and {path} has {free} GB free: make room, or point HF_HUB_CACHE to "
                "another disk"
            )
            needs, has = f"{needed / 1e9:.1f}", f"{free / 1e9:.1f}"
            raise HubError(Worded(full, repo=model.repo, path=blobs, needed=needs, free=has))
        for file in model.files:
            _fetch(model, file, blobs, token, meter)
        snapshot.mkdir(parents=True, exist_ok=True)
        # config.json last: without it the directory is no model.
        for file in sorted(model.files, key=lambda one: one.name == "config.json"):
            _link(snapshot / file.name, Path("..", "..", "blobs", file.digest))
        reference = folder / "refs" / "main"
        if not reference.exists():  # other programs look there
            reference.parent.mkdir(exist_ok=True)
            reference.write_text(model.commit, encoding="ascii")
    except OSError as error:
        where = error.filename or blobs
        why = Worded("{path}: {why}", path=where, why=error.strerror)
        raise HubError(Worded("the download cannot be written: {why}", why=why)) from error
    return snapshot


def _fetch(model: HubModel, file: HubFile, blobs: Path, token: str | None, meter: Meter) -> None:
    """One file, resumed from its part; a damaged one is fetched once more, whole."""
    blob, partial = blobs / file.digest, blobs / partial_name(file.digest)
    if blob.exists():
        return
    for attempt in (1, 2):
        with partial.open("ab") as target:
            try:
                fcntl.flock(target, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                busy = Worded("another goodbot is downloading {repo}", repo=model.repo)
                raise BusyError(busy) from None
            start = target.tell()
            if start > file.size:
                target.truncate(0)
                start = 0
            meter.kept(start)
            with sentences(model.repo):
                if start < file.size:
                    get(model, file, _Counting(target, meter), start, token)
            durable.flush(target)
            if _digest(partial, file) == file.digest:
                partial.replace(blob)
                return
            partial.unlink()
            meter.lost(file.size)
        if attempt == 2:
            damaged = (
                "{name} of {repo} arrived damaged, twice: its hash is not the one that the hub names. "
                "Nothing was kept of it; try again later, or from another network"
            )
            raise DamagedError(Worded(damaged, name=file.name, repo=model.repo))


class _Counting:
    """A file that tells how much was written to it."""

    def __init__(self, file: BinaryIO, meter: Meter) -> None:
        self._file = file
        self._meter = meter
        self.tell, self.seek = file.tell, file.seek

    def write(self, data: bytes) -> int:
        self._meter.arrived(len(data))
        return self._file.write(data)

    def truncate(self) -> int:
        """From the present position on; those bytes come again."""
        end = self._file.seek(0, os.SEEK_END)
        self._meter.lost(end)
        self._file.seek(0)
        return self._file.truncate()


def _digest(path: Path, file: HubFile) -> str:
    if file.is_large:
        digest = hashlib.sha256()
    else:
        digest = hashlib.sha1(f"blob {path.stat().st_size}\0".encode(), usedforsecurity=False)
    with path.open("rb") as data:
        while piece := data.read(1 << 22):
            digest.update(piece)
    return digest.hexdigest()


def _link(link: Path, target: Path) -> None:
    if link.is_symlink() or link.exists():
        link.unlink()
    link.symlink_to(target)
