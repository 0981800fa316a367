# SPDX-License-Identifier: Apache-2.0
"""A child ends with its parent, however the parent ends, and from the child's first instruction on."""

from __future__ import annotations

import ctypes
import os
import select
import signal
import sys

_PR_SET_PDEATHSIG = 1
"""Of Linux' prctl: the signal that a process gets when the thread that started it ends."""


def tie(parent: int) -> None:
    """From here on this process, whatever it becomes by `exec`, is killed when `parent` ends."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    else:
        _watch(parent)
    if os.getppid() != parent:  # it has ended before it could be watched
        os._exit(1)


if sys.platform != "linux":

    def _watch(parent: int) -> None:
        """Leave a process behind that waits for either to end. It holds none of our pipes."""
        ours = os.getpid()
        ready, tell = os.pipe()
        if os.fork():
            os.close(tell)
            os.read(ready, 1)
            os.close(ready)
            return
        os.setsid()  # Ctrl-C is not for it
        nothing = os.open(os.devnull, os.O_RDWR)
        for handle in range(3):
            os.dup2(nothing, handle)
        queue, ended = select.kqueue(), parent
        try:
            watch = [
                select.kevent(
                    pid, select.KQ_FILTER_PROC, select.KQ_EV_ADD | select.KQ_EV_ONESHOT, select.KQ_NOTE_EXIT
                )
                for pid in (parent, ours)
            ]
            queue.control(watch, 0)
            os.close(tell)
            ended = queue.control(None, 1)[0].ident
        finally:
            if ended == parent:
                os.kill(ours, signal.SIGKILL)
            os._exit(0)
