"""One LoRA projection as one autograd node: no casts, no dropout, no products without a use.

peft's own layer takes five nodes, with an intermediate of the output's size for each. This is the same
function, put in the place of `forward` on the layers that peft has made; adapters of stacks of experts
stay as they are.
"""

# pyright: standard
# (the framework ships no complete types)

from __future__ import annotations

from functools import partial
from typing import Any

import torch
from peft.tuners.lora import Linear
from torch import nn
from torch.nn import functional

from goodbot_training.backends.torch.targets import NAME


def simplify(layer: Any) -> None:
    """Give one of peft's LoRA layers our forward pass, if it stands over a matrix that we can read."""
    quantized = type(layer).__name__ == "Linear4bit"
    if quantized or (type(layer) is Linear and type(layer.base_layer) is nn.Linear):
        layer.forward = partial(_forward, layer)


def _forward(layer: Any, x: torch.Tensor) -> torch.Tensor:
    if layer.disable_adapters:
        return functional.linear(x, _weight(layer.base_layer, x.dtype), layer.base_layer.bias)
    a, b = layer.lora_A[NAME].weight, layer.lora_B[NAME].weight
    result: Any = _Projection.apply(x, a, b, layer.base_layer, layer.scaling[NAME])
    return result


class _Projection(torch.autograd.Function):
    """y = W x + bias + s · B (A x) with a frozen W; x is `(…, in)`, A `(r, in)`, B `(out, r)`.

    A and B are kept in fp32 and multiplied in the type of x. With g = ∂L/∂y:
    ∂B = s · gᵀ (A x), ∂A = s · (g B)ᵀ x, ∂x = g W + s · (g B) A.
    """

    @staticmethod
    def forward(
        ctx: Any, x: torch.Tensor, a: torch.Tensor, b: torch.Tensor, base: Any, scale: float
    ) -> torch.Tensor:
        rows = x.reshape(-1, x.shape[-1])
        narrow = rows @ a.to(x.dtype).T
        y = functional.linear(rows, _weight(base, x.dtype), base.bias)
        y.addmm_(narrow, b.to(x.dtype).T, alpha=scale)
        ctx.save_for_backward(rows, narrow, a, b)
        ctx.base, ctx.scale = base, scale
        return y.view(*x.shape[:-1], -1)

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        rows, narrow, a, b = ctx.saved_tensors
        g = gradients[0].reshape(-1, b.shape[0])
        back = g @ b.to(g.dtype) * ctx.scale
        for_b = (g.T @ narrow).to(b.dtype) * ctx.scale
        for_a = (back.T @ rows).to(a.dtype)
        for_x = None
        if ctx.needs_input_grad[0]:
            for_x = g @ _weight(ctx.base, g.dtype)
            for_x.addmm_(back, a.to(g.dtype))
            for_x = for_x.view(*gradients[0].shape[:-1], -1)
        return for_x, for_a, for_b, None, None


def _weight(base: Any, dtype: torch.dtype) -> torch.Tensor:
    """The frozen matrix; that of a 4-bit layer is unpacked for the moment of one product."""
    if isinstance(base, nn.Linear) and base.weight.is_floating_point():
        return base.weight
    from bitsandbytes.functional import (  # pyright: ignore[reportMissingImports]
        dequantize_4bit,
    )

    packed: Any = base.weight
    return dequantize_4bit(packed.data, packed.quant_state).to(dtype)
