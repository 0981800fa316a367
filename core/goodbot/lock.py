"""The state directory: private to its owner, and held by one process at a time."""

from __future__ import annotations

import fcntl
import os
import stat
import time
from pathlib import Path

from goodbot.errors import BusyError, StoreError

_MAX_SOCKET_PATH = 100
"""Bytes; the kernel's own limit is 104 on macOS, 108 on Linux."""


class HomeLock:
    """An exclusive `flock` on `home/lock`; the kernel frees it when the process dies."""

    def __init__(self, home: Path) -> None:
        self._path = home / "lock"
        self._fd: int | None = None

    def acquire(self) -> None:
        """Take the lock or raise BusyError with the holder's pid. Raises StoreError too."""
        try:
            fd = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        except OSError as error:
            raise StoreError(f"{self._path} cannot be used: {error.strerror}") from error
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            pid = _holder(fd)
            os.close(fd)
            who = f"process {pid}" if pid else "another process"
            raise BusyError(
                f"goodbot is already running here as {who} ({self._path.parent})", pid=pid
            ) from None
        os.ftruncate(fd, 0)
        os.write(fd, f"{os.getpid()}\n".encode())
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


def prepare_home(home: Path) -> None:
    """Create the directory 0700, or check that it is ours alone. Raises StoreError."""
    try:
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        info = os.lstat(home)
    except OSError as error:
        raise StoreError(f"the state directory {home} cannot be used: {error.strerror}") from error
    if not stat.S_ISDIR(info.st_mode):
        raise StoreError(f"the state directory {home} is not a directory")
    if info.st_uid != os.geteuid():
        raise StoreError(f"the state directory {home} belongs to another user")
    if info.st_mode & 0o077:
        home.chmod(0o700)


def socket_path(directory: Path, name: str) -> Path:
    """Where the Unix socket `name` of `directory` lies; a short private place if it is too long."""
    path = directory / name
    if len(os.fsencode(path)) <= _MAX_SOCKET_PATH:
        return path
    import hashlib  # both are slow to import and seldom needed
    import tempfile

    short = Path(tempfile.gettempdir()) / f"goodbot-{os.geteuid()}"
    short.mkdir(mode=0o700, exist_ok=True)
    info = os.lstat(short)
    if not stat.S_ISDIR(info.st_mode) or info.st_uid != os.geteuid() or info.st_mode & 0o077:
        raise StoreError(f"{short} is not a private directory of ours: remove it")
    return short / f"{hashlib.sha256(os.fsencode(path)).hexdigest()[:16]}.sock"
