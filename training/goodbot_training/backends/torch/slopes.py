# SPDX-License-Identifier: Apache-2.0
"""How a loss changes with each log-prob: all that whoever computes the gradient has to be told of it."""

# pyright: standard
# (the framework ships no complete types)

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from goodbot.api.backend import LossFunction, TrainingBatch

if TYPE_CHECKING:
    from goodbot.api.step import Floats


def slopes(
    batch: TrainingBatch, policy_logprobs: Floats, loss: LossFunction
) -> tuple[dict[str, float], Floats]:
    """The sums that the loss reports, and ∂L / ∂ log π of each response token, `(B, R)`, 0 on padding."""
    policy = torch.tensor(policy_logprobs, dtype=torch.float32, requires_grad=True)
    given = [
        torch.as_tensor(array)
        for array in (batch.sampling_logprobs, batch.reference_logprobs, batch.advantages, batch.mask)
    ]
    words = {} if batch.hindsight is None else {"hindsight": torch.as_tensor(batch.hindsight)}
    value: Any
    value, statistics = loss(torch, policy, *given, batch.normalizer, **words)
    value.backward()
    found: dict[str, Any] = {"loss": value.detach(), **statistics}
    slope = torch.zeros_like(policy) if policy.grad is None else policy.grad
    return {name: float(one) for name, one in found.items()}, (slope * given[3]).numpy()
