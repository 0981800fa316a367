# SPDX-License-Identifier: Apache-2.0
"""Ranks that are not trained: without a gradient, and after each step as they were."""

# pyright: standard
# (the framework ships no complete types)

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import mlx.core as mx
from mlx.utils import tree_flatten, tree_unflatten

from goodbot_training.backends.mlx.model import MlxModel
from goodbot_training.backends.mlx.targets import turned
from goodbot_training.backends.sums import moving


class MlxStill:
    """The first ranks of a model's adapter; of none it costs nothing."""

    def __init__(self, model: MlxModel, ranks: Mapping[str, int]) -> None:
        self._causal = model.causal
        self._parts: dict[str, tuple[mx.array, mx.array]] = {}
        """By the name of the weight: where it moves, and what it was."""
        if not ranks:
            return
        masks = moving(model.extract(), ranks)
        found = {
            id(weight): mx.array(turned(mask)) > 0
            for path, halves in model.halves()
            for weight, mask in zip(halves, masks[path], strict=True)
        }
        trained: Any = tree_flatten(self._causal.trainable_parameters())
        self._parts = {name: (found[id(weight)], weight) for name, weight in trained}

    def silenced(self, gradients: Any) -> Any:
        """They have no gradient, and no part in its norm."""
        if not self._parts:
            return gradients
        flat: Any = tree_flatten(gradients)
        return tree_unflatten([(name, mx.where(self._parts[name][0], one, 0.0)) for name, one in flat])

    def put_back(self) -> None:
        """They are what they were: an optimizer decays what has no gradient, too."""
        if self._parts:
            flat: Any = tree_flatten(self._causal.trainable_parameters())
            there = [(name, mx.where(self._parts[name][0], one, self._parts[name][1])) for name, one in flat]
            self._causal.update(tree_unflatten(there))
