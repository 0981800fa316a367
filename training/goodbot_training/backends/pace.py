# SPDX-License-Identifier: Apache-2.0
"""How far AdamW goes in each step: the rate, and how much what hardly matters is held back."""

from __future__ import annotations

import math
from dataclasses import dataclass

from goodbot.api.backend import OptimizerSettings

SECOND_BETA = 0.999
"""Of the running mean of squared gradients, AdamW's own."""
_LEAST = 1e-8


@dataclass(kw_only=True)
class StepSize:
    """Kept from step to step, and in checkpoints, by both backends.

    AdamW divides the mean gradient of each weight by its usual size √v, so that a weight which hardly
    matters goes as far as one that decides. With `damping` c it is divided by (√v + c·s) / (1 + c)
    instead, s being the root mean square of all gradients so far: a weight of usual gradients goes as far
    as before, a still one hardly moves, one that decides goes further, 1 + c times as far at most. c = 0 is
    AdamW, c → ∞ momentum on gradients whose root mean square is one. Where few weights have a gradient at
    all, as in a mixture of many experts, those go further; that was not measured.
    """

    settings: OptimizerSettings
    weights: int
    """How many are trained."""
    taken: int = 0
    """Optimizer steps so far."""
    squares: float = 0.0
    """Running mean of the squared gradient norm."""

    @property
    def state(self) -> dict[str, float]:
        """What a checkpoint keeps."""
        return {"taken": float(self.taken), "squares": self.squares}

    @state.setter
    def state(self, state: dict[str, float]) -> None:
        self.taken, self.squares = int(state["taken"]), state["squares"]

    @property
    def weight_decay(self) -> float:
        """AdamW's own, which it takes times the rate."""
        return self.settings.weight_decay / (1 + self.settings.damping)

    def step(self, norm: float) -> tuple[float, float]:
        """The learning rate and AdamW's ε of the next step, whose gradient has this norm, unclipped."""
        self.taken += 1
        norm = min(norm, self.settings.max_grad_norm)
        self.squares = SECOND_BETA * self.squares + (1 - SECOND_BETA) * norm * norm
        mean = self.squares / (1 - SECOND_BETA**self.taken)
        damping = self.settings.damping
        size = math.sqrt(mean / self.weights)
        return (1 + damping) * self.settings.rate_at(self.taken), max(_LEAST, damping * size)
