# SPDX-License-Identifier: Apache-2.0
"""Bringing a backup back: all of it is checked in a directory beside the state directory first.

What must not travel is dropped, also from a backup that holds it, and what it would let others do is
laid beside what they may do now (`authority`).
Then two renames put it in its place, and more take along what a person has put there. Killed after the first
one, it is finished at the next start (`lock.finish_restore`); killed before, nothing has happened.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from goodbot.api.adapters.manifest import verify
from goodbot.api.plugins import PluginHost
from goodbot.api.texts import commas, explained, reworded
from goodbot.api.texts.terminal import here, phrase
from goodbot.base import durable, trees
from goodbot.base.errors import AdapterError, GoodbotError, StoreError
from goodbot.base.printing import one_line
from goodbot.base.suggest import TERMINAL
from goodbot.cli.backup import archive, authority, encryption
from goodbot.cli.backup.travel import Travelling, keep
from goodbot.config import vault
from goodbot.config.layout import BEFORE_RESTORE, DATABASE, GIVEN, RESTORED
from goodbot.config.lock import HomeLock, changing, holder, prepare_home
from goodbot.config.vault import Vault
from goodbot.store import Store, backup, inspection, settings, workshop
from goodbot.store.migrate import migrations
from goodbot.store.shape import require_shape

_STAGING = ".restoring-"


@dataclass(frozen=True, kw_only=True)
class UnpackedBackup:
    """A backup that was unpacked and found whole."""

    staging: Path
    about: archive.BackupManifest
    replaces: tuple[str, ...]
    """What is there now, one line each; empty for an empty directory."""
    notes: tuple[str, ...]
    """What a person should know before they agree, one sentence each."""
    gains: tuple[authority.Gain, ...]
    """What it lets others do that they may not do now, and the settings that it changes."""

    @property
    def words(self) -> tuple[str, ...]:
        """What has to be typed for it, of `authority.WORDS`."""
        asked = {gain.word for gain in self.gains}
        return tuple(word for word in authority.WORDS if word in asked)


@contextlib.asynccontextmanager
async def prepared(
    path: Path, home: Path, plugins: PluginHost, *, now: float, key: str = ""
) -> AsyncGenerator[UnpackedBackup]:
    """Unpack and check a backup; the state directory is locked, and untouched, until `swap`.

    `plugins` are those of now, not of the backup. `now` in seconds since the epoch, for the audit trail.
    `key`: where the key of an encrypted one is, if not where this state directory has its own.
    Raises BusyError while goodbot runs, ArchiveError, StoreError, NewerDataError, StoreFullError.
    """
    if os.path.ismount(home):
        raise StoreError(phrase("restore_mount", home=home))
    prepare_home(home)
    lock = HomeLock(home)
    lock.acquire()
    try:
        with backup.explained(home.parent):
            _sweep(home)
            workshop.sweep(home)  # of those nobody would know any more
            staging = Path(tempfile.mkdtemp(prefix=home.name + _STAGING, dir=home.parent))
        ours = HomeLock(staging)
        ours.acquire()
        try:
            with backup.explained(path), encryption.of_backup(path, home, staging, key) as known:
                yield await _prepare(path, home, staging, plugins, now, known)
        finally:
            ours.release()
            trees.remove(staging, ignore_errors=True)
    finally:
        lock.release()


async def _prepare(
    path: Path, home: Path, staging: Path, plugins: PluginHost, now: float, known: Vault | None
) -> UnpackedBackup:
    travelling = Travelling(plugins.connectors())
    about = archive.read(path, staging, travelling.takes, known)
    encryption.settle(staging, known)
    database = staging / DATABASE
    found = backup.verify(database)
    backup.require_schema(found.schema, len(migrations()))
    require_shape(database, found.schema)
    expected = (about.schema, about.turns, about.ratings)
    if (found.schema, found.rows["turns"], found.rows["labels"]) != expected:
        raise StoreError(phrase("restore_other_list", path=path))
    adapters = staging / "adapters"
    adapters.mkdir(mode=0o700, exist_ok=True)
    notes = _check_adapters(database, adapters)
    backup.strip(database, travelling.values)
    store = await Store.open(database)  # to the schema of now
    try:
        replaces = _present(home)
        before, after = await _now(home, staging), await authority.read(staging)
        gains = authority.gains(before, after, new=not replaces, kept=authority.keeper(home, plugins))
        notes += after.notes
        if not (staging / "config.toml").exists():
            notes.append(phrase("restore_no_config"))
        notes += [phrase("restore_now", note=note) for note in before.notes]
        if known is None and (home / vault.FILE).exists():
            notes.append(phrase("restore_clear"))
        if replaces and await authority.forgotten_since(home, about.created_at):
            notes.append(phrase("restore_forgotten"))
        detail = {
            "made": about.created_at,
            "goodbot": about.goodbot,
            "owners": [gain.owner for gain in gains if gain.owner],
            "gains": len(gains),
        }
        await store.write(
            lambda db: settings.record(db, f"{TERMINAL}:{os.geteuid()}", "restore", detail, now)
        )
    finally:
        await store.close()
    backup.beside(database, found.schema).unlink(missing_ok=True)  # the backup itself is the copy
    return UnpackedBackup(
        staging=staging, about=about, replaces=replaces, notes=tuple(notes), gains=tuple(gains)
    )


async def _now(home: Path, staging: Path) -> authority.Authority:
    """What holds here now. Of an older goodbot's database a copy is upgraded and read."""
    database, folder = home / DATABASE, staging / "now"
    try:
        if not database.is_file() or await _is_current(database):
            return await authority.read(home)
        folder.mkdir(mode=0o700)
        with vault.lent(folder, vault.of(database)):
            upgraded = folder / "now.db"
            backup.copy(database, upgraded, still=True)
            await (await Store.open(upgraded)).close()
            return await authority.read(home, upgraded)
    except GoodbotError:  # damaged, or of a newer one: nothing in it is known to hold
        return await authority.read(home)
    finally:
        trees.remove(folder, ignore_errors=True)


async def _is_current(database: Path) -> bool:
    async with inspection.look(database) as db:
        return await inspection.current(db)


def _check_adapters(database: Path, folder: Path) -> list[str]:
    known = dict(backup.adapters(database))
    there = {entry.name for entry in folder.iterdir()}
    if strange := sorted(there - set(known)):
        raise StoreError(phrase("restore_strange", name=strange[0]))
    for directory in sorted(there):
        try:
            verify(folder, directory, known[directory])
        except AdapterError as error:
            why = one_line(reworded(error, here()))
            raise StoreError(phrase("restore_untrusted", why=why)) from error
    return [phrase("restore_absent", name=name) for name in sorted(set(known) - there)]


def _present(home: Path) -> tuple[str, ...]:
    """What the state directory holds now."""
    beside = {"lock", f"{DATABASE}-wal", f"{DATABASE}-shm"}
    names = sorted(entry.name for entry in home.iterdir() if entry.name not in beside)
    if not names:
        return ()
    lines = [explained(str(home), commas(here(), *names), here())]
    with contextlib.suppress(StoreError):
        rows = backup.count(home / DATABASE)
        answers = phrase("count_answers", answers=rows["turns"])
        lines.append(commas(here(), answers, phrase("count_ratings", count=rows["labels"])))
    return tuple(lines)


def swap(ready: UnpackedBackup, home: Path, *, now: float) -> Path | None:
    """Put it in place of the state directory; returns where that lies now, None if it was empty.

    Tokens, and what else is bound to this machine, stay. `now` in seconds since the epoch. Raises
    StoreError, and then nothing has changed.
    """
    stamp = datetime.fromtimestamp(now, tz=UTC).strftime("%Y%m%d-%H%M%S")
    before = home.with_name(f"{home.name}{BEFORE_RESTORE}{stamp}")
    restored = home.with_name(home.name + RESTORED)
    with backup.explained(home), changing(home):
        if os.path.lexists(before):
            raise StoreError(phrase("restore_again", path=before))
        keep(home, ready.staging)
        _sync_all(ready.staging)
        ready.staging.rename(restored)
        try:
            home.rename(before)
            try:
                restored.rename(home)
                try:
                    for name in GIVEN:  # a person's own, and not in a backup
                        if (before / name).exists():
                            (before / name).rename(home / name)
                except OSError:  # it is a file system of its own
                    home.rename(restored)
                    raise
            except OSError:
                before.rename(home)
                raise
        except OSError:
            restored.rename(ready.staging)
            raise
        durable.sync(home.parent)
    if ready.replaces:
        return before
    trees.remove(before, ignore_errors=True)
    return None


def _sync_all(folder: Path) -> None:
    for parent, _, names in os.walk(folder):
        for name in names:
            durable.sync(Path(parent, name))
        durable.sync(Path(parent))


def _sweep(home: Path) -> None:
    """Remove what killed restores have left beside the state directory."""
    for entry in home.parent.iterdir():
        stale = entry.name == home.name + RESTORED or entry.name.startswith(home.name + _STAGING)
        if stale and not entry.is_symlink() and not holder(entry)[0]:
            trees.remove(entry, ignore_errors=True)
