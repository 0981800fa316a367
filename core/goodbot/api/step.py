# SPDX-License-Identifier: Apache-2.0
"""What one optimizer step takes and what it reports; `backend` has the contract of what takes it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from goodbot.api.sampler import TokenizedTurn

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float32]


@dataclass(frozen=True, kw_only=True, slots=True)
class LoraSettings:
    """The shape of an adapter: all linear projections of every layer."""

    rank: int = 8
    alpha: float = 16.0


@dataclass(frozen=True, kw_only=True, slots=True)
class OptimizerSettings:
    """AdamW, no weight decay by default, a linear warm-up and a linear decay."""

    learning_rate: float = 3e-3
    attention_rate: float = 1.0
    """Times that where the model looks at other tokens: attention, or what stands in its place."""
    damping: float = 0.0
    """How much weights of small gradients are held back; 0 is AdamW. A backend's own affair: see
    `goodbot_training.backends.pace`."""
    warmup_steps: int = 0
    decay_steps: int = 0
    """The rate falls in a line to nothing over so many steps; 0: it stays."""
    weight_decay: float = 0.0
    max_grad_norm: float = 1.0
    tokens_per_forward: int = 8192
    """Padded tokens of one forward pass; a larger batch is cut up and its gradients added."""
    recompute: bool = False
    """Keep one activation a layer and compute the others again for the gradient: less memory for
    a third more time."""

    def rate_at(self, step: int) -> float:
        """The learning rate of the `step`-th step taken, counted from 1."""
        warm = min(1.0, step / self.warmup_steps) if self.warmup_steps else 1.0
        left = max(0.0, 1.0 - (step - 1) / self.decay_steps) if self.decay_steps else 1.0
        return self.learning_rate * warm * left


@dataclass(frozen=True, kw_only=True)
class TrainingBatch:
    """One optimizer step's rollouts, padded to the right. B rollouts, R response tokens.

    Arrays are NumPy; a backend converts them. `mask` is 1 on real response tokens.
    """

    sequences: tuple[TokenizedTurn, ...]
    temperature: tuple[float, ...]
    sampling_logprobs: Floats
    """`(B, R)`: by the policy that wrote the answer."""
    reference_logprobs: Floats
    """`(B, R)`: by the frozen base."""
    advantages: Floats
    """`(B,)`"""
    mask: Floats
    """`(B, R)`"""
    normalizer: float = field(default=1.0)
    """The constant N that divides every token sum (never the answer's own length)."""
    hindsight: Floats | None = None
    """`(B, R)`: what people's words say for (above 0) or against each token, nats times the item's weight; 0
    where nobody said any. None: nobody did, or the objective takes none."""

    @property
    def teaches(self) -> bool:
        """Whether anything in it is for or against an answer."""
        return bool(self.advantages.any() or (self.hindsight is not None and self.hindsight.any()))


LossFunction = Callable[..., "tuple[object, dict[str, object]]"]
"""`loss(xp, policy_logprobs, sampling_logprobs, reference_logprobs, advantages, mask, normalizer)`.

`xp` is the array namespace (`torch`, `mlx.core`, `numpy`), the arrays are its own: `(B, R)`, fp32,
and advantages `(B,)`. Returns the loss, a scalar, and the sums `kl`, `tokens_accepted` and
`trajectories_accepted`; all four add up over parts of a batch. Where `TrainingBatch.hindsight` is there,
it is given, too, by that name. See `goodbot_training.objectives`.
"""


@dataclass(frozen=True, kw_only=True)
class StepStats:
    """One optimizer step."""

    loss: float
    kl: float
    """Mean k3 estimate of the divergence from the base, nats a token."""
    token_acceptance: float
    """The part of the tokens whose importance ratio lies inside the token band."""
    trajectory_acceptance: float
    """Mean of the objective's trajectory term; 1 for one that has no band for whole answers."""
    grad_norm: float
    """Before clipping."""
    tokens: int = 0
    """Response tokens of the batch."""
    skipped: bool = False

    @classmethod
    def nothing(cls) -> StepStats:
        """A batch that was skipped, since it teaches nothing."""
        return cls(loss=0, kl=0, token_acceptance=0, trajectory_acceptance=0, grad_norm=0, skipped=True)

    @classmethod
    def of(cls, batch: TrainingBatch, sums: Mapping[str, float], grad_norm: float) -> StepStats:
        """Make the figures of a step.

        Args:
            batch: What the step learnt from.
            sums: What a `LossFunction` gave, added up over the parts of the batch.
            grad_norm: The norm of the gradient before clipping.

        Returns:
            The means over its tokens and answers.
        """
        tokens = float(batch.mask.sum())
        return cls(
            loss=sums["loss"],
            kl=sums["kl"] / tokens,
            token_acceptance=sums["tokens_accepted"] / tokens,
            trajectory_acceptance=sums["trajectories_accepted"] / len(batch.sequences),
            grad_norm=grad_norm,
            tokens=int(tokens),
        )
