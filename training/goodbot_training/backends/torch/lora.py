# SPDX-License-Identifier: Apache-2.0
"""One LoRA projection as one autograd node: no casts, no dropout, no products without a use.

peft's own layer takes five nodes, with an intermediate of the output's size for each. This is the same
function, put in the place of `forward` on the layers that peft has made; adapters of stacks of experts
stay as they are.
"""

# pyright: standard
# (the framework ships no complete types)

from __future__ import annotations

from functools import partial
from typing import Any, cast

import torch
from peft.tuners.lora import Linear
from torch import nn
from torch.nn import functional

from goodbot_training.backends.adapters import AdapterWeights
from goodbot_training.backends.row_adapters import Pass, RowAdapters
from goodbot_training.backends.torch.prepacked import Product, give_up, prepacked
from goodbot_training.backends.torch.targets import NAME, ExpertsLora

Prepared = tuple[AdapterWeights, dict[str, tuple[torch.Tensor, torch.Tensor]]]


def simplify(layer: Any, path: str, row_adapters: RowAdapters) -> None:
    """Give one of peft's LoRA layers our forward pass, if it stands over a matrix that we can read.

    Others keep theirs, and take part in passes of several adapters, but for stacks of experts.
    """
    quantized = type(layer).__name__ == "Linear4bit"
    if quantized or (type(layer) is Linear and type(layer.base_layer) is nn.Linear):
        layer.forward = LoraProjection(layer, path, row_adapters)
    elif not isinstance(layer, ExpertsLora):
        layer.forward = partial(_either, layer, path, row_adapters, layer.forward)


def _either(layer: Any, path: str, row_adapters: RowAdapters, forward: Any, x: torch.Tensor) -> torch.Tensor:
    if row_adapters.now is None:
        return forward(x)
    return _added(layer.base_layer(x), x, path, row_adapters.now)


def _added(y: torch.Tensor, x: torch.Tensor, path: str, now: Pass) -> torch.Tensor:
    """What each row's own adapter adds to `y`, `(…, out)`; nothing asks for its gradient."""
    pair = now.pairs.get(path)
    if pair is None:
        return y
    if now.slots is not None:
        return _by_row(y, x, *pair, now.slots)
    a, b = (part.to(x.dtype) for part in pair)
    narrow = functional.linear(x, a)
    if now.silent is not None:
        _in_order(x, now.silent)
        narrow.view(len(now.silent), -1, len(a)).masked_fill_(now.silent, 0.0)
    y.view(-1, b.shape[1]).addmm_(narrow.view(-1, len(a)), b)
    return y


def _by_row(y: torch.Tensor, x: torch.Tensor, a: torch.Tensor, b: torch.Tensor, slots: Any) -> torch.Tensor:
    """As `_added`; A is `(slots, rank, in)`, B `(slots, rank, out)`."""
    _in_order(x, slots)
    a, b = (part.index_select(0, slots).to(x.dtype) for part in (a, b))
    narrow = torch.bmm(x.reshape(len(slots), -1, x.shape[-1]), a.mT)
    y.view(len(slots), -1, y.shape[-1]).baddbmm_(narrow, b)
    return y


def _in_order(x: torch.Tensor, rows: Any) -> None:
    """`x` is `(B, …, in)`, or all rows' tokens under each other."""
    if len(x) != len(rows) and (x.ndim > 2 or len(x) % len(rows)):
        raise ValueError("the rows have been mixed on the way")


class LoraProjection:
    """The forward pass of a LoRA layer over a matrix."""

    def __init__(self, layer: Any, path: str, row_adapters: RowAdapters) -> None:
        self._layer, self._path, self._row_adapters = layer, path, row_adapters
        self._product, self._trains = _product(layer.base_layer), True

    def prepack(self) -> None:
        """Give the matrix up for one in another layout, if that is faster. Nothing is trained after that."""
        base = self._layer.base_layer
        if type(base) is nn.Linear and (product := prepacked(base)):
            self._product, self._trains = product, False
            give_up(base)

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        layer, now = self._layer, self._row_adapters.now
        if now is None and not layer.disable_adapters:
            a, b = layer.lora_A[NAME].weight, layer.lora_B[NAME].weight
            scale = layer.scaling[NAME]
            if self._trains:
                return cast("Any", _LowRank).apply(x, a, b, layer.base_layer, scale)
            now = Pass(pairs={self._path: (a, (b * scale).T)})
        y = self._product(x)
        return _added(y, x, self._path, now) if now is not None and now.pairs else y


def _product(base: Any) -> Product:
    if isinstance(base, nn.Linear) and base.weight.is_floating_point():
        return partial(functional.linear, weight=base.weight, bias=base.bias)
    return lambda x: functional.linear(x, _weight(base, x.dtype), base.bias)


class _LowRank(torch.autograd.Function):
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
        y = functional.linear(x, _weight(base, x.dtype), base.bias)
        y.view(-1, y.shape[-1]).addmm_(narrow, b.to(x.dtype).T, alpha=scale)
        ctx.save_for_backward(rows, narrow, a, b)
        ctx.base, ctx.scale = base, scale
        return y  # no view: a model may add to it in place

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
    from bitsandbytes.functional import dequantize_4bit  # pyright: ignore[reportMissingImports]

    packed: Any = base.weight
    return dequantize_4bit(packed.data, packed.quant_state).to(dtype)
