"""The values that a model is trained with: the owner's own, then those of the preset for its shape."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

from goodbot.api import model_shape
from goodbot.api.backend import BackendSpec
from goodbot.api.model_shape import Architecture
from goodbot.api.projections import Sizes
from goodbot.base.errors import ConfigError
from goodbot.config import Config
from goodbot.inference.models.directory import read_config


def training_settings(config: Config, backend: BackendSpec, model: Path) -> tuple[Any, str]:
    """`[training.settings]` as the backend's own dataclass, complete, and what decided it in one line.

    The line is empty for a backend without presets. Raises ConfigError, which names file and line.
    """
    own = config.training_settings(backend.settings)
    if backend.presets is None:
        return own, ""
    resolved = backend.presets(config.training.settings, shape(model))
    return dataclasses.replace(own, **resolved.values), resolved.why


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
