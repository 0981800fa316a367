# SPDX-License-Identifier: Apache-2.0
"""The wizard writes a preset's name; what it comes to is the backend's affair."""

from __future__ import annotations

from pathlib import Path

import pytest
from goodbot.cli.setup import template
from goodbot.cli.setup.draft import OWN, Draft
from goodbot.cli.setup.presets import KEYS, PRESETS, preset_of
from goodbot.config import parse
from goodbot.config.file import ConfigFile
from goodbot_training.job.settings import PRESETS as KNOWN
from goodbot_training.job.settings import TrainingSettings

NAMES = [*PRESETS]


def test_the_wizard_and_the_trainer_know_the_same_names() -> None:
    assert (*NAMES, OWN) == KNOWN
    assert set(KEYS) <= {*TrainingSettings.__dataclass_fields__}


@pytest.mark.parametrize("name", NAMES)
def test_a_preset_is_known_again_in_a_config(name: str, tmp_path: Path) -> None:
    config = parse(f'[training.settings]\nrank = 4\npreset = "{name}"\n', home=tmp_path)
    assert preset_of(config.training.settings) == name


def test_nothing_is_balanced_and_own_values_are_no_preset() -> None:
    assert preset_of({}) == "balanced"
    assert preset_of({"kl": 0.7}) == ""
    assert preset_of({"preset": "careful", "kl": 0.3}) == ""
    assert preset_of({"preset": "custom"}) == ""


def test_who_chooses_a_preset_gives_up_what_would_win_over_it(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text("[training.settings]\nrank = 4\nkl = 0.7  # mine\n")
    file = ConfigFile(tmp_path)
    draft = Draft(platform="terminal", preset="careful", schedule="auto", model="demo", backend="auto")
    template.fill(file, draft)
    assert (file.get("training.settings.preset"), file.get("training.settings.kl")) == ("careful", None)
    assert file.get("training.settings.rank") == 4
    own = ConfigFile(tmp_path)
    draft.preset = OWN
    template.fill(own, draft)
    assert (own.get("training.settings.kl"), own.get("training.settings.preset")) == (0.7, None)
