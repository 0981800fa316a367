# SPDX-License-Identifier: Apache-2.0
"""An objective that a plugin brings: chosen by name, made in the trainer alone, trained with."""

from __future__ import annotations

import sys
import types
from pathlib import Path
from typing import Any

import pytest
from goodbot import ObjectiveSpec, hookimpl
from goodbot.api.plugins import PluginHost
from goodbot.base.errors import ConfigError, MissingExtraError, TrainingError
from goodbot.cli.plugin.command import render
from goodbot.config import parse
from goodbot.learning.training.settings import training_settings
from goodbot_training.backends.mlx import register_backend
from goodbot_training.job.types import Job, TrainingSettings
from goodbot_training.objectives import make_objective
from goodbot_training.round.run import run_round

from tests.support import require
from tests.training.test_worker import make_job

FACTORY = "goodbot_pigeon:objective"


class Pigeon:
    def __init__(self, **more: Any) -> None:
        self.spec = ObjectiveSpec(name="pigeon", factory=FACTORY, **more)

    @hookimpl
    def register_objective(self) -> ObjectiveSpec:
        return self.spec


@pytest.fixture
def module(monkeypatch: pytest.MonkeyPatch) -> types.ModuleType:
    """The plugin that `goodbot plugin new pigeon --kind objective` writes."""
    module = types.ModuleType("goodbot_pigeon")
    exec(render("objective", "pigeon")["goodbot_pigeon.py"], module.__dict__)  # our own text
    monkeypatch.setitem(sys.modules, "goodbot_pigeon", module)
    return module


def chosen(word: str, home: Path, plugin: object | None = None) -> Any:
    plugins = PluginHost()
    if plugin:
        plugins.register(plugin, "pigeon")
    (home / "config.json").write_text("{}")
    config = parse(f'[training.settings]\nobjective = "{word}"\n', home=home)
    return training_settings(config, register_backend(), plugins.objectives(), home)[0]


def test_its_name_is_known_where_it_is_plugged_in(tmp_path: Path) -> None:
    assert chosen("pigeon", tmp_path, Pigeon()).objective == FACTORY
    assert chosen("kto", tmp_path, Pigeon()).objective == "kto"
    with pytest.raises(ConfigError, match="no objective is named 'pigeon'"):
        chosen("pigeon", tmp_path)


@pytest.mark.parametrize("word", ["os:system", "goodbot_pigeon:objective", ":"])
def test_a_config_names_no_code(word: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no objective is named"):
        chosen(word, tmp_path, Pigeon())


def test_what_it_needs_is_looked_for_first(tmp_path: Path) -> None:
    with pytest.raises(MissingExtraError):
        chosen("pigeon", tmp_path, Pigeon(requires=("no_such_module",), extra="goodbot-pigeon"))


def test_a_round_learns_with_it(module: types.ModuleType, random_model: Path, tmp_path: Path) -> None:
    require("torch")
    from goodbot_training.backends.torch.trainer import TorchBackend

    asked: list[Any] = []
    loss = module.loss
    module.loss = lambda *values, **named: asked.append(named) or loss(*values, **named)
    job = make_job(random_model, tmp_path, settings={"objective": FACTORY})
    run_round(Job.parse(job), TorchBackend(), lambda event: None)
    assert asked, "the plugin's own loss"


@pytest.mark.parametrize(
    ("factory", "why"),
    [
        ("no_such_module:objective", "ModuleNotFoundError"),
        ("goodbot_pigeon:nothing", "AttributeError"),
        ("goodbot_pigeon:loss", "TypeError"),
        ("goodbot_pigeon:advantages", "cannot be made"),
    ],
)
def test_one_that_fails_is_told_in_a_sentence(factory: str, why: str, module: types.ModuleType) -> None:
    with pytest.raises(TrainingError, match=why) as caught:
        make_objective(TrainingSettings(objective=factory))
    assert caught.value.kind == "data"


def test_one_that_gives_something_else_is_told(module: types.ModuleType) -> None:
    module.objective = lambda settings: print
    with pytest.raises(TrainingError, match="not an Objective"):
        make_objective(TrainingSettings(objective=FACTORY))
