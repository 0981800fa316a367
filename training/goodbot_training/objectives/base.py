# SPDX-License-Identifier: Apache-2.0
"""What an objective is: how rewards become advantages, and the loss over them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from goodbot.api.backend import LossFunction

from goodbot_training.job.types import Baseline


class AdvantageRule(Protocol):
    """One advantage a rollout; `rewards` lie in [-1, 1], `weights` are not negative."""

    def __call__(
        self, baseline: Baseline, rewards: Sequence[float], weights: Sequence[float]
    ) -> tuple[list[float], Baseline]:
        """The advantages, and the baseline after this round."""
        ...


@dataclass(frozen=True)
class Objective:
    """A loss with its rule for advantages; callable as a `LossFunction`."""

    loss: LossFunction
    advantages: AdvantageRule
    hindsight: bool = False
    """Whether it takes what people say of an answer: the loss gets `TrainingBatch.hindsight` then."""
    instead: bool = False
    """Whether words stand in the place of a rating, as far as they say something, or beside it."""

    def __call__(self, *arguments: Any, **keywords: Any) -> tuple[object, dict[str, object]]:
        """See `goodbot.api.backend.LossFunction`."""
        return self.loss(*arguments, **keywords)
