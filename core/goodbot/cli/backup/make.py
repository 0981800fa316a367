# SPDX-License-Identifier: Apache-2.0
"""Making a backup: beside a running daemon, which goes on writing meanwhile, or alone."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Generator, Mapping
from dataclasses import dataclass
from pathlib import Path

import goodbot
from goodbot.api.adapters.manifest import verify
from goodbot.api.connector import ConnectorSpec
from goodbot.api.texts.terminal import phrase
from goodbot.base import durable
from goodbot.base.encrypted import ENDING
from goodbot.base.errors import AdapterError, BusyError, GoodbotError, UsageError
from goodbot.cli.backup import archive
from goodbot.cli.backup.travel import Travelling
from goodbot.config import vault
from goodbot.config.layout import DATABASE
from goodbot.config.lock import HomeLock
from goodbot.store import backup, workshop
from goodbot.store.migrate import migrations

_CONFIG = "config.toml"


@dataclass(frozen=True, kw_only=True)
class BackupResult:
    """A backup that was written and read back."""

    path: Path
    size: int
    """Bytes."""
    about: archive.BackupManifest


def make(
    home: Path, target: Path, specs: Mapping[str, ConnectorSpec], *, now: float, config: Path | None = None
) -> BackupResult:
    """Write a backup of the state directory to `target`; `now` in seconds since the epoch.

    Of what connectors keep it holds what their `specs` name.
    The file appears under its name when it is complete and was read back. Raises UsageError
    (nothing to back up, `target` is there already), StoreError, StoreFullError, ArchiveError.
    """
    target = target.absolute()
    _require_new(target)
    if not (home / DATABASE).is_file():
        raise UsageError(phrase("backup_nothing", home=home))
    with (
        backup.explained(target),
        workshop.made(home, target.parent) as work,
        vault.lent(work, vault.of(home / DATABASE)),
        _quiet(home) as still,
    ):
        database = backup.copy(home / DATABASE, work / DATABASE, still=still)
        backup.require_schema(database.schema, len(migrations()))
        travelling = Travelling(specs)
        backup.strip(database.path, travelling.values)
        files = {DATABASE: database.path}
        left_out: list[str] = []
        for directory, sha256 in backup.adapters(database.path):
            try:
                found = verify(home / "adapters", directory, sha256)
            except AdapterError:
                left_out.append(directory)
            else:
                here = sorted(found.iterdir())
                named = {f"adapters/{directory}/{p.name.removesuffix(ENDING)}": p for p in here}
                files |= {name: p for name, p in named.items() if archive.allowed(name)}
        adapters = len({name.split("/")[1] for name in files if name.startswith("adapters/")})
        files |= _copies({_CONFIG: config or home / _CONFIG, **travelling.files(home)}, work)
        about = archive.BackupManifest(
            goodbot=goodbot.__version__,
            schema=database.schema,
            created_at=now,
            turns=database.rows["turns"],
            ratings=database.rows["labels"],
            adapters=adapters,
            left_out=tuple(left_out),
        )
        backup.require_space(target.parent, sum(path.stat().st_size for path in files.values()))
        partial = work / "archive.tar"
        archive.write(partial, about, files)
        if archive.read(partial) != about:
            raise GoodbotError(phrase("backup_odd"))
        size = partial.stat().st_size
        _publish(partial, target)
    return BackupResult(path=target, size=size, about=about)


def _require_new(target: Path) -> None:
    if os.path.lexists(target):
        raise UsageError(phrase("backup_there", path=target))
    if not target.parent.is_dir():
        raise UsageError(phrase("backup_no_folder", path=target.parent))


@contextlib.contextmanager
def _quiet(home: Path) -> Generator[bool]:
    """Nobody starts meanwhile; False when a daemon runs already, which is only read beside."""
    lock = HomeLock(home)
    try:
        lock.acquire()
        still = True
    except BusyError:
        still = False
    try:
        yield still
    finally:
        lock.release()


def _copies(sources: Mapping[str, Path], work: Path) -> dict[str, Path]:
    """Copies of what may change while the archive is written, by their names in it."""
    copies: dict[str, Path] = {}
    for number, (name, source) in enumerate(sources.items()):
        if archive.allowed(name) and source.is_file():
            copies[name] = work / f"file-{number}"
            shutil.copyfile(source, copies[name])
    return copies


def _publish(partial: Path, target: Path) -> None:
    """Give the file its name in one step, and never somebody else's."""
    try:
        os.link(partial, target)
    except FileExistsError:
        _require_new(target)
    except OSError:  # a file system without hard links
        _require_new(target)
        partial.rename(target)
    durable.sync(target.parent)
