# SPDX-License-Identifier: Apache-2.0
"""A child ends with its parent, however the parent ends, and from the child's first instruction on.

So does what it has started where it leads a group of its own: a script that a person has put in a program's
place, and that starts it.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import select
import signal
import sys
from collections.abc import Callable

_PR_SET_PDEATHSIG = 1
"""Of Linux' prctl: the signal that a process gets when the thread that started it ends. Its own children get
none."""


def tie(parent: int) -> None:
    """From here on this process, whatever it becomes by `exec`, is killed when `parent` ends."""
    ours = os.getpid()
    leads = os.getpgrp() == ours
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if leads:
            _watch_group(parent, ours)
    else:
        _watch(parent, ours, leads=leads)
    if os.getppid() != parent:  # it has ended before it could be watched
        os._exit(1)


def _watching(wait: Callable[[], bool], end: Callable[[int, int], None], ours: int) -> None:
    """Be the process that waits, and that then kills ours unless `wait` says that it has ended itself.

    It holds none of our pipes.
    """
    alone = False
    try:
        os.setsid()  # Ctrl-C is not for it
        nothing = os.open(os.devnull, os.O_RDWR)
        for handle in range(3):
            os.dup2(nothing, handle)
        alone = wait()
    finally:
        with contextlib.suppress(OSError):
            if not alone:
                end(ours, signal.SIGKILL)
        os._exit(0)


if sys.platform == "linux":

    def _watch_group(parent: int, ours: int) -> None:
        """Leave a process behind that waits for either to end, and ends what is left of our group."""
        try:
            watched = [os.pidfd_open(one) for one in (parent, ours)]
            child = os.fork()
        except (AttributeError, OSError):  # a Python built without it; a kernel or container that has none
            return
        if not child:
            poll = select.poll()
            for one in watched:
                poll.register(one, select.POLLIN)
            _watching(lambda: not poll.poll(), os.killpg, ours)
        for one in watched:
            os.close(one)

else:

    def _watch(parent: int, ours: int, *, leads: bool) -> None:
        """Leave a process behind that waits for either to end."""
        ready, tell = os.pipe()
        if os.fork():
            os.close(tell)
            os.read(ready, 1)
            os.close(ready)
            return

        def wait() -> bool:
            queue = select.kqueue()
            watch = [
                select.kevent(
                    pid, select.KQ_FILTER_PROC, select.KQ_EV_ADD | select.KQ_EV_ONESHOT, select.KQ_NOTE_EXIT
                )
                for pid in (parent, ours)
            ]
            queue.control(watch, 0)
            os.close(tell)
            return queue.control(None, 1)[0].ident == ours and not leads

        _watching(wait, os.killpg if leads else os.kill, ours)
