# SPDX-License-Identifier: Apache-2.0
"""Log-probs of response tokens from hidden states, without ever holding all logits."""

# pyright: standard
# (the framework ships no complete types)

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from goodbot_training.backends.head import CHUNK, Bend
from goodbot_training.backends.torch.prepacked import Product


@dataclass(frozen=True, kw_only=True)
class Head:
    """The frozen linear map from hidden states to logits, and what bends these."""

    linear: nn.Linear
    bend: Bend
    prepacked: Product | None = None
    """Of `linear`, where nothing is trained any more."""

    def logits(self, hidden: torch.Tensor) -> torch.Tensor:
        """`(N, D)` → `(N, V)`, fp32."""
        return self.bent(self.raw(hidden))

    def raw(self, hidden: torch.Tensor) -> torch.Tensor:
        """Before they are bent; fp32, in memory of their own."""
        if self.prepacked is not None:
            return self.prepacked(hidden)
        weight, bias = self.linear.weight, self.linear.bias
        if hidden.is_cuda and hidden.dtype != torch.float32:
            # Logits that were rounded to bf16 are off by percents in the probabilities.
            logits = torch.mm(hidden, weight.T, out_dtype=torch.float32)
            return logits if bias is None else logits.add_(bias)
        return functional.linear(hidden, weight, bias).float()

    def bent(self, logits: torch.Tensor) -> torch.Tensor:
        """In place."""
        scale, cap = self.bend.scale, self.bend.cap
        if cap is not None:
            return logits.mul_(scale / cap).tanh_().mul_(cap)
        return logits if scale == 1.0 else logits.mul_(scale)


def token_logprobs(
    head: Head, hidden: torch.Tensor, targets: torch.Tensor, temperature: torch.Tensor
) -> torch.Tensor:
    """`(N, D)`, targets `(N,)`, temperature `(N,)` → log softmax(logits / temperature), `(N,)`, fp32.

    The memory beyond the hidden states' own size is that of one chunk of logits, forward and backward.
    """
    result: Any = _TokenLogprobs.apply(hidden, targets, temperature, head)
    return result


class _TokenLogprobs(torch.autograd.Function):
    """The log-prob of a token depends on one row h only, and its slope is known beside it:

        ∂ log p / ∂h = (W[target] - Σ_v p_v W[v]) / T

    So the slopes are taken while the chunk's logits are there, and nothing is computed twice. The
    head is frozen: it gets no gradient.
    """

    @staticmethod
    def forward(
        ctx: Any, hidden: torch.Tensor, targets: torch.Tensor, temperature: torch.Tensor, head: Head
    ) -> torch.Tensor:
        weight, cap = head.linear.weight, head.bend.cap
        wanted = ctx.needs_input_grad[0]
        found: list[torch.Tensor] = []
        slopes = torch.empty_like(hidden) if wanted else None
        rows = max(1, CHUNK // weight.shape[0])
        for start in range(0, len(hidden), rows):
            part = slice(start, start + rows)
            heat, target = temperature[part, None], targets[part, None]
            logits = head.logits(hidden[part])
            steep = 1 - (logits / cap).square() if wanted and cap is not None else None
            logits.div_(heat)
            logits.sub_(logits.amax(1, keepdim=True))
            chosen = logits.gather(1, target)
            mass = logits.exp_().sum(1, keepdim=True)
            found.append((chosen - mass.log()).squeeze(1))
            if slopes is None:
                continue
            scale = head.bend.scale / heat
            slope = logits.mul_(-scale / mass).scatter_add_(1, target, scale)
            if steep is not None:
                slope.mul_(steep)
            slopes[part] = slope.to(weight.dtype) @ weight
        if slopes is not None:
            ctx.save_for_backward(slopes)
        return torch.cat(found)

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        (slopes,) = ctx.saved_tensors
        return gradients[0][:, None].to(slopes.dtype) * slopes, None, None, None


def find_head(causal: Any, hidden: torch.Tensor, whole: torch.Tensor, bends: list[Bend]) -> Any:
    """The head that gives the model's own logits `whole` from `hidden`; None where none does.

    `hidden` is `(N, D)`, `whole` `(N, V)`. Then logits are more than we know how to make.
    """
    linear = causal.get_output_embeddings()
    if type(linear) is not nn.Linear or linear.weight.shape[0] != whole.shape[-1]:
        return None
    rough = hidden.dtype != torch.float32
    for bend in reversed(bends):
        head = Head(linear=linear, bend=bend)
        found = head.logits(hidden)
        if torch.allclose(found, whole.float(), atol=1e-3, rtol=1e-2 if rough else 1e-3):
            return head
    return None
