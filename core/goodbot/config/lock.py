# SPDX-License-Identifier: Apache-2.0
"""The state directory: private to its owner, and held by one process at a time."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import itertools
import os
import stat
import time
from collections.abc import Generator
from pathlib import Path

from goodbot.base.errors import BusyError, StoreError, StoreFullError
from goodbot.base.worded import Worded
from goodbot.config.layout import BEFORE_RESTORE, GIVEN, RESTORED, is_home, no_space

HTTP_SOCKET, CONTROL_SOCKET = "http.sock", "control.sock"
"""In the state directory, where `socket_path` says: for browsers and programs, and for commands."""
_MAX_SOCKET_PATH = 100
"""Bytes; the kernel's own limit is 104 on macOS, 108 on Linux."""


class HomeLock:
    """An exclusive `flock` on `home/lock`; the kernel frees it when the process dies."""

    def __init__(self, home: Path) -> None:
        self._path = home / "lock"
        self._fd: int | None = None

    def acquire(self) -> None:
        """Take the lock, if it is not ours yet, or raise BusyError with the holder's pid.

        Raises StoreError too.
        """
        if self._fd is not None:
            return
        try:
            fd = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        except OSError as error:
            wrong = "{path} cannot be used: {why}"
            if self._path.is_symlink():
                wrong = "{path} cannot be used: {why} (it is a link: remove it)"
            raise StoreError(Worded(wrong, path=self._path, why=error.strerror)) from error
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            pid = _holder(fd)
            os.close(fd)
            held = Worded(
                "goodbot is already running here as another process ({home})", home=self._path.parent
            )
            if pid:
                by = "goodbot is already running here as process {pid} ({home})"
                held = Worded(by, pid=pid, home=self._path.parent)
            raise BusyError(held, pid=pid) from None
        try:
            os.ftruncate(fd, 0)
            os.write(fd, f"{os.getpid()}\n".encode())
        except OSError as error:
            os.close(fd)
            if error.errno == errno.ENOSPC:
                raise StoreFullError(no_space(self._path.parent)) from error
            wrong = Worded("{path} cannot be written: {why}", path=self._path, why=error.strerror)
            raise StoreError(wrong) from error
        self._fd = fd

    def release(self) -> None:
        """Let go; idempotent."""
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None


def _holder(fd: int) -> int | None:
    """The process that wrote its number; None if it cannot be told.

    Between taking the lock and writing, the number is missing or that of a process that has ended.
    """
    for _ in range(20):
        text = os.pread(fd, 32, 0).decode("ascii", "replace").strip()
        pid = int(text) if text.isdecimal() else None
        if pid is not None and _alive(pid):
            return pid
        time.sleep(0.01)
    return None


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


def holder(home: Path) -> tuple[bool, int | None]:
    """Whether a process has the directory, and which; changes nothing, not even a time stamp."""
    try:
        fd = os.open(home / "lock", os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return False, None
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True, _holder(fd)
    finally:
        os.close(fd)
    return False, None


@contextlib.contextmanager
def changing(directory: Path) -> Generator[None]:
    """Keep other processes that change small files of this directory waiting, so that none writes over
    what another has written since it read.

    Take it for one reading and writing, never within itself. It is the directory that is locked: nothing
    is left behind. Raises OSError.
    """
    while True:
        fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            # A file system that cannot lock a directory (NFS) keeps nobody waiting.
            with contextlib.suppress(OSError):
                fcntl.flock(fd, fcntl.LOCK_EX)
            # After a restore another directory has that name.
            if os.path.samestat(os.fstat(fd), os.stat(directory)):
                yield
                return
        finally:
            os.close(fd)


def prepare_home(home: Path) -> None:
    """Create the directory 0700, or check that it is ours alone. Raises StoreError."""
    finish_restore(home)
    if home.is_symlink():  # whoever may change it would choose where the data lie
        link = "the state directory {home} is a link: name the directory that it leads to, {real}"
        raise StoreError(Worded(link, home=home, real=home.resolve()))
    try:
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        info = os.lstat(home)
        if not stat.S_ISDIR(info.st_mode):
            raise StoreError(Worded("the state directory {home} is not a directory", home=home))
        if info.st_uid != os.geteuid():
            raise StoreError(Worded("the state directory {home} belongs to another user", home=home))
        if not is_home(home):
            others = "{home} holds other things than a goodbot: choose an empty directory, or a new one"
            raise StoreError(Worded(others, home=home))
    except OSError as error:
        wrong = Worded("the state directory {home} cannot be used: {why}", home=home, why=error.strerror)
        raise StoreError(wrong) from error
    if info.st_mode & 0o077:
        home.chmod(0o700)


def finish_restore(home: Path) -> None:
    """A restore that was killed among its last renames is finished. Raises StoreError.

    By then the directory that comes in is complete, checked and on the disk.
    """
    before = _replaced_last(home)
    if before is None:
        return
    renames = [(home.with_name(home.name + RESTORED), home)]
    renames += [(before / name, home / name) for name in GIVEN]
    if not any(itertools.starmap(_is_left, renames)):
        return
    try:
        with changing(before):  # a restore that is under way has this lock
            for old, new in renames:
                # Somebody else may be quicker, and the person may have deleted `home`.
                with contextlib.suppress(FileNotFoundError):
                    if _is_left(old, new):
                        old.rename(new)
    except FileNotFoundError:
        return
    except OSError as error:
        wrong = "what the restore has left at {before} cannot be moved to {home}: {why}"
        raise StoreError(Worded(wrong, before=before, home=home, why=error.strerror)) from error


def _is_left(old: Path, new: Path) -> bool:
    """Whether a rename is still to be done."""
    return os.path.exists(old) and not os.path.lexists(new)


def _replaced_last(home: Path) -> Path | None:
    """What the last restore has replaced, as far as it is ours and still there."""
    found: list[Path] = []
    with contextlib.suppress(OSError):  # no directory is above it, or none that we may read
        found = [
            entry for entry in home.parent.iterdir() if entry.name.startswith(home.name + BEFORE_RESTORE)
        ]
    if not found:
        return None
    newest = max(found, key=lambda entry: entry.name)
    info = newest.lstat()
    return newest if stat.S_ISDIR(info.st_mode) and info.st_uid == os.geteuid() else None


def socket_path(directory: Path, name: str) -> Path:
    """Where the Unix socket `name` of `directory` lies; a short private place if it is too long."""
    short = short_socket(directory / name)
    if short is None:
        return directory / name
    place = short.parent
    with contextlib.suppress(FileExistsError):  # also a file, or a link that leads nowhere
        place.mkdir(mode=0o700)
    info = os.lstat(place)
    if not stat.S_ISDIR(info.st_mode) or info.st_uid != os.geteuid() or info.st_mode & 0o077:
        odd = Worded("{place} is no private directory that goodbot made: remove it", place=place)
        raise StoreError(odd)
    return short


def short_socket(path: Path) -> Path | None:
    """Where a socket lies whose own path is too long for the kernel; None if it is not."""
    if len(os.fsencode(path)) <= _MAX_SOCKET_PATH:
        return None
    import hashlib  # both are slow to import and seldom needed
    import tempfile

    place = Path(tempfile.gettempdir()) / f"goodbot-{os.geteuid()}"
    return place / f"{hashlib.sha256(os.fsencode(path)).hexdigest()[:16]}.sock"
