# SPDX-License-Identifier: Apache-2.0
"""Trackers see every run's numbers, and none of them disturbs one."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from goodbot import TrackerSpec, hookimpl
from goodbot.base.errors import ConfigError
from goodbot.config import parse
from goodbot.daemon.app import App
from goodbot.learning.tracking import observer
from goodbot.learning.tracking.observer import Tracking, numbers_of

from tests.core.builders import GRANTS, Bot, Fake, plugins, until
from tests.core.learning.tracking.trackers import DiaryPlugin, DiarySettings

CONFIG = """
[model]
path = "{model}"
[training]
schedule = "manual"
min_ratings = 8
held_out = 2
[tracking.diary]
behaviour = "{behaviour}"
"""


async def a_round(home: Path, behaviour: str = "ok") -> list[dict[str, Any]]:
    """Eight ratings and one training in a whole goodbot; the diary."""
    fake = Fake(home / "fake")
    config = parse(CONFIG.format(model=fake.path, behaviour=behaviour), home=home / "bot")
    async with App.open(config, plugins(DiaryPlugin()), grants={"loopback": GRANTS}) as app:
        bot = Bot(app, fake)
        await bot.rated(8)
        verdict = await bot.train()
        assert verdict.state == "activated"
    file = home / "bot/tracking/diary/run-1.jsonl"
    lines = file.read_text().splitlines() if file.exists() else []
    return [json.loads(line) for line in lines]


async def test_a_tracker_hears_of_the_run_from_its_start_to_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("DIARY_KEY", "its own")
    monkeypatch.setenv("TELEGRAM_BOT_TOKEN", "not its own")
    first, *steps, last = await a_round(tmp_path)
    about = first["about"]
    assert (about["backend"], about["ratings"], about["tokens_per_forward"]) == ("fake", 8, 8192)
    assert about["model"].startswith("fake@")
    assert "DIARY_KEY" in first["environ"]
    assert "TELEGRAM_BOT_TOKEN" not in first["environ"]
    assert [line["load/eta"] for line in steps] == [0.0]
    assert last == {"state": "activated"}
    assert [r.message for r in caplog.records if r.levelno >= logging.WARNING] == []


@pytest.mark.parametrize(
    ("behaviour", "says"),
    [
        ("no start", "OSError: the disk is read-only"),
        ("dies", "it ended with 3 and without a word"),
        ("no end", "RuntimeError: nothing can be closed"),
    ],
)
async def test_one_that_fails_says_so_once_and_disturbs_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, behaviour: str, says: str
) -> None:
    await a_round(tmp_path, behaviour)
    warned = [r.getMessage() for r in caplog.records if r.levelno >= logging.WARNING]
    assert warned == [f"run 1 is not tracked with diary: {says}"]


async def test_one_that_hangs_holds_up_neither_the_run_nor_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(observer, "_FINISH_SECONDS", 0.2)
    assert await a_round(tmp_path, "deaf") == [], "it would sleep for an hour"
    left = [task.get_name() for task in asyncio.all_tasks() if "track" in task.get_name()]
    assert left == []


async def test_a_run_that_is_stopped_is_closed_as_interrupted(tmp_path: Path) -> None:
    tracking = configured(tmp_path)
    tracking.on_training_started(1, 8, [0.5, -0.5])
    tracking.on_training_progress(1, {"phase": "rollouts", "step": 8, "steps": 8, "eta": 0.0})
    tracking.on_training_progress(1, {"phase": "train", "step": 1, "loss": 0.5})
    tracking.on_training_progress(1, {"phase": "gate", "step": 64, "steps": 512, "eta": 8.0})
    await tracking.stop()
    file = tmp_path / "tracking/diary/run-1.jsonl"
    *_, step, last = [json.loads(line) for line in file.read_text().splitlines()]
    assert (step, last) == ({"step": 1, "train/loss": 0.5}, {"state": "interrupted"})


async def test_a_run_that_is_interrupted_has_no_tracker_until_it_goes_on(tmp_path: Path) -> None:
    fake = Fake(tmp_path / "fake")
    config = parse(CONFIG.format(model=fake.path, behaviour="ok"), home=tmp_path / "bot")
    file = tmp_path / "bot/tracking/diary/run-1.jsonl"

    def states() -> list[str]:
        lines = [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []
        return [line["state"] for line in lines if "state" in line]

    async with App.open(config, plugins(DiaryPlugin()), grants={"loopback": GRANTS}) as app:
        bot = Bot(app, fake)
        await bot.rated(8)
        await bot.start_training()
        await bot.command("pause")
        await until(lambda: states() == ["interrupted"])
        await bot.command("resume")
        await until(lambda: app.trainer.progress)
        await bot.finish_training()
    assert states() == ["interrupted", "activated"]


async def test_one_that_draws_a_bar_without_end_is_let_be(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    lines = await a_round(tmp_path, "chatty")
    assert lines[-1] == {"state": "activated"}
    assert [r.message for r in caplog.records if r.levelno >= logging.WARNING] == []


def configured(home: Path, section: str = "[tracking.diary]", **specs: Any) -> Tracking:
    spec = TrackerSpec(
        name="diary", factory="tests.core.learning.tracking.trackers:Diary", settings=DiarySettings, **specs
    )
    return Tracking(parse(section, home=home), {"diary": spec}, {})


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[tracking.diry]", "no tracker is named 'diry'; did you mean 'diary'?"),
        ("[tracking.diary]\nbehavior = 'ok'", "did you mean 'behaviour'?"),
        ("[tracking]\ndiary = true", "write it as a section: [tracking.diary]"),
    ],
)
def test_a_wrong_section_is_refused(tmp_path: Path, text: str, says: str) -> None:
    with pytest.raises(ConfigError) as error:
        configured(tmp_path, text)
    assert says in str(error.value)


async def test_one_that_is_not_installed_is_left_out_and_says_how_to_get_it(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    tracking = configured(tmp_path, requires=("goodbot_no_such_module",), extra="diary")
    assert "not installed: the page of its plugin says how" in caplog.text
    tracking.on_training_started(1, 8, [0.5, -0.5])
    await tracking.stop()
    assert not (tmp_path / "tracking").exists()


def test_only_finite_numbers_are_passed_on() -> None:
    progress: Mapping[str, Any] = {
        "event": "progress",
        "phase": "train",
        "step": 3,
        "steps": 32,
        "loss": 0.5,
        "kl": float("nan"),
        "tokens": 120,
        "skipped": True,
        "note": "a word",
        "eta": 2.5,
    }
    assert numbers_of(progress) == {"train/loss": 0.5, "train/tokens": 120.0, "train/eta": 2.5}
    assert numbers_of({"event": "progress", "phase": "gate", "step": 0, "steps": 1}) == {}


async def test_a_plugin_offers_one_by_its_hook(tmp_path: Path) -> None:
    class Plugin:
        @hookimpl
        def register_tracker(self) -> TrackerSpec:
            return DiaryPlugin().register_tracker()

    assert plugins(Plugin()).trackers()["diary"].secrets == ("DIARY_KEY",)
