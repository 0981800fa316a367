# SPDX-License-Identifier: Apache-2.0
"""A network of the session's own with nothing in it but loopback: for the tests and all that they start.

Linux gives one to whoever asks, unless an administrator or a container forbids it. Where there is none,
`conftest.py` still guards the test's own process, and `surroundings.py` closes what children would ask.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import socket
import struct
import sys
from pathlib import Path

import pytest

_NEW_USER, _NEW_NET = 0x10000000, 0x40000000
_GET_FLAGS, _SET_FLAGS, _UP = 0x8913, 0x8914, 0x1
_INTERFACE = "16sh14x"

APART = "GOODBOT_TESTS_APART"
"""Set for the session and its children where it has such a network."""


def alone() -> bool:
    """Whether this process now has such a network; false where the system gives it none.

    The rights that come with it end here: whose files are whose stays as it was. A child tries it first:
    a system that gives half of it would leave a process with neither its own rights nor a network.
    """
    if not sys.platform.startswith("linux"):
        return False
    child = os.fork()
    if not child:
        try:
            _leave_for_one()
        except BaseException:  # a copy of the session goes no further than this
            os._exit(1)
        os._exit(0)
    if os.waitpid(child, 0)[1]:
        return False
    _leave_for_one()
    return True


def _leave_for_one() -> None:
    """Go over into such a network. Raises OSError, half way there."""
    user, group = os.getuid(), os.getgid()
    if ctypes.CDLL(None, use_errno=True).unshare(_NEW_USER | _NEW_NET):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"{user} {user} 1")
    Path("/proc/self/gid_map").write_text(f"{group} {group} 1")
    with socket.socket() as any_socket:
        asked = fcntl.ioctl(any_socket, _GET_FLAGS, struct.pack(_INTERFACE, b"lo", 0))
        flags = struct.unpack(_INTERFACE, asked)[1] | _UP
        fcntl.ioctl(any_socket, _SET_FLAGS, struct.pack(_INTERFACE, b"lo", flags))


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Before other processes of the session start: they are in it, too."""
    fetches = config.getoption("markexpr") in ("agents", "serving")
    if not fetches and APART not in os.environ and alone():
        os.environ[APART] = "1"


def pytest_report_header() -> str:
    """Which of both it is."""
    return f"network: {'loopback only' if APART in os.environ else 'the whole one of this machine'}"
