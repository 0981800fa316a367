# SPDX-License-Identifier: Apache-2.0
"""The daemon begins anew on another base model, in the same process; the models here are fakes."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from goodbot import config
from goodbot.api import control
from goodbot.base.errors import GoodbotError
from goodbot.cli import switch

from tests.cli.program import Bot as Program
from tests.cli.program import environment, until
from tests.core.builders import Fake

# `goodbot run` with the fake backend instead of what is installed.
RUN = """
import sys
from goodbot.cli import main, run
from goodbot_connectors import terminal
from tests.core.builders import plugins

def fakes(settings):
    host = plugins()
    host.register(terminal, "terminal")
    return host

run.open_plugins = fakes
sys.exit(main(sys.argv[1:]))
"""


class Bot(Program):
    """A daemon on a fake model, with no ratings."""

    def start(self, *_: Any, **env: str) -> None:
        self._started += 1
        with self.log.open("w") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-c", RUN, "--home", str(self.home), "run"],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                text=True,
                env=environment(**env),
                cwd=Path(__file__).parents[2],
                start_new_session=True,
            )
        until(lambda: "Ctrl-C stops" in self.log.read_text() or self.process.poll() is not None)
        assert self.process.poll() is None, self.log.read_text()

    def tell(self, command: str, *args: str) -> dict[str, Any]:
        answer = control.call(self.home, command, list(args), lambda _: None)
        assert answer is not None
        return answer["data"]

    def switch(self, model: Fake) -> None:
        """`goodbot model switch`, when its person wants the model untaught; until it answers."""
        done = self.tell("switch", "wait", "bare", str(model.path))
        assert done["done"]
        switch._wait_until_up(self.home, done)

    @property
    def configured(self) -> str:
        return config.load(self.home).model.path


@pytest.fixture
def models(tmp_path: Path) -> tuple[Fake, Fake]:
    return Fake(tmp_path / "old model"), Fake(tmp_path / "new model")  # paths may hold spaces


@pytest.fixture
def bot(tmp_path: Path, models: tuple[Fake, Fake]) -> Iterator[Bot]:
    bot = Bot(tmp_path / "home")
    bot.home.mkdir(mode=0o700)
    (bot.home / "config.toml").write_text(f'[model]\npath = "{models[0].path}"\n')
    bot.start()
    yield bot
    bot.stop()


def test_it_begins_anew_in_the_same_process(bot: Bot, models: tuple[Fake, Fake]) -> None:
    pid = bot.tell("status")["pid"]
    began = time.monotonic()
    bot.switch(models[1])
    print(f"{time.monotonic() - began:.1f} s")
    status = bot.tell("status")
    assert (status["pid"], status["model"].partition("@")[0]) == (pid, "new model")
    assert status["server"] == "up"
    bot.switch(models[0])
    bot.switch(models[1])
    assert bot.configured == str(models[1].path)
    assert bot.stop() == 0
    assert "Traceback" not in bot.log.read_text()


def test_a_model_that_does_not_come_up_after_all_gives_way_to_the_old(
    bot: Bot, models: tuple[Fake, Fake]
) -> None:
    """It did when it was tried; then somebody took the memory."""
    old, new = models
    new.set(starts=1)
    with pytest.raises(GoodbotError, match=r"did not come up, old model@\w+ answers again"):
        bot.switch(new)
    assert bot.configured == str(old.path)
    assert "There was not enough memory" in bot.log.read_text()
    assert bot.tell("status")["model"].startswith("old model@")
    bot.switch(Fake(new.path.parent / "third"))  # one that comes up


def test_another_process_gets_no_chance_in_between(bot: Bot, models: tuple[Fake, Fake]) -> None:
    done = bot.tell("switch", "wait", "bare", str(models[1].path))
    busy = 0
    while True:
        try:
            status = control.call(bot.home, "status", [], lambda _: None)
        except GoodbotError:
            status = None
        if status is not None and status["data"]["started_at"] != done["started_at"]:
            break
        if status is None:
            second = bot.call("status")
            busy += second.returncode == 75
            assert second.returncode in (0, 1, 75), second.stderr
    assert bot.process is not None
    assert bot.process.poll() is None


def test_a_switch_is_refused_before_anything_happens(bot: Bot, models: tuple[Fake, Fake]) -> None:
    for words, reason in (
        (("wait", "to", str(models[0].path)), "answers already"),
        (("wait", "to", "/nowhere"), "does not exist"),
        (("to",), "say which"),
        ((), "say which"),
    ):
        with pytest.raises(GoodbotError, match=reason):
            bot.tell("switch", *words)
    assert bot.tell("switch", "stop") == {"stopped": False}
    assert bot.configured == str(models[0].path)
