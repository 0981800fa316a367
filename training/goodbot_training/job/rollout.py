# SPDX-License-Identifier: Apache-2.0
"""A rated answer as a round learns from it: its tokens, and what policies say of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from goodbot.api.sampler import TokenizedTurn

if TYPE_CHECKING:
    from goodbot.api.step import Floats


@dataclass(frozen=True, kw_only=True)
class Rollout:
    """One rated answer, ready to train on. R response tokens."""

    id: str
    turn: TokenizedTurn
    temperature: float
    """At which log-probs are taken; a greedy answer (0) is scored at 1."""
    reward: float
    weight: float
    split: str
    sampling_logprobs: Floats
    """`(R,)`: by the behaviour policy."""
    reference_logprobs: Floats
    """`(R,)`: by the base."""
    off_policy: bool
    demonstration: bool = False
    """Whether it is what a person wrote in the answer's place: it is learnt, and is no rating."""
    rated: bool = True
    """False: nobody has rated it, and it is taught by `hindsight` alone; see `round.notes`."""
    hindsight: Floats | None = None
    """`(R,)`: what people's words say for or against each token, in nats times the weight of the words; None
    without words."""

    @property
    def said(self) -> float:
        """How much the words say of the answer, as an advantage says it: ω · mean_t |d_t|; 0 without any."""
        return 0.0 if self.hindsight is None else float(abs(self.hindsight).mean())
