# SPDX-License-Identifier: Apache-2.0
"""Ranks that are not trained: without a gradient, and after each step as they were."""

# pyright: standard
# (the framework ships no complete types)

from __future__ import annotations

from collections.abc import Mapping

import torch

from goodbot_training.backends.sums import moving
from goodbot_training.backends.torch.model import TorchModel


class TorchStill:
    """The first ranks of a model's adapter; of none it costs nothing."""

    def __init__(self, model: TorchModel, ranks: Mapping[str, int]) -> None:
        self._parts: list[tuple[torch.nn.Parameter, torch.Tensor, torch.Tensor]] = []
        if not ranks:
            return
        masks = moving(model.extract(), ranks)
        for path, halves in model.halves():
            for parameter, mask in zip(halves, masks[path], strict=True):
                moves = torch.as_tensor(mask, device=parameter.device).bool()
                self._parts.append((parameter, moves, parameter.detach().clone()))

    def silence(self) -> None:
        """They have no gradient, and no part in its norm."""
        for parameter, moves, _ in self._parts:
            if parameter.grad is not None:
                parameter.grad.mul_(moves)

    @torch.no_grad()
    def put_back(self) -> None:
        """They are what they were: an optimizer decays what has no gradient, too."""
        for parameter, moves, before in self._parts:
            parameter.copy_(torch.where(moves, parameter, before))
