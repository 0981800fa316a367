# SPDX-License-Identifier: Apache-2.0
"""Directories with all that is in them, whoever has written that: however deep, and over no link.

`shutil.rmtree` and `Path.rglob` of Python 3.11 call themselves once a level, and give up at a thousand; a
path that is longer than the system takes leads nowhere. So it is gone on by handles, few at a time.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_DEEPEST = 32
"""So many handles are open at a time; what lies deeper is moved up first."""
_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass(slots=True)
class _Level:
    """A directory on the way down."""

    handle: int
    name: str
    inner: list[str]
    """Directories in it that are still to be gone into."""


def remove(path: Path, *, ignore_errors: bool = False) -> None:
    """Delete a directory with all that is in it; a link in it goes, and what it leads to stays.

    Raises OSError for what cannot be deleted; with `ignore_errors` all else goes all the same.
    """
    ignored: tuple[type[OSError], ...] = (OSError,) if ignore_errors else ()
    with contextlib.suppress(*ignored):
        top = os.open(path, _FLAGS)
        levels = [_Level(top, "", [])]
        try:
            levels[0].inner = _without_files(top, ignored)
            while levels[0].inner or len(levels) > 1:
                with contextlib.suppress(*ignored):
                    _step(levels, ignored)
        finally:
            for level in levels:
                os.close(level.handle)
        os.rmdir(path)


def below(path: Path) -> list[Path]:
    """All that is in a directory and in those below it, sorted; links are not followed. Raises OSError."""
    found, folders = list[Path](), [path]
    while folders:
        with os.scandir(folders.pop()) as entries:
            for entry in entries:
                found.append(Path(entry.path))
                if entry.is_dir(follow_symlinks=False):
                    folders.append(found[-1])
    return sorted(found)


def _step(levels: list[_Level], ignored: tuple[type[OSError], ...]) -> None:
    """Go one directory down, or leave the one that is empty now."""
    here = levels[-1]
    if not here.inner:
        levels.pop()
        os.close(here.handle)
        os.rmdir(here.name, dir_fd=levels[-1].handle)
        return
    name = here.inner.pop()
    if len(levels) > _DEEPEST:
        os.close(_opened(name, here.handle))
        moved = f".{secrets.token_hex(8)}"
        os.rename(name, moved, src_dir_fd=here.handle, dst_dir_fd=levels[0].handle)
        levels[0].inner.append(moved)
        return
    levels.append(_Level(_opened(name, here.handle), name, []))
    levels[-1].inner = _without_files(levels[-1].handle, ignored)


def _opened(name: str, within: int) -> int:
    """A handle of a directory in one that is open, which lets us delete what is in it."""
    try:
        handle = os.open(name, _FLAGS, dir_fd=within)
    except PermissionError:  # a program can make one that it may not read itself
        os.chmod(name, stat.S_IRWXU, dir_fd=within)
        handle = os.open(name, _FLAGS, dir_fd=within)
    with contextlib.suppress(OSError):
        if os.fstat(handle).st_mode & stat.S_IRWXU != stat.S_IRWXU:
            os.fchmod(handle, stat.S_IRWXU)
    return handle


def _without_files(handle: int, ignored: tuple[type[OSError], ...]) -> list[str]:
    """Delete what is no directory there; the names of those that are."""
    inner: list[str] = []
    for name, is_folder in list(_entries(handle)):
        if is_folder:
            inner.append(name)
            continue
        with contextlib.suppress(*ignored):
            os.unlink(name, dir_fd=handle)
    return inner


def _entries(handle: int) -> Iterator[tuple[str, bool]]:
    with os.scandir(handle) as entries:
        for entry in entries:
            yield entry.name, entry.is_dir(follow_symlinks=False)
