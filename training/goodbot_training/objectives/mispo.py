# SPDX-License-Identifier: Apache-2.0
"""MIS-PO, written once over an array namespace, so that the backends cannot drift apart.

`xp` is `torch`, `mlx.core` or `numpy`: only what they share is used. One response is one rollout of
at most R tokens, B of them a batch. With x_t = π_θ(a_t) / π_behaviour(a_t), the importance ratio
against the policy that *wrote* the answer, at its temperature, and ρ̄ = exp(mean_t log x_t):

    L = - Σ_rollouts Σ_t  token_term_t · trajectory_term · A · log π_θ(a_t) / N
        + kl · Σ_rollouts Σ_t  (e^d - d - 1) / N          d = log π_base(a_t) - log π_θ(a_t)

Both terms are *detached* coefficients: the gradient flows through log π_θ only.

* `tapered`, the default. Good answers weigh 1. A token of a bad one weighs

      min(1, Π_{s≤t} x_s) · (1 - π_base(a_t))

  The first factor, the truncated importance ratio of the answer up to there (TOPR, Le Roux et al.
  2025, arXiv 2503.14286, a token at a time), ends the push on what the policy no longer says. The
  second spares what the base is sure of, which is its knowledge and not the choice that was disliked.
  (What the policy itself is sure of may be a style that it has learnt, and is to unlearn.)
  Only good answers are held to the base: what is bad may vanish.
* `filter`, the paper (Step 3.5 Flash, arXiv 2602.10604, §5.2): both terms are 0 or 1, inside the
  band or not.
* `scale`: x clipped to the token band, times min(1, ρ̄/low, high/ρ̄). A clipped token keeps its
  gradient, weighted as at the band's edge.
* `sign_aware`: a token stops when it has already moved out of the band the way its advantage
  pushes it (a good one above it, a bad one below); the others weigh 1, whatever their ratio. The
  trajectory mask is wide and stops only what is no longer this policy's own.
* `reinforce`: both terms 1, for comparison.

What `tapered` comes to on the shipped model is in tests/learning/results/torch.md. Nothing bounds what
`reinforce` does to a bad answer but the KL term, and on bad answers that pulls back the very tokens
that they are disliked for; a push that ends by itself needs no such brake. To hold bad answers, too, to
what the base is sure of was tried: a small Llama lost a quarter fewer facts, but a habit that the base
is sure of could no longer be unlearnt (examples/tool_call_agent.py gained 12 points instead of 47).

N is constant over a round, never the answer's own length: a mean over each answer drifts toward
short ones.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from goodbot.api.hindsight import OBJECTIVES

from goodbot_training.job.types import TrainingSettings

Array = Any
"""A torch tensor, an MLX array or a NumPy array."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Ratios:
    """What token terms look at. `(B, R)`, the advantages `(B, 1)`; nothing carries a gradient."""

    log: Array
    """log x, 0 on padding."""
    reference: Array
    """log π_base"""
    advantages: Array


_MOST_TOLD = 60.0
"""Nats to which a token's distance from the base is cut in the statistics: e^89 is infinite in fp32."""

TokenTerm = Callable[[Any, Ratios, float, float], Array]
"""`(xp, ratios, low, high) → (B, R)`"""
TrajectoryTerm = Callable[[Any, Array, float, float], Array]
"""`(xp, trajectory ratio (B,), low, high) → (B,)`"""


def inside(ratio: Array, low: float, high: float) -> Array:
    """1 where `low ≤ ratio ≤ high`, else 0, as booleans."""
    return (ratio >= low) & (ratio <= high)


def taper(xp: Any, log_ratio: Array, reference_logprobs: Array) -> Array:
    """What is left of a push against a token, `(B, R)`: min(1, Π_{j<=t} x_j) · (1 - π_base)."""
    so_far = xp.exp(xp.clip(xp.cumsum(log_ratio, axis=1), None, 0.0))
    return so_far * (1.0 - xp.exp(reference_logprobs))


def _taper_tokens(xp: Any, ratios: Ratios, low: float, high: float) -> Array:
    return xp.where(ratios.advantages > 0, 1.0, taper(xp, ratios.log, ratios.reference))


def _mask_tokens(xp: Any, ratios: Ratios, low: float, high: float) -> Array:
    return xp.where(inside(xp.exp(ratios.log), low, high), 1.0, 0.0)


def _clip_tokens(xp: Any, ratios: Ratios, low: float, high: float) -> Array:
    return xp.clip(xp.exp(ratios.log), low, high)


def _sign_aware_tokens(xp: Any, ratios: Ratios, low: float, high: float) -> Array:
    ratio, good, bad = xp.exp(ratios.log), ratios.advantages > 0, ratios.advantages < 0
    return xp.where((good & (ratio > high)) | (bad & (ratio < low)), 0.0, 1.0)


def _every_token(xp: Any, ratios: Ratios, low: float, high: float) -> Array:
    return xp.ones_like(ratios.log)


def _every_trajectory(xp: Any, ratio: Array, low: float, high: float) -> Array:
    return xp.ones_like(ratio)


def _mask_trajectory(xp: Any, ratio: Array, low: float, high: float) -> Array:
    return xp.where(inside(ratio, low, high), 1.0, 0.0)


def _scale_trajectory(xp: Any, ratio: Array, low: float, high: float) -> Array:
    return xp.clip(xp.minimum(ratio / low, high / ratio), 0.0, 1.0)


@dataclass(frozen=True, kw_only=True, slots=True)
class Variant:
    """A token term, a trajectory term, and the trajectory band that goes with them."""

    tokens: TokenTerm
    trajectory: TrajectoryTerm
    band: tuple[float, float] = (0.2, 5.0)
    holds_all: bool = True
    """Whether the KL term holds every answer to the base, or the good ones only."""
    fades: bool = False
    """Whether the push against a bad answer ends by itself, however strong it is."""


VARIANTS: dict[str, Variant] = {
    "tapered": Variant(tokens=_taper_tokens, trajectory=_every_trajectory, holds_all=False, fades=True),
    "filter": Variant(tokens=_mask_tokens, trajectory=_mask_trajectory, band=(0.996, 1.001)),
    "scale": Variant(tokens=_clip_tokens, trajectory=_scale_trajectory, band=(0.996, 1.001)),
    "sign_aware": Variant(tokens=_sign_aware_tokens, trajectory=_mask_trajectory),
    "reinforce": Variant(tokens=_every_token, trajectory=_every_trajectory),
}


def variant_of(objective: str) -> str | None:
    """The variant by which an objective takes ratings; None for one that has its own way.

    Those that take words take ratings as the default does; see `objectives.hindsight`.
    """
    if objective in OBJECTIVES:
        return "tapered"
    return objective if objective in VARIANTS else None


@dataclass(frozen=True, kw_only=True, slots=True)
class MisPo:
    """One variant with its bands; callable as a `goodbot.api.backend.LossFunction`."""

    variant: str
    token_low: float
    token_high: float
    trajectory_low: float
    trajectory_high: float
    kl: float

    @classmethod
    def from_settings(cls, settings: TrainingSettings) -> MisPo:
        """The variant that `variant_of` the objective is; another objective's terms are REINFORCE's."""
        variant = variant_of(settings.objective) or "reinforce"
        low, high = VARIANTS[variant].band
        return cls(
            variant=variant,
            token_low=settings.token_low,
            token_high=settings.token_high,
            trajectory_low=low if settings.trajectory_low is None else settings.trajectory_low,
            trajectory_high=high if settings.trajectory_high is None else settings.trajectory_high,
            kl=settings.kl,
        )

    def coefficients(
        self, xp: Any, log_ratio: Array, reference_logprobs: Array, advantages: Array, mask: Array
    ) -> tuple[Array, dict[str, Array]]:
        """What multiplies A · log π_θ, `(B, R)`, and the acceptance counts.

        `tokens_accepted` counts tokens inside the band; `trajectories_accepted` sums the
        trajectory term over the rollouts (of a mask that is a count, of a scale a sum).
        """
        variant = VARIANTS[self.variant]
        lengths = xp.clip(mask.sum(axis=1), 1.0, None)
        trajectory_ratio = xp.exp((log_ratio * mask).sum(axis=1) / lengths)
        ratios = Ratios(log=log_ratio, reference=reference_logprobs, advantages=advantages[:, None])
        tokens = variant.tokens(xp, ratios, self.token_low, self.token_high)
        trajectory = variant.trajectory(xp, trajectory_ratio, self.trajectory_low, self.trajectory_high)
        accepted = inside(xp.exp(log_ratio), self.token_low, self.token_high)
        counts = {
            "tokens_accepted": xp.where(accepted, mask, 0.0).sum(),
            "trajectories_accepted": trajectory.sum(),
        }
        return tokens * trajectory[:, None] * mask, counts

    def held(self, xp: Any, advantages: Array) -> Array:
        """What multiplies the KL term of each rollout, `(B, 1)`."""
        ones = xp.ones_like(advantages)
        if not VARIANTS[self.variant].holds_all:
            ones = xp.where(advantages > 0, ones, 0.0)
        return ones[:, None]

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
        """Loss (a scalar) and statistics, all *sums* over the batch, so that parts of a batch add
        up.

        `advantages` is `(B,)`, the others `(B, R)`, fp32; `mask` is 1 on response tokens and the
        padding of all arrays must be finite. Statistics: `kl`, `tokens_accepted`,
        `trajectories_accepted`.
        """
        log_ratio = (detach(xp, policy_logprobs) - sampling_logprobs) * mask
        coefficients, counts = self.coefficients(xp, log_ratio, reference_logprobs, advantages, mask)
        gain = (coefficients * advantages[:, None] * policy_logprobs).sum()
        difference = (reference_logprobs - policy_logprobs) * mask
        # Held or not is decided before exp: 0 · exp(a token that has vanished) would be no number.
        hold = k3(xp, difference * self.held(xp, advantages)).sum()
        loss = (self.kl * hold - gain) / normalizer
        kl = k3(xp, xp.clip(detach(xp, difference), None, _MOST_TOLD)).sum()
        return loss, {"kl": kl, **counts}


def k3(xp: Any, difference: Array) -> Array:
    """`e^d - d - 1` of a difference d in nats: never below 0, and 0 at 0."""
    return xp.exp(difference) - difference - 1.0


def detach(xp: Any, array: Array) -> Array:
    """The array as a constant to the gradient; NumPy has none."""
    if hasattr(array, "detach"):
        return array.detach()
    if hasattr(xp, "stop_gradient"):
        return xp.stop_gradient(array)
    return array
