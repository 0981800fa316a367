"""`python -m goodbot.serving.guard PROGRAM …`: run a program that must not outlive who started it.

A daemon that is killed cannot end its children. This small process holds the other end of a pipe: when
that closes, however it came to it, or when SIGTERM comes, the program is ended. Where this process itself
is killed, Linux ends the program; elsewhere whoever started us ends our process group.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from types import FrameType

_PATIENCE = 5.0
"""Seconds from SIGTERM to SIGKILL."""
_PR_SET_PDEATHSIG = 1
"""Of Linux' prctl: the signal that a process gets when its parent ends."""


def main(command: list[str]) -> int:
    """Run the program until it ends or stdin does; its exit code, 127 where it cannot be started."""
    try:
        # No thread runs here yet, so a function may run between fork and exec.
        program = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, preexec_fn=_ends_with_us(os.getpid())
        )
    except OSError as error:
        sys.stderr.write(f"{command[0]} cannot be started: {error.strerror}\n")
        return 127

    def end(signum: int = 0, frame: FrameType | None = None) -> None:
        with contextlib.suppress(ProcessLookupError):
            program.terminate()
        threading.Timer(_PATIENCE, program.kill).start()

    def watch() -> None:
        while os.read(0, 4096):
            pass
        end()

    signal.signal(signal.SIGTERM, end)
    threading.Thread(target=watch, daemon=True).start()
    return program.wait()


def _ends_with_us(parent: int) -> Callable[[], None] | None:
    """What the program does first; None where the system cannot tie it to us."""
    if not sys.platform.startswith("linux"):
        return None
    prctl = ctypes.CDLL(None).prctl  # looked up before the fork

    def tie() -> None:
        prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:  # we have ended just now
            os._exit(1)

    return tie


if __name__ == "__main__":
    code = main(sys.argv[1:])
    sys.stderr.flush()
    os._exit(code if code >= 0 else 128 - code)
