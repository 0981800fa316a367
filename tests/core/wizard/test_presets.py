"""The presets are values that a training takes, and each goes where its name says."""

from __future__ import annotations

from pathlib import Path

import pytest
from goodbot.config import Config, parse
from goodbot.wizard.presets import KEYS, PRESETS, Preset, preset_of
from goodbot_training.types import TrainingSettings

BY_NAME = {preset.name: preset for preset in PRESETS}


def settings(preset: Preset) -> TrainingSettings:
    return TrainingSettings.from_mapping(preset.settings)


def test_balanced_is_the_defaults() -> None:
    assert settings(BY_NAME["balanced"]) == TrainingSettings()


def test_careful_goes_less_far_and_aggressive_farther() -> None:
    careful, balanced, aggressive = (settings(BY_NAME[n]) for n in BY_NAME)
    assert careful.steps < balanced.steps < aggressive.steps
    assert careful.kl > balanced.kl > aggressive.kl
    scales = [s.learning_rate_scale for s in (careful, balanced, aggressive)]
    assert scales == sorted(set(scales))


@pytest.mark.parametrize("preset", PRESETS, ids=lambda preset: preset.name)
def test_a_preset_is_known_again_in_a_config(preset: Preset, tmp_path: Path) -> None:
    lines = "".join(f"{key} = {value}\n" for key, value in preset.settings.items())
    config: Config = parse(f"[training.settings]\nrank = 4\n{lines}", home=tmp_path)
    assert preset_of(config.training.settings) == preset.name
    assert set(preset.settings) <= set(KEYS)


def test_own_values_are_no_preset() -> None:
    assert preset_of({"kl": 0.7}) == ""
    assert preset_of({**BY_NAME["careful"].settings, "steps": 17}) == ""
