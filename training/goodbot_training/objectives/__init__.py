"""The objectives by name, behind one interface: `goodbot.backend.LossFunction`.

An objective is called as `loss(xp, policy_logprobs, sampling_logprobs, reference_logprobs,
advantages, mask, normalizer)` and returns the loss and the statistics that `MisPo.__call__`
describes. Today all are variants of MIS-PO; others (KTO, good-only SFT) join here.
"""

from __future__ import annotations

from goodbot.backend import LossFunction

from goodbot_training.mispo import TERMS, MisPo
from goodbot_training.types import TrainingSettings

NAMES: tuple[str, ...] = tuple(TERMS)


def make_objective(settings: TrainingSettings) -> LossFunction:
    """The objective that `settings.objective` names."""
    return MisPo.from_settings(settings)


__all__ = ["NAMES", "make_objective"]
