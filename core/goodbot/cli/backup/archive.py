# SPDX-License-Identifier: Apache-2.0
"""The file: a plain tar of regular files, the first of which lists the others with size and hash.

Reading trusts nothing (`goodbot.base.safe_tar`): a name decides where a file goes only after it was found on
the list, and the list holds only names that a backup can have.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import tarfile
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, BinaryIO, cast

from goodbot.api.texts import commas
from goodbot.api.texts.terminal import here, phrase
from goodbot.base.safe_tar import ArchiveError, add, copy, exactly, next_member, skip_padding
from goodbot.config import private
from goodbot.config.vault import Vault
from goodbot.store.backup import megabytes, require_space

__all__ = ["MANIFEST", "ArchiveError", "BackupFile", "BackupManifest", "allowed", "read", "write"]

MANIFEST = "manifest.json"
FORMAT = 1

_MAX_MANIFEST = 4 * 1024 * 1024
_MAX_FILES = 10_000
_PART = 1 << 20
_LAST_TIME = 1e11
_TOP = {"goodbot.db", "config.toml", "fetched.json"}
"""The last was in backups of before; it is not restored (`travel`)."""
_ADAPTER_FILES = {"adapter_model.safetensors", "adapter_config.json", "manifest.json", "fingerprint.json"}


@dataclass(frozen=True, kw_only=True)
class BackupManifest:
    """What a backup is. `created_at` in seconds since the epoch, `ratings` counts what holds now."""

    goodbot: str
    schema: int
    created_at: float
    turns: int
    ratings: int
    adapters: int
    left_out: tuple[str, ...] = ()
    """Adapters that were damaged or missing, by directory."""

    @property
    def holds(self) -> str:
        """What is in it, as people say it: `24 answers, 1 rating, 2 adapters`."""
        return commas(
            here(),
            phrase("count_answers", answers=self.turns),
            phrase("count_ratings", count=self.ratings),
            phrase("count_adapters", adapters=self.adapters),
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class BackupFile:
    """One file of a backup, as its list has it."""

    size: int
    sha256: str


def write(path: Path, about: BackupManifest, files: Mapping[str, Path]) -> None:
    """Make the archive at `path`, which must not exist, synced to the disk; encrypted where that is on.

    Raises OSError, StoreError.
    """
    listed = {name: asdict(_measure(source)) for name, source in files.items()}
    text = json.dumps({"format": FORMAT, "about": asdict(about), "files": listed}, indent=1).encode()
    with contextlib.closing(private.create(path, anew=False)) as out:
        with tarfile.open(fileobj=cast("BinaryIO", out), mode="w", format=tarfile.USTAR_FORMAT) as tar:
            add(tar, MANIFEST, len(text), about.created_at, io.BytesIO(text))
            for name, source in files.items():
                with private.opened(source) as file:
                    add(tar, name, listed[name]["size"], about.created_at, file)
        out.finish()


def _measure(path: Path) -> BackupFile:
    """Of its clear bytes."""
    digest, size = hashlib.sha256(), 0
    with private.opened(path) as file:
        while part := file.read(_PART):
            digest.update(part)
            size += len(part)
    return BackupFile(size=size, sha256=digest.hexdigest())


def read(
    path: Path,
    into: Path | None = None,
    takes: Callable[[str], bool] = lambda _: True,
    by: Vault | None = None,
) -> BackupManifest:
    """Check every byte of an archive; with `into`, an empty directory, write those that `takes` there.

    `by`: who has its key, if it is encrypted. Raises ArchiveError, EncryptedFileError, StoreError,
    OSError; what was written by then is for the caller to remove.
    """
    with private.opened(path, by) as file:
        total = path.stat().st_size
        name, size = _header(file)
        if name != MANIFEST or size > _MAX_MANIFEST:
            raise ArchiveError(phrase("backup_no_list", path=path))
        about, files = _manifest(exactly(file, size))
        skip_padding(file, size)
        needed = sum(entry.size for entry in files.values())
        if needed > total:
            raise ArchiveError(
                phrase("backup_lists", path=path, needed=megabytes(needed), total=megabytes(total))
            )
        if into is not None:
            require_space(into, needed)
        missing = dict(files)
        while (found := next_member(file)) is not None:
            name, size = found
            entry = missing.pop(name, None)
            if entry is None or entry.size != size:
                raise ArchiveError(phrase("backup_unlisted", path=path, name=repr(name[:80])))
            _copy(file, entry, name, into if takes(name) else None)
        if missing:
            raise ArchiveError(phrase("backup_cut", path=path, name=min(missing)))
    return about


def _header(file: BinaryIO) -> tuple[str, int]:
    found = next_member(file)
    if found is None:
        raise ArchiveError(phrase("backup_empty"))
    return found


def _copy(file: BinaryIO, entry: BackupFile, name: str, into: Path | None) -> None:
    if into is None:
        with open(os.devnull, "wb") as nowhere:
            digest = copy(file, entry.size, nowhere)
    else:
        with contextlib.closing(_create(into, name)) as target:
            digest = copy(file, entry.size, cast("BinaryIO", target))
            target.finish()
    if digest != entry.sha256:
        raise ArchiveError(phrase("backup_damaged", name=name))


def _create(into: Path, name: str) -> private.Output:
    """Adapters are encrypted there, if it is; the database is so already, and all else never is."""
    path = into / name
    for parent in reversed(Path(name).parents[:-1]):
        (into / parent).mkdir(mode=0o700, exist_ok=True)
    adapter = name.startswith("adapters/")
    return private.create(private.named(path) if adapter else path, anew=False, locked=adapter)


def _manifest(text: bytes) -> tuple[BackupManifest, dict[str, BackupFile]]:
    try:
        found: Any = json.loads(text)
        if found["format"] != FORMAT:
            raise ArchiveError(phrase("backup_newer", format=repr(found["format"])))
        about = _about(found["about"])
        listed = cast("dict[str, Any]", dict(found["files"]))
        files = {name: _file(entry) for name, entry in listed.items()}
    except (ValueError, TypeError, LookupError, RecursionError) as error:
        raise ArchiveError(phrase("backup_unread", why=error)) from error
    if len(files) > _MAX_FILES:
        raise ArchiveError(phrase("backup_many", count=len(files)))
    for name in files:
        if not allowed(name):
            raise ArchiveError(phrase("backup_odd_name", name=repr(name[:80])))
    if "goodbot.db" not in files:
        raise ArchiveError(phrase("backup_no_database"))
    return about, files


def _about(found: Mapping[str, Any]) -> BackupManifest:
    created_at = float(found["created_at"])
    left_out: list[Any] = list(found["left_out"])
    if not 0 <= created_at < _LAST_TIME:
        raise ValueError("created_at")
    return BackupManifest(
        goodbot=str(found["goodbot"])[:40],
        schema=int(found["schema"]),
        created_at=created_at,
        turns=int(found["turns"]),
        ratings=int(found["ratings"]),
        adapters=int(found["adapters"]),
        left_out=tuple(str(name)[:80] for name in left_out),
    )


def _file(found: Mapping[str, Any]) -> BackupFile:
    size, digest = found["size"], found["sha256"]
    if type(size) is not int or size < 0 or type(digest) is not str:
        raise ValueError("size, sha256")
    return BackupFile(size=size, sha256=digest)


def allowed(name: str) -> bool:
    """Whether a file of that name belongs into a backup: no way leads out of the directory."""
    if not name.isprintable() or "\\" in name or len(name) > 255:
        return False
    match name.split("/"):
        case [top]:
            return top in _TOP
        case ["adapters", directory, file]:
            return _plain(directory) and file in _ADAPTER_FILES
        case ["connectors", *parts]:
            return len(parts) > 1 and all(map(_plain, parts))
        case _:
            return False


def _plain(part: str) -> bool:
    return bool(part) and not part.startswith(".") and part == part.strip()
