# SPDX-License-Identifier: Apache-2.0
"""A goodbot in a process of its own, and one person who teaches it friendly answers in its terminal."""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

from goodbot.api import control
from goodbot.base.errors import GoodbotError

from tests.cli.program import PROGRAM, environment, until
from tests.cli.program import Bot as Program

RATINGS = 40
CONFIG = """# mine
[model]
path = "{path}"

[serving]
{serving}
ask = "never"
temperature = 0.8
max_tokens = 48
history = 0

[training]
backend = "torch"
schedule = "manual"
min_ratings = {ratings}
held_out = {held_out}
"""


class Bot(Program):
    """A daemon on a configured model, and one person who likes friendly answers."""

    def configure(
        self, model: Path, ratings: int = RATINGS, *, long: bool = False, serving: str = ""
    ) -> None:
        """`long`: a training is sure to be interrupted before it ends. `serving`: more of that section."""
        self.home.mkdir(mode=0o700)
        held_out = ratings // 5
        text = CONFIG.format(path=model, ratings=ratings, held_out=held_out, serving=serving)
        if long:
            text += "\n[training.settings]\nsteps = 10000\nmax_passes = 10000\n"
        (self.home / "config.toml").write_text(text)

    def start(self, *_: Any, **env: str) -> None:
        self._started += 1
        with self.log.open("w") as log:
            self.process = subprocess.Popen(
                [*PROGRAM, "--home", str(self.home), "run"],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                text=True,
                env=environment(**env),
                start_new_session=True,
            )
        until(lambda: "Ctrl-C stops" in self.log.read_text() or self.process.poll() is not None)
        assert self.process.poll() is None, self.log.read_text()

    def ask(self, questions: list[str]) -> list[str]:
        """The answers, one a line."""
        done = self.call("chat", input="\n".join(questions) + "\n")
        assert done.returncode == 0, done.stderr
        return done.stdout.splitlines()

    def teach(self, questions: list[str]) -> None:
        """Rate each answer by its style."""
        from goodbot_training.tiny.judge import style_of

        with subprocess.Popen(
            [*PROGRAM, "--home", str(self.home), "chat"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=environment(),
        ) as chat:
            assert chat.stdin is not None
            assert chat.stdout is not None
            for question in questions:
                chat.stdin.write(question + "\n")
                chat.stdin.flush()
                answer = chat.stdout.readline().strip()
                chat.stdin.write("g\n" if style_of(answer) == "friendly" else "b\n")
                chat.stdin.flush()
            chat.stdin.close()

    @contextlib.contextmanager
    def switch(self, model: Path) -> Iterator[subprocess.Popen[str]]:
        """`goodbot model switch` under way."""
        with subprocess.Popen(
            [*PROGRAM, "--home", str(self.home), "model", "switch", str(model)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment(),
            start_new_session=True,
        ) as process:
            try:
                yield process
            finally:
                process.kill()

    def status(self) -> dict[str, Any] | None:
        """What the daemon says; None while it says nothing."""
        try:
            answer = control.call(self.home, "status", [], lambda _: None)
        except GoodbotError:
            return None
        return answer["data"] if answer else None


def questions(seed: int, count: int) -> list[Any]:
    from goodbot_training.tiny.corpus import split

    return Random(seed).sample(split(0)[0], count)
