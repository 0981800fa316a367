# SPDX-License-Identifier: Apache-2.0
"""Linux' Landlock: which files this process and all that it becomes may reach.

By the kernel's own calls (landlock(7)), which glibc has no names for. What a kernel's ABI does not know is
not asked of it: before 2 nothing moves between directories, before 3 `truncate` is not governed, before 4
TCP is not, before 6 signals and abstract sockets are not. `goodbot.base.cage.seccomp` stands behind all but
the first, and behind the ports of TCP: before 4 who may listen at one may listen at any.
"""

from __future__ import annotations

import ctypes
import os
import stat
from collections.abc import Iterable

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
"""The same numbers on all processors."""
_VERSION = 1
_PATH_BENEATH, _AT_PORT = 1, 2
_BIND_TCP = 1
_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1, 1 << 1, 1 << 2, 1 << 3
_TRUNCATE = 1 << 14
_FILES = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE
"""What can be allowed for a file; the rest is about directories."""
_ALL_OF_ABI = {1: (1 << 13) - 1, 2: (1 << 14) - 1}
_ALL = (1 << 15) - 1
_NO_TCP, _NO_SIGNAL_OR_SOCKET = 0b11, 0b11

LIST = _READ_DIR
READ = _READ_FILE | _READ_DIR
RUN = _READ_FILE | _EXECUTE
USE = _READ_FILE | _WRITE_FILE
"""A device that is there: nothing is made or removed."""
OWN = USE | READ | _TRUNCATE
"""What the kernel tells of our threads; CUDA names its own there, as one writes a file anew."""
SHARE = USE | _TRUNCATE | 1 << 5 | 1 << 8
"""Files that are known by name are used, made and removed; none is listed, and there are no links or
directories."""
WRITE = _ALL & ~_EXECUTE & ~(1 << 6) & ~(1 << 11)
"""All but running programs and making devices."""


class _Ruleset(ctypes.Structure):
    _fields_ = (("files", ctypes.c_uint64), ("network", ctypes.c_uint64), ("scoped", ctypes.c_uint64))


class _Beneath(ctypes.Structure):
    _pack_ = 1
    _fields_ = (("allowed", ctypes.c_uint64), ("parent", ctypes.c_int32))


class _Port(ctypes.Structure):
    _fields_ = (("allowed", ctypes.c_uint64), ("number", ctypes.c_uint64))


def abi() -> int:
    """What this kernel can; 0: it cannot, or it is switched off."""
    return max(0, _call(_CREATE_RULESET, None, 0, _VERSION))


def restrict(rules: Iterable[tuple[str, int]], *, port: int | None = None) -> None:
    """From here on only what the rules allow: a path and what may be done there and below; and that port.

    Paths that are not there are passed over. What a rule names in `/proc` stays open from here on, whatever
    this process becomes: when memory runs low the kernel drops what nobody holds there, makes it anew for who
    asks, and no rule speaks of the new one. Such a handle reads nothing (O_PATH).
    Call it with `no_new_privs` set. Raises OSError.
    """
    version = abi()
    handled = _ALL_OF_ABI.get(version, _ALL)
    asked = _Ruleset(handled, _NO_TCP, _NO_SIGNAL_OR_SOCKET)
    size = 8 if version < 4 else 16 if version < 6 else 24
    ruleset = _check(_call(_CREATE_RULESET, ctypes.byref(asked), size, 0))
    if port is not None and version >= 4:
        _check(_call(_ADD_RULE, ruleset, _AT_PORT, ctypes.byref(_Port(_BIND_TCP, port)), 0))
    for path, allowed in rules:
        try:
            handle = os.open(path, os.O_PATH | os.O_CLOEXEC)
        except OSError:
            continue
        here = handled if stat.S_ISDIR(os.fstat(handle).st_mode) else handled & _FILES
        rule = _Beneath(allowed & here, handle)
        _check(_call(_ADD_RULE, ruleset, _PATH_BENEATH, ctypes.byref(rule), 0))
        if path.startswith("/proc/"):
            os.set_inheritable(handle, True)
        else:
            os.close(handle)
    _check(_call(_RESTRICT_SELF, ruleset, 0))
    os.close(ruleset)


def _call(number: int, *arguments: object) -> int:
    syscall = ctypes.CDLL(None, use_errno=True).syscall
    syscall.restype = ctypes.c_long
    words = [ctypes.c_long(a) if isinstance(a, int) else a for a in arguments]
    return int(syscall(ctypes.c_long(number), *words))


def _check(answer: int) -> int:
    if answer < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return answer
