# SPDX-License-Identifier: Apache-2.0
"""Where a backup, or an export of a version, is made: a private directory beside it, on its disk.

A backup's holds all that is in the database, an export's what was learnt. The state directory has a note of
each that is under way, so that what a killed one has left is found on whatever disk it lies. A note is held
like any `Scratch`: there locks work, as they may not on that disk. It is sealed (`goodbot.base.sealed`):
what it names is deleted, outside the state directory. One without a seal that holds, as older goodbots made
them, leads to no deletion. Where the state directory is encrypted, it is itself not kept, but for one of a
disk that is not there now.

Likewise what `goodbot import` lays ready: a `Scratch` in the state directory.
"""

from __future__ import annotations

import contextlib
import logging
import os
import secrets
from collections.abc import Generator, Iterator
from pathlib import Path

from goodbot.base import scratch, sealed, trees
from goodbot.base.scratch import Scratch
from goodbot.config import vault

logger = logging.getLogger(__name__)

FOLDER = "backups"
IMPORTS = "imports"
STAGED = "import-"
"""How the directories in it begin in which answers lie ready to be imported."""
ANSWERS = "answers.jsonl"
"""Their file."""
KINDS = ("backup", "export")
_PLACE, _SEAL = "place", "seal"
"""Links of a note: to the directory, and to nothing, which holds the MAC. Reading one waits for nobody."""


@contextlib.contextmanager
def made(home: Path, beside: Path, kind: str = "backup") -> Generator[Path]:
    """One in the directory `beside`, gone at the end; what killed ones have left goes now. Raises OSError.

    `kind` is one of `KINDS`. Without a note where none can be made: who backs up to another disk may do so
    since this one is full.
    """
    sweep(home)
    note = _noted(home, beside, kind)
    work = _work(beside, note.path.name if note else secrets.token_hex(8), kind)
    try:
        work.mkdir(mode=0o700)
        yield work
    finally:
        gone = _deleted(work)
        if note is not None:
            (note.remove if gone else note.release)()
        with contextlib.suppress(OSError):  # another one is under way
            (home / FOLDER).rmdir()


def _noted(home: Path, beside: Path, kind: str) -> Scratch | None:
    """A note of one; None on a full disk, or where there are no symbolic links."""
    note: Scratch | None = None
    try:
        (home / FOLDER).mkdir(mode=0o700, exist_ok=True)
        note = Scratch(home / FOLDER)
        work = _work(beside, note.path.name, kind)
        (note.path / _SEAL).symlink_to(sealed.seal(home, FOLDER, os.fsencode(work)))
        (note.path / _PLACE).symlink_to(work)
    except OSError:
        if note is not None:
            note.remove()
        return None
    return note


def _work(beside: Path, name: str, kind: str) -> Path:
    return beside / f".goodbot-{kind}-{name}"


def _deleted(work: Path) -> bool:
    """Delete it; False if it is there still, or may be: on a disk that fails or is not there now."""
    trees.remove(work, ignore_errors=True)
    try:
        work.lstat()
    except FileNotFoundError:
        return work.parent.is_dir()
    except OSError:
        pass
    return False


def left(home: Path) -> list[Path]:
    """What killed ones have left; changes nothing."""
    return [work for _, work in _notes(home) if _is_there(work)]


def unsealed(home: Path) -> list[Path]:
    """What notes lead to that nothing seals: not for us to delete; changes nothing."""
    found: list[Path] = []
    for note in _without_seal(home):
        with contextlib.suppress(OSError):
            work = (note / _PLACE).readlink()
            if _named_after(work, note) and _is_there(work):
                found.append(work)
    return found


def _is_there(work: Path) -> bool:
    return os.path.isdir(work) and not os.path.islink(work)


def _leads_away(note: Path) -> bool:
    """Whether it is of a directory on a disk that is not there now."""
    try:
        work = (note / _PLACE).readlink()
    except OSError:
        return False
    return _named_after(work, note) and not os.path.isdir(work.parent)


def sweep(home: Path) -> None:
    """Delete that; what is on a disk that is not there now, or cannot be deleted, is tried again.

    Where the state directory is encrypted, notes that nothing seals go, too: what they say is in clear. But
    those of such a disk stay, since nobody was told of it.
    """
    scratch.sweep(home / IMPORTS, STAGED)
    for file in (home / "exports").glob(f"{STAGED}????????.jsonl*"):  # there they lay before
        file.unlink(missing_ok=True)
    for note, work in _notes(home):
        if _deleted(work):
            trees.remove(note, ignore_errors=True)
    if (home / vault.FILE).exists():
        for work in unsealed(home):  # nobody knows it any more once the note is gone
            logger.warning("a backup that was cut short has left %s: delete it when you can", work)
        for note in _without_seal(home):
            if not _leads_away(note):
                trees.remove(note, ignore_errors=True)


def _notes(home: Path) -> Iterator[tuple[Path, Path]]:
    """Notes of ours whose process has ended, and where they lead: to nothing but what is named after them."""
    for note in scratch.abandoned(home / FOLDER):
        with contextlib.suppress(OSError):
            work, mac = (note / _PLACE).readlink(), os.readlink(note / _SEAL)
            if _named_after(work, note) and sealed.holds(home, FOLDER, os.fsencode(work), mac):
                yield note, work


def _named_after(work: Path, note: Path) -> bool:
    return work in (_work(work.parent, note.name, kind) for kind in KINDS)


def _without_seal(home: Path) -> list[Path]:
    """Notes whose process has ended, and that are none of ours: none where that cannot be told just now."""
    try:
        sealed.known(home, FOLDER, b"")
    except OSError:  # all would seem to be without
        return []
    ours = {note for note, _ in _notes(home)}
    return [note for note in scratch.abandoned(home / FOLDER) if note not in ours]
