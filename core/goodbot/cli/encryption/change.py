# SPDX-License-Identifier: Apache-2.0
"""Every file with people's words is rewritten, each in one step. Killed, it goes on with the rest.

Which files are done already, each of them says by itself. `encryption.json` says what is being done, and
while it does, nothing else opens the database.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import BinaryIO

from goodbot.api.texts.terminal import phrase
from goodbot.base import durable, encrypted, scratch, trees
from goodbot.base.encrypted import ENDING, KeyMark
from goodbot.base.errors import StoreError, UsageError
from goodbot.config import EncryptionConfig, clear, vault
from goodbot.config.file import ConfigFile
from goodbot.config.layout import DATABASE
from goodbot.config.vault import Vault, VaultRecord, database_key
from goodbot.learning.adapters import formats
from goodbot.store import backup, cipher, conversion, exporting, workshop

Told = Callable[[str, float], None]
"""Hears which file is being rewritten, and the share of it that is done."""
_PART = 1 << 20
_NEW = ".new"


def turn_on(home: Path, config: Path | None, place: str, told: Told) -> KeyMark:
    """Encrypt what is in clear, or finish that. `place`: where a new key is kept.

    The state directory is the caller's. Raises StoreError, ConfigError, UsageError, MissingExtraError.
    """
    _require_libraries()
    found = _vault(home)
    record = found.record() or _known_again(found, place)
    if record is not None and record.doing == "rekey":
        raise UsageError(phrase("encrypt_finish"))
    if record is not None:  # also back from `decrypt`; and what came in clear meanwhile is encrypted, too
        place = record.place if record.doing else found.settings.key
    record = VaultRecord(key=record.key if record else found.fresh(place), place=place, doing="encrypt")
    key = found.key(record.key, record.place)
    found.write(record)
    _rewrite(home, {record.key.id: key}, record.key, told)
    _settle(home, config, enabled=True, place=record.place)
    found.write(VaultRecord(key=record.key, place=record.place))
    return record.key


def turn_off(home: Path, config: Path | None, told: Told) -> KeyMark:
    """Write all in clear again, or finish that. Raises as `turn_on`."""
    _require_libraries()
    found = _vault(home)
    record = found.record()
    if record is None:
        raise UsageError(phrase("decrypt_nothing", home=home))
    if record.doing == "rekey":
        raise UsageError(phrase("encrypt_finish"))
    place = record.place if record.doing else found.settings.key
    record = VaultRecord(key=record.key, place=place, doing="decrypt")
    key = found.key(record.key, place)
    found.write(record)
    _rewrite(home, {record.key.id: key}, None, told)
    _settle(home, config, enabled=False, place=place)
    found.write(None)
    return record.key


def rekey(home: Path, config: Path | None, place: str, told: Told) -> KeyMark:
    """Encrypt all with a new key that is kept at `place`, or finish that. Raises as `turn_on`."""
    _require_libraries()
    found = _vault(home)
    record = found.record()
    if record is None or record.doing not in ("", "rekey"):
        raise UsageError(phrase("encrypt_off"))
    old = found.key(record.key, record.before, asked=phrase("encrypt_so_far", home=home))
    following = record.next
    if following is None:
        following, before = found.fresh(place), found.settings.key
        record = VaultRecord(key=record.key, place=place, doing="rekey", next=following, before=before)
        found.write(record)
    new = found.key(following, record.place, asked=phrase("encrypt_new", home=home))
    _rewrite(home, {record.key.id: old, following.id: new}, following, told)
    _settle(home, config, enabled=True, place=record.place)
    found.write(VaultRecord(key=following, place=record.place))
    return following


def _known_again(found: Vault, place: str) -> VaultRecord | None:
    """Where `encryption.json` was lost: the key in that file which opens the database.

    A new key would leave what is encrypted without the record of its own. None: nothing is encrypted.
    """
    path = found.home / DATABASE
    if cipher.is_clear(path) is not False:
        return None
    kind, _, file = place.partition(":")
    if kind != "file":
        raise StoreError(cipher.without_record(path))
    keys = {database_key(key): key for key in vault.keys_in(Path(file).expanduser())}
    opens = conversion.key_of(path, [*keys])
    assert opens is not None  # noqa: S101  it is not in clear
    return VaultRecord(key=vault.mark_of(keys[opens]), place=place, doing="encrypt")


def _require_libraries() -> None:
    encrypted.require()
    cipher.library()


def _vault(home: Path) -> Vault:
    found = vault.of(home / DATABASE)
    assert found is not None  # noqa: S101  its config was read
    return found


def _settle(home: Path, config: Path | None, *, enabled: bool, place: str) -> None:
    """Say it in the config, and in this process."""
    file = ConfigFile(home, config)
    if (file.get("encryption.enabled") or False, file.get("encryption.key")) != (enabled, place):
        file.set("encryption.enabled", enabled)
        file.set("encryption.key", place)
        file.save()
    vault.register(home, EncryptionConfig(enabled=enabled, key=place))


def _rewrite(home: Path, keys: Mapping[str, bytes], to: KeyMark | None, told: Told) -> None:
    """Bring all files to the key `to`; None: in clear. `keys`, by their ids, are what they may have now."""
    with backup.explained(home):
        workshop.sweep(home)
        for file in [*_exports(home), *_adapters(home), *_trainings(home, to)]:
            told(file.name, 0.0)
            rewrite_file(file, keys, to)
        new = None if to is None else database_key(keys[to.id])
        for path in _databases(home):
            told(path.name, 0.0)
            conversion.sweep(path)
            old = conversion.key_of(path, [database_key(key) for key in keys.values()])
            if old != new and cipher.is_clear(path) is not None:
                conversion.convert(path, old, new, lambda share, path=path: told(path.name, share))


def _databases(home: Path) -> list[Path]:
    """The copies first: while the database is not done, all know that something is left to do."""
    found = sorted(home.glob(f"{DATABASE}.schema-*.bak"))
    for half in home.glob(f"{DATABASE}.schema-*.bak.partial*"):
        half.unlink()
    return [*found, home / DATABASE] if (home / DATABASE).exists() else found


def _exports(home: Path) -> list[Path]:
    """What was exported; half of a file, which a killed process has left, is of no use to anybody."""
    kept: list[Path] = []
    for file in sorted(exporting.files(home)):
        if file.name.endswith((_NEW, ".partial")):
            file.unlink()
        else:
            kept.append(file)
    return kept


def _adapters(home: Path) -> list[Path]:
    """The files of all versions. What was made of them for servers is made again, where they are."""
    root = home / "adapters"
    _gone(root / formats.FOLDER)
    kept: list[Path] = []
    for folder in sorted(root.iterdir()) if root.is_dir() else ():
        if folder.name.startswith("."):  # half of one, which a killed process has left
            _gone(folder)
        elif folder.is_dir() and not folder.is_symlink():
            kept += _whole(folder)
    return kept


def _trainings(home: Path, to: KeyMark | None) -> list[Path]:
    """What interrupted trainings have kept, encrypted; one that has kept it otherwise begins anew."""
    staging = home / "staging"
    scratch.sweep(home / "imports")
    clear.sweep(home)
    for folder in sorted(staging.iterdir()) if staging.is_dir() else ():
        run = folder.is_dir() and not folder.is_symlink() and folder.name.startswith("run-")
        inner = sorted(folder.iterdir()) if run and to is not None else [folder]
        for entry in inner:
            if not entry.name.endswith(ENDING) or not entry.is_file():
                _gone(entry)
    return [file for folder in sorted(staging.glob("run-*")) for file in _whole(folder)]


def _gone(entry: Path) -> None:
    """Delete it, whatever it is: what stayed would be in clear beside what is encrypted. Raises OSError."""
    if entry.is_dir() and not entry.is_symlink():
        trees.remove(entry)
    else:
        entry.unlink(missing_ok=True)


def _whole(folder: Path) -> list[Path]:
    """Its files but for halves of ones."""
    files = [file for file in sorted(folder.iterdir()) if file.is_file() and not file.is_symlink()]
    for half in [file for file in files if file.name.endswith(_NEW)]:
        half.unlink()
    return [file for file in files if not file.name.endswith(_NEW)]


def rewrite_file(file: Path, keys: Mapping[str, bytes], to: KeyMark | None) -> None:
    """One file that is in clear, or has one of these keys, gets the key `to`.

    What was written is read back and compared before the file as it was goes. Raises StoreError, OSError.
    """
    mark = encrypted.mark(file)
    if (mark.id if mark else None) == (to.id if to else None):
        return
    if mark is not None and mark.id not in keys:
        raise StoreError(phrase("encrypt_other_key", path=file, id=mark.id))
    plain = file.name.removesuffix(ENDING)
    target = file.with_name(plain if to is None else plain + ENDING)
    partial = target.with_name(target.name + _NEW)
    before, after = hashlib.sha256(), hashlib.sha256()
    with (
        file.open("rb") if mark is None else encrypted.reader(file, keys[mark.id]) as source,
        open(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as out,
    ):
        if to is None:
            _copy(source, out.write, before.update)
            durable.flush(out)
        else:
            writer = encrypted.Writer(out, keys[to.id], to)
            _copy(source, writer.write, before.update)
            writer.finish()
    with partial.open("rb") if to is None else encrypted.reader(partial, keys[to.id]) as again:
        _copy(again, after.update)
    if before.digest() != after.digest():
        partial.unlink()
        raise StoreError(phrase("encrypt_odd", name=file.name))
    partial.replace(target)
    durable.sync(file.parent)  # the one is there for good before the other goes
    if target != file:
        file.unlink()
        durable.sync(file.parent)


def reveal(file: Path, out: Path, found: Vault) -> int:
    """Write the clear bytes of one file to `out`, which must not be there; returns how many.

    Raises UsageError, StoreError, EncryptedFileError, OSError; then nothing is there.
    """
    mark = encrypted.mark(file)
    if mark is None:
        raise UsageError(phrase("decrypt_is_clear", path=file))
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    with encrypted.reader(file, found.key(mark)) as source, open(os.open(out, flags, 0o600), "wb") as target:
        try:
            _copy(source, target.write)
            durable.flush(target)
        except BaseException:
            with contextlib.suppress(OSError):
                out.unlink()
            raise
        return target.tell()


def _copy(source: BinaryIO, *takers: Callable[[bytes], object]) -> None:
    while part := source.read(_PART):
        for take in takers:
            take(part)
