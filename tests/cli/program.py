# SPDX-License-Identifier: Apache-2.0
"""A goodbot in processes of its own: the program as a person starts it."""

from __future__ import annotations

import importlib.util
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tests.support import missing, patience

PROGRAM = [sys.executable, "-m", "goodbot"]
START_SECONDS = 60.0


def need_backend() -> str:
    """The name of a backend that is installed; skip without mlx and torch: nothing would answer."""
    for name in ("torch", "mlx"):
        if importlib.util.find_spec(name):
            return name
    missing("neither mlx nor torch is installed")


def environment(**more: str) -> dict[str, str]:
    kept = {k: v for k, v in os.environ.items() if not k.startswith("GOODBOT_")}
    return {**kept, **more}


def until(done: Callable[[], object], seconds: float = START_SECONDS) -> None:
    end = time.monotonic() + patience(seconds)
    while not done():
        assert time.monotonic() < end, "it took too long"
        time.sleep(0.02)


class Bot:
    """One state directory, and the processes on it."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.process: subprocess.Popen[str] | None = None
        self._started = 0

    def call(
        self, *args: str, input: str = "", env: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        """`goodbot --home HOME ARGS`, to its end."""
        return subprocess.run(
            [*PROGRAM, "--home", str(self.home), *args],
            input=input,
            capture_output=True,
            text=True,
            timeout=patience(100),
            env=environment(**(env or {})),
            check=False,
        )

    def json(self, *args: str) -> Any:
        done = self.call(*args, "--json")
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def start(self, **env: str) -> None:
        """`goodbot run --demo-model`, until it answers commands."""
        self._started += 1
        log = self.log.open("w")
        self.process = subprocess.Popen(
            [*PROGRAM, "--home", str(self.home), "run", "--demo-model"],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            text=True,
            env=environment(**env),
            start_new_session=True,
        )
        log.close()
        until(lambda: "Ctrl-C stops" in self.log.read_text() or self.process.poll() is not None)
        assert self.process.poll() is None, self.log.read_text()

    @property
    def log(self) -> Path:
        return self.home.parent / f"{self.home.name}-{self._started}.log"

    def stop(self, number: int = signal.SIGTERM) -> int:
        """End the daemon; its exit code."""
        if self.process is None:
            return 0
        if self.process.poll() is None:
            self.process.send_signal(number)
        code = self.process.wait(patience(60))
        self.process = None
        return code
