# SPDX-License-Identifier: Apache-2.0
"""Muon in single precision: torch's own iterates in bfloat16, which many CPUs only emulate, at a tenth."""

# pyright: standard
# (the framework ships no complete types)

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

_COEFFICIENTS = (3.4445, -4.775, 2.0315)
_STEPS, _MOMENTUM = 5, 0.95


class Muon(torch.optim.Optimizer):
    """As `torch.optim.Muon` without weight decay; matrices of one shape go together."""

    def __init__(self, matrices: Sequence[Tensor], lr: float) -> None:
        super().__init__(matrices, {"lr": lr})

    @torch.no_grad()
    def step(self, closure: Any = None) -> Any:
        """One update of every matrix; `closure` is not called."""
        for group in self.param_groups:
            by_shape: dict[torch.Size, list[Tensor]] = {}
            for matrix in group["params"]:
                by_shape.setdefault(matrix.shape, []).append(matrix)
            for (rows, columns), matrices in by_shape.items():
                update = _orthogonal(torch.stack([self._update(matrix) for matrix in matrices]))
                rate = group["lr"] * max(1.0, rows / columns) ** 0.5
                for matrix, change in zip(matrices, update, strict=True):
                    matrix.add_(change, alpha=-rate)

    def _update(self, matrix: Tensor) -> Tensor:
        state, grad = self.state[matrix], matrix.grad
        assert grad is not None  # noqa: S101
        if not state:
            state["momentum"] = torch.zeros_like(matrix)
        state["momentum"].lerp_(grad, 1 - _MOMENTUM)
        return grad.lerp(state["momentum"], _MOMENTUM)


def _orthogonal(matrices: Tensor) -> Tensor:
    """The nearest orthogonal matrices, roughly, of `(n, rows, columns)`, by Newton and Schulz."""
    tall = matrices.shape[1] > matrices.shape[2]
    found = matrices.mT if tall else matrices
    found = found / found.norm(dim=(1, 2), keepdim=True).clamp(min=1e-7)
    a, b, c = _COEFFICIENTS
    for _ in range(_STEPS):
        gram = found @ found.mT
        found = torch.baddbmm(found, torch.baddbmm(gram, gram, gram, beta=b, alpha=c), found, beta=a)
    return found.mT if tall else found
