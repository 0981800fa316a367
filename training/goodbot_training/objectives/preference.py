# SPDX-License-Identifier: Apache-2.0
"""Objectives for single ratings that know no importance ratio: KTO, BCO, and good answers only.

With the implied reward r(y) = log π_θ(y) - log π_base(y), summed over the answer's tokens, and A
the signed, weighted rating of the answer (there is no baseline):

    KTO (Ethayarajh et al. 2024, arXiv 2402.01306)
        L = Σ |A| · (1 - σ(sign(A) · (β·r - z))) / N           z = max(0, mean β·r), detached
    BCO (Jung et al. 2024, arXiv 2404.04656)
        L = -Σ |A| · log σ(sign(A) · (β·r - δ)) / N            δ = mean β·r, detached

KTO's published z is estimated from mismatched pairs of prompts and answers, which costs a second
forward pass; here z, as δ, is the mean over the answers of one forward pass. That is a micro-batch:
where a batch of B does not go through at once, its parts (answers of like length) have means of
their own, so that these two losses, unlike MIS-PO's, depend on `tokens_per_forward`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from goodbot_training.job.types import Baseline
from goodbot_training.objectives.mispo import Array, detach


def signed(
    baseline: Baseline, rewards: Sequence[float], weights: Sequence[float]
) -> tuple[list[float], Baseline]:
    """A = ω·r: the rating itself."""
    return [w * r for r, w in zip(rewards, weights, strict=True)], baseline


def goods_only(
    baseline: Baseline, rewards: Sequence[float], weights: Sequence[float]
) -> tuple[list[float], Baseline]:
    """A = ω·max(r, 0): supervised fine-tuning on what was rated good."""
    return [w * max(r, 0.0) for r, w in zip(rewards, weights, strict=True)], baseline


@dataclass(frozen=True, kw_only=True, slots=True)
class PreferenceLoss(ABC):
    """A loss of the implied reward alone; callable as a `goodbot.api.backend.LossFunction`."""

    beta: float

    @abstractmethod
    def losses(self, xp: Any, implied: Array, sign: Array) -> Array:
        """The loss of each answer, `(B,)`, by its β·r and the sign of A."""

    def __call__(
        self,
        xp: Any,
        policy_logprobs: Array,
        sampling_logprobs: Array,
        reference_logprobs: Array,
        advantages: Array,
        mask: Array,
        normalizer: float,
    ) -> tuple[Array, dict[str, Array]]:
        """Loss and statistics; arguments as for `MisPo.__call__`, with A the signed rating.

        Nothing is rejected, so all tokens count as accepted.
        """
        difference = (policy_logprobs - reference_logprobs) * mask
        implied = self.beta * difference.sum(axis=1)
        sign = xp.where(advantages > 0, 1.0, -1.0)
        loss = (xp.abs(advantages) * self.losses(xp, implied, sign)).sum() / normalizer
        back = -detach(xp, difference)
        kl = ((xp.exp(back) - back - 1.0) * mask).sum()
        rows = xp.ones_like(detach(xp, advantages)).sum()
        return loss, {"kl": kl, "tokens_accepted": mask.sum(), "trajectories_accepted": rows}


@dataclass(frozen=True, kw_only=True, slots=True)
class Kto(PreferenceLoss):
    """KTO over single ratings."""

    def losses(self, xp: Any, implied: Array, sign: Array) -> Array:
        """`1 - σ(sign · (β·r - z))`."""
        anchor = xp.clip(detach(xp, implied).mean(), 0.0, None)
        return 1.0 - _sigmoid(xp, sign * (implied - anchor))


@dataclass(frozen=True, kw_only=True, slots=True)
class Bco(PreferenceLoss):
    """BCO over single ratings."""

    def losses(self, xp: Any, implied: Array, sign: Array) -> Array:
        """`-log σ(sign · (β·r - δ))`."""
        shift = detach(xp, implied).mean()
        return -_log_sigmoid(xp, sign * (implied - shift))


def _sigmoid(xp: Any, x: Array) -> Array:
    return xp.exp(_log_sigmoid(xp, x))


def _log_sigmoid(xp: Any, x: Array) -> Array:
    """log σ(x) without overflow: min(x, 0) - log(1 + e^-|x|)."""
    return xp.clip(x, None, 0.0) - xp.log1p(xp.exp(-xp.abs(x)))
