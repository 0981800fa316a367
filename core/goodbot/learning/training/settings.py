# SPDX-License-Identifier: Apache-2.0
"""The values that a model is trained with: the owner's own, then those of the preset for its shape."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from goodbot.api import model_shape
from goodbot.api.backend import BackendSpec
from goodbot.api.model_shape import Architecture
from goodbot.api.objective import ObjectiveSpec
from goodbot.api.projections import Sizes
from goodbot.api.registry import registered
from goodbot.base.errors import ConfigError, MissingExtraError
from goodbot.base.installed import missing_modules
from goodbot.base.worded import Worded
from goodbot.config import Config
from goodbot.inference.models.directory import read_config


def training_settings(
    config: Config, backend: BackendSpec, objectives: Mapping[str, ObjectiveSpec], model: Path
) -> tuple[Any, str]:
    """`[training.settings]` as the backend's own dataclass, complete, and what decided it in one line.

    `objectives` are those of plugins. The line is empty for a backend without presets. Raises ConfigError,
    which names file and line, and MissingExtraError.
    """
    own = with_objective(config, objectives, backend).training_settings(backend.settings)
    if backend.presets is None:
        return own, ""
    resolved = backend.presets(config.training.settings, shape(model))
    return dataclasses.replace(own, **resolved.values), resolved.why


def with_objective(config: Config, objectives: Mapping[str, ObjectiveSpec], backend: BackendSpec) -> Config:
    """`config` with the factory of a plugin's objective where it names that.

    The trainer's process imports no plugin but this one. Raises ConfigError for a name that neither a
    plugin nor the backend has, and MissingExtraError.
    """
    word, own = config.training.settings.get("objective"), backend.objectives
    if not isinstance(word, str):
        return config  # it is said where the settings are read
    if word not in objectives and (word in own or not (own or ":" in word)):
        return config
    spec = registered(objectives, word, "objective", config.where("training.settings"), "objective", also=own)
    if missing_modules(spec.requires):
        raise MissingExtraError(Worded("the objective {name}", name=word), spec.extra)
    settings = {**config.training.settings, "objective": spec.factory}
    return dataclasses.replace(config, training=dataclasses.replace(config.training, settings=settings))


def shape(model: Path) -> Architecture | None:
    """What the model's config tells; None where it tells too little."""
    try:
        return model_shape.read(read_config(model))
    except ConfigError:
        return None


def vocabulary(model: Path) -> int:
    """So many token ids the model's config tells of; 0: not known."""
    try:
        found = read_config(model)
        own = model_shape.sizes_of(found).get("vocab_size")
        return own or Sizes(found).get("vocab_size")
    except ConfigError:
        return 0
