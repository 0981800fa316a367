"""Another base model, on PyTorch: a real daemon learns from forty ratings once more, and changes over.

The second model is the tiny one with a little noise on its weights: another model of that shape.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest
from goodbot.cli import client
from goodbot.errors import GoodbotError

from tests.cli.program import PROGRAM, environment, until
from tests.cli.program import Bot as Program
from tests.support import require

RATINGS = 40
CONFIG = """# mine
[model]
path = "{path}"

[serving]
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

    def configure(self, model: Path, ratings: int = RATINGS, *, long: bool = False) -> None:
        """`long`: a training is sure to be interrupted before it ends."""
        self.home.mkdir(mode=0o700)
        text = CONFIG.format(path=model, ratings=ratings, held_out=ratings // 5)
        if long:
            text += "\n[training.settings]\nsteps = 10000\nmax_passes = 10000\n"
        (self.home / "config.toml").write_text(text)

    def start(self, *_: Any, **env: str) -> None:
        self._started += 1
        with self.log.open("w") as log:
            self.process = subprocess.Popen(
                [*PROGRAM, "--home", str(self.home), "run"],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, text=True,
                env=environment(**env), start_new_session=True,
            )  # fmt: skip
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
            [*PROGRAM, "--home", str(self.home), "chat"], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment(),
        ) as chat:  # fmt: skip
            assert chat.stdin is not None
            assert chat.stdout is not None
            for question in questions:
                chat.stdin.write(question + "\n")
                chat.stdin.flush()
                answer = chat.stdout.readline().strip()
                chat.stdin.write("1\n" if style_of(answer) == "friendly" else "2\n")
                chat.stdin.flush()
            chat.stdin.close()

    @contextlib.contextmanager
    def switch(self, model: Path) -> Iterator[subprocess.Popen[str]]:
        """`goodbot model switch` under way."""
        with subprocess.Popen(
            [*PROGRAM, "--home", str(self.home), "model", "switch", str(model)],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env=environment(), start_new_session=True,
        ) as process:  # fmt: skip
            try:
                yield process
            finally:
                process.kill()

    def status(self) -> dict[str, Any] | None:
        """What the daemon says; None while it says nothing."""
        try:
            answer = client.call(self.home, "status", [], lambda _: None)
        except GoodbotError:
            return None
        return answer["data"] if answer else None


@pytest.fixture
def models(tmp_path: Path) -> tuple[Path, Path]:
    for module in ("torch", "peft"):
        require(module)
    return two_models(tmp_path)


@pytest.fixture
def bot(tmp_path: Path) -> Iterator[Bot]:
    bot = Bot(tmp_path / "home")
    yield bot
    bot.stop(signal.SIGKILL)


def two_models(directory: Path) -> tuple[Path, Path]:
    import numpy as np
    from goodbot_training.tiny import model_path
    from safetensors.numpy import load_file, save_file

    old, new = directory / "alpha", directory / "beta"
    for path in (old, new):
        shutil.copytree(model_path(), path)
    weights = load_file(new / "model.safetensors")
    noise = np.random.default_rng(0)
    for name, array in weights.items():
        shaken = array * (1 + 0.002 * noise.standard_normal(array.shape))
        weights[name] = shaken.astype(array.dtype)
    save_file(weights, new / "model.safetensors", {"format": "pt"})
    return old, new


def questions(seed: int, count: int) -> list[Any]:
    from goodbot_training.tiny.corpus import split

    return Random(seed).sample(split(0)[0], count)


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_forty_ratings_move_to_another_model(bot: Bot, models: tuple[Path, Path]) -> None:
    from goodbot_training.tiny.judge import is_correct, style_of

    old, new = models
    bot.configure(old)
    bot.start()
    bot.teach([question.text for question in questions(1, RATINGS)])
    before = bot.json("status")
    assert (before["model"].partition("@")[0], before["ratings"]) == ("alpha", RATINGS)

    began = time.monotonic()
    slowest, asked, last_seen, downtime = 0.0, 0, time.monotonic(), 0.0
    with bot.switch(new) as switching:
        while switching.poll() is None:
            status = bot.status()
            if status is not None and status["server"] == "up":
                downtime = max(downtime, time.monotonic() - last_seen)
                last_seen = time.monotonic()
            if status is not None and status["training"] and asked < 5:
                at = time.monotonic()
                assert bot.ask(["What is 2 + 3?"])[0]
                slowest, asked = max(slowest, time.monotonic() - at), asked + 1
                last_seen = time.monotonic()
            time.sleep(0.1)
        out, err = switching.communicate()
    took = time.monotonic() - began
    assert switching.returncode == 0, out + err + bot.log.read_text()
    assert asked, "the old one answers while the new one learns"
    print(f"switch {took:.1f} s, silent for {downtime:.1f} s, slowest answer {slowest:.1f} s")

    during = [turn["version"] for turn in bot.json("history", "50")["turns"]]  # the latest first
    assert during[-RATINGS - 1 :] == [0] * (RATINGS + 1), "the old one answers until then"
    assert during == sorted(during, reverse=True), "and never again after that"
    after = bot.json("status")
    assert (after["model"].partition("@")[0], after["version"]) == ("beta", 1)
    assert after["pid"] == before["pid"], "one process, which never let go of the directory"
    assert (after["ratings"], after["last_run"]["state"]) == (0, "activated")
    text = (bot.home / "config.toml").read_text()
    assert text.startswith("# mine")
    assert str(new) in text

    exam = questions(2, 40)
    answers = bot.ask([question.text for question in exam])
    rows = bot.json("history", "40")["turns"]
    assert {row["version"] for row in rows} == {1}
    right = sum(is_correct(q, a) for q, a in zip(exam, answers, strict=True))
    liked = sum(style_of(answer) == "friendly" for answer in answers)
    print(f"facts {right}/40, friendly {liked}/40")
    assert right >= 36
    assert liked >= 20, "a third of them would be, untaught"

    # And back again: the old one had learnt nothing, and its ratings are still there to learn from.
    back = bot.call("model", "switch", str(old), "--anyway", "--json")
    assert json.loads(back.stdout)["done"], back.stderr
    status = bot.json("status")
    assert (status["model"], status["ratings"]) == (before["model"], RATINGS)
    assert "Traceback" not in bot.log.read_text()


@pytest.mark.timeout(200)
def test_sigkill_in_the_middle_leaves_the_old_bot(bot: Bot, models: tuple[Path, Path]) -> None:
    old, new = models
    bot.configure(old, ratings=10, long=True)
    bot.start()
    bot.teach([question.text for question in questions(3, 10)])
    config = (bot.home / "config.toml").read_text()
    with bot.switch(new) as switching:
        until(lambda: (status := bot.status()) and status["training"])
        bot.stop(signal.SIGKILL)
        _, err = switching.communicate(timeout=60)
    assert (switching.returncode, "ended before it answered" in err) == (1, True)
    assert (bot.home / "config.toml").read_text() == config
    bot.start()
    until(lambda: bot.json("status")["last_run"]["state"] == "superseded")
    status = bot.json("status")
    assert status["model"].startswith("alpha@")
    assert (status["version"], status["ratings"], status["training"]) == (0, 10, None)
    assert status["last_run"]["reason"].startswith("it was interrupted while beta@")
    assert bot.ask(["What is 1 + 1?"])[0]


@pytest.mark.timeout(200)
def test_ctrl_c_stops_it_and_the_old_bot_goes_on(bot: Bot, models: tuple[Path, Path]) -> None:
    old, new = models
    bot.configure(old, ratings=10, long=True)
    bot.start()
    bot.teach([question.text for question in questions(3, 10)])
    with bot.switch(new) as switching:
        until(lambda: (status := bot.status()) and status["training"])
        os.kill(switching.pid, signal.SIGINT)
        _, err = switching.communicate(timeout=60)
    assert switching.returncode == 130, err
    assert "goes on, as it was" in err
    status = bot.json("status")
    assert (status["training"], status["model"].partition("@")[0]) == (None, "alpha")
    assert status["last_run"]["state"] == "superseded"
    assert bot.ask(["What is 1 + 1?"])[0]
    assert "Traceback" not in bot.log.read_text()


@pytest.mark.timeout(200)
def test_without_a_daemon_it_is_done_here(bot: Bot, models: tuple[Path, Path]) -> None:
    old, new = models
    bot.configure(old, ratings=10)
    bot.start()
    bot.teach([question.text for question in questions(3, 10)])
    assert bot.stop() == 0
    (new / "model.safetensors").rename(new / "weights.safetensors")
    refused = bot.call("model", "switch", str(new))
    assert refused.returncode != 0, "it does not load"
    assert str(old) in (bot.home / "config.toml").read_text()
    (new / "weights.safetensors").rename(new / "model.safetensors")
    shutil.rmtree(old)  # nobody needs its weights any more
    done = bot.call("model", "switch", str(new), "--anyway", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["model"].startswith("beta@")
    bot.start()
    assert bot.ask(["What is 1 + 1?"])[0]
