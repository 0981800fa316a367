# SPDX-License-Identifier: Apache-2.0
"""Runs something again and again, each time killed one step later, until it gets through.

A step is anything that Python tells an audit hook of and that can change a file system, and every
few instructions of SQLite's. Run as `python -m tests.reliability.points WORK FOLDER`: FOLDER/0 is
copied for each attempt, `WORK` names a function of a directory, and FOLDER/1, 2, … are what
is left. Prints how many there are.
"""

from __future__ import annotations

import importlib
import os
import shutil
import signal
import sqlite3
import sys
from pathlib import Path
from typing import Any

STEPS = {
    "open",
    "os.rename",
    "os.remove",
    "os.mkdir",
    "os.rmdir",
    "os.link",
    "os.chmod",
    "shutil.rmtree",
    "sqlite3.connect",
    "tempfile.mkdtemp",
}
INSTRUCTIONS = 400


class Countdown:
    """Kills the process at the n-th step."""

    def __init__(self, steps: int) -> None:
        self.left = steps

    def tick(self) -> int:
        self.left -= 1
        if self.left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return 0

    def audit(self, event: str, arguments: Any) -> None:
        if event == "open" and not (isinstance(arguments[2], int) and arguments[2] & os.O_CREAT):
            return
        if event in STEPS:
            self.tick()


def attempt(work: str, folder: Path, steps: int) -> bool:
    """Whether it got through."""
    pid = os.fork()
    if pid == 0:
        countdown = Countdown(steps)
        connect = sqlite3.connect

        def watched(*args: Any, **keywords: Any) -> sqlite3.Connection:
            db = connect(*args, **keywords)
            db.set_progress_handler(countdown.tick, INSTRUCTIONS)
            return db

        sqlite3.connect = watched
        module, _, function = work.partition(":")
        run = getattr(importlib.import_module(module), function)
        sys.addaudithook(countdown.audit)
        try:
            run(folder)
        except BaseException as error:
            os.write(2, f"{type(error).__name__}: {error}\n".encode())
            os._exit(1)
        os._exit(0)
    _, status = os.waitpid(pid, 0)
    if os.WIFEXITED(status):
        assert os.WEXITSTATUS(status) == 0, "it failed by itself"
        return True
    return False


def main(work: str, folder: Path) -> None:
    importlib.import_module(work.partition(":")[0])
    number, through = 0, False
    while not through:
        number += 1
        copy = folder / str(number)
        shutil.copytree(folder / "0", copy)
        through = attempt(work, copy, number)
    print(number)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
