# SPDX-License-Identifier: Apache-2.0
"""Several workers take one step: each computes its rows of the batch, and what they come to is added up.

Losses and gradients add up over rows, since every token sum is divided by the batch's constant
(`TrainingBatch.normalizer`). So a sum over workers is what one alone would compute, but for rounding. An
objective that compares an answer with those that are read beside it (`kto`, `bco`) sees a worker's own.
"""

# pyright: standard
# (the framework ships no complete types)

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import torch
from goodbot.api.backend import TrainingBatch

from goodbot_training.backends.packing import part

Add = Callable[[torch.Tensor], None]
"""Puts the sum over all workers in the place of one worker's numbers, a vector of fp32."""

_SUMS = ("kl", "loss", "tokens_accepted", "trajectories_accepted")
"""What is told of a step; a worker without a row in it tells nothing, and takes part all the same."""


@dataclass(frozen=True, kw_only=True)
class Share:
    """What one of several workers does."""

    number: int
    """Which one it is, from 0 on."""
    of: int
    add: Add

    def rows(self, batch: TrainingBatch) -> TrainingBatch | None:
        """This worker's part of a batch; None where there are fewer rows than workers."""
        mine = dealt([len(turn.prompt) + len(turn.response) for turn in batch.sequences], self.of)
        return part(batch, mine[self.number]) if mine[self.number] else None

    @torch.no_grad()
    def added(
        self, parameters: Sequence[torch.nn.Parameter], sums: Mapping[str, torch.Tensor]
    ) -> dict[str, torch.Tensor]:
        """Give all parameters the gradient of all workers; returns the sums of all."""
        none = torch.zeros((), device=parameters[0].device)
        gradients = [torch.zeros_like(p) if p.grad is None else p.grad for p in parameters]
        told = torch.stack([sums.get(name, none).float() for name in _SUMS])
        whole = torch.cat([*(gradient.flatten() for gradient in gradients), told])
        self.add(whole)
        *found, told = whole.split([*(parameter.numel() for parameter in parameters), len(_SUMS)])
        for parameter, gradient in zip(parameters, found, strict=True):
            parameter.grad = gradient.view_as(parameter)
        return dict(zip(_SUMS, told.unbind(), strict=True))


def dealt(lengths: Sequence[int], workers: int) -> list[list[int]]:
    """The rows of each worker: as many of each as can be, and of as many tokens."""
    hands: list[list[int]] = [[] for _ in range(workers)]
    for place, row in enumerate(sorted(range(len(lengths)), key=lambda row: -lengths[row])):
        back, seat = divmod(place, workers)
        hands[workers - 1 - seat if back % 2 else seat].append(row)
    return [sorted(hand) for hand in hands]


def through(exchange: Callable[[bytes], bytes]) -> Add:
    """An `Add` of who has no network: `exchange` gives its numbers away, and gets those of all."""

    def add(vector: torch.Tensor) -> None:
        found = bytearray(exchange(vector.cpu().numpy().tobytes()))
        vector.copy_(torch.frombuffer(found, dtype=torch.float32))

    return add


def over_network(numbers: bytes) -> bytes:
    """The sum over the process group that this process is in; the same to the bit for each."""
    vector = torch.frombuffer(bytearray(numbers), dtype=torch.float32)
    torch.distributed.all_reduce(vector)
    return vector.numpy().tobytes()
