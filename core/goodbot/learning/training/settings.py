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
from goodbot.base.errors import ConfigError, MissingExtraError
from goodbot.base.installed import missing_modules
from goodbot.base.suggest import instead
from goodbot.config import Config
from goodbot.inference.models.directory import read_config


def training_settings(
    config: Config, backend: BackendSpec, objectives: Mapping[str, ObjectiveSpec], model: Path
) -> tuple[Any, str]:
    """`[training.settings]` as the backend's own dataclass, complete, and what decided it in one line.

    `objectives` are those of plugins. The line is empty for a backend without presets. Raises ConfigError,
    which names file and line, and MissingExtraError.
    """
    config = with_objective(config, objectives)
    own = config.training_settings(backend.settings)
    if backend.presets is None:
        return own, ""
    resolved = backend.presets(config.training.settings, shape(model))
    return dataclasses.replace(own, **resolved.values), resolved.why


def with_objective(config: Config, objectives: Mapping[str, ObjectiveSpec]) -> Config:
    """`config` with the factory of a plugin's objective where it names that.

    The trainer's process imports no plugin but this one. Raises ConfigError for a factory that no plugin
    has registered, and MissingExtraError.
    """
    word = config.training.settings.get("objective", "")
    spec = objectives.get(word) if isinstance(word, str) else None
    if spec is None:
        if ":" in str(word):
            where = config.where("training.settings")
            raise where.error("objective", f"no objective is named {word!r}; {instead(word, objectives)}")
        return config
    if missing_modules(spec.requires):
        raise MissingExtraError(f"the objective {word}", spec.extra)
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
