# SPDX-License-Identifier: Apache-2.0
"""Another base model, on PyTorch: a real daemon learns from forty ratings once more, and changes over.

The second model is the tiny one with a little noise on its weights: another model of that shape.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.program import until
from tests.end_to_end.taught import RATINGS, Bot, questions
from tests.support import patience, require


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
            if status is not None and status.get("training") and asked < 5:
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
        until(lambda: (status := bot.status()) and status.get("training"))
        bot.stop(signal.SIGKILL)
        _, err = switching.communicate(timeout=patience(60))
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
        until(lambda: (status := bot.status()) and status.get("training"))
        os.kill(switching.pid, signal.SIGINT)
        _, err = switching.communicate(timeout=patience(60))
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
