# SPDX-License-Identifier: Apache-2.0
"""Which weights of an mlx-lm model get LoRA, and the layers that hold it.

Found by structure, never by a name: in the decoder's layers every linear projection and every stack
of experts, but no router. The paths and shapes are those of the checkpoint as transformers sees it,
so that an adapter fits both: where mlx-lm splits a matrix, its parts share one A.
"""

# pyright: standard
# (the framework ships no complete types)

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

import mlx.core as mx
import mlx.nn as nn
import numpy as np
from mlx.utils import tree_unflatten
from mlx_lm.models.mla import MultiLinear, QuantizedMultiLinear
from mlx_lm.models.switch_layers import QuantizedSwitchLinear, SwitchLinear
from mlx_lm.tuner.lora import LoRALinear, LoRASwitchLinear

from goodbot_training.backends.layout import looking_around
from goodbot_training.backends.row_adapters import RowAdapters

_LINEAR: Any = (nn.Linear, nn.QuantizedLinear)
_SWITCH: Any = (SwitchLinear, QuantizedSwitchLinear)
_HEADS: Any = (MultiLinear, QuantizedMultiLinear)
_STACK = "experts"
_NAMES = {"fc1": "up_proj", "fc2": "down_proj"}
"""Of experts without a gate: mlx-lm's name → transformers'."""


def inject(causal: Any, rank: int, row_adapters: RowAdapters) -> dict[str, Any]:
    """Freeze the model and put a LoRA layer without effect on every target: path → layer."""
    causal.freeze()
    inside = {id(module) for layer in causal.layers for _, module in layer.named_modules()}
    modules = {p: m for p, m in sorted(causal.named_modules()) if id(m) in inside}
    routers = _routers(modules)
    injection = _Injection(causal, rank, row_adapters)
    for path, module in modules.items():
        if isinstance(module, _LINEAR):
            if not routers(path, module):
                injection.projection(path, module)
        else:
            injection.experts(path, module)
            injection.latent(path, module)
    causal.update_modules(tree_unflatten(injection.wrapped))
    return injection.layers


def _routers(modules: Mapping[str, Any]) -> Callable[[str, Any], bool]:
    """Whether a projection beside a stack of experts is what chooses among those, or gates them all."""
    sizes = {
        path.rpartition(".")[0]: children[0].num_experts
        for path, module in modules.items()
        if (children := [m for m in module.children().values() if isinstance(m, _SWITCH)])
    }

    def is_one(path: str, module: Any) -> bool:
        outputs, _ = _shape_of(module)
        return any(path.startswith(f"{block}.") and outputs in (1, n) for block, n in sizes.items())

    return is_one


class _Injection:
    """LoRA layers on their way into a model."""

    def __init__(self, causal: Any, rank: int, row_adapters: RowAdapters) -> None:
        self._causal, self._rank, self._row_adapters = causal, rank, row_adapters
        self.layers: dict[str, Any] = {}
        """By their path in transformers' checkpoint."""
        self.wrapped: list[tuple[str, Any]] = []
        """What takes the place of a module, by its path here."""

    def _wrap(self, path: str, layer: Any) -> Any:
        layer.linear.freeze()
        self.wrapped.append((path, layer))
        return layer

    def projection(self, path: str, module: Any) -> None:
        """A plain matrix."""
        outputs, inputs = _shape_of(module)
        layer = LoraProjection(inputs, outputs, r=self._rank, scale=1.0)
        layer.linear, layer.path, layer.row_adapters = module, path, self._row_adapters
        self.layers[path] = self._wrap(path, layer)

    def experts(self, path: str, module: Any) -> None:
        """The stacks of experts in a module, where there are some."""
        switches = {k: child for k, child in module.children().items() if isinstance(child, _SWITCH)}
        stack = f"{path.rpartition('.')[0]}.{_STACK}"
        if {"gate_proj", "up_proj"} <= switches.keys():
            gate, up = switches.pop("gate_proj"), switches.pop("up_proj")
            shared = SharedExperts(gate, self._rank)
            order = _order(self._causal, stack, gate.output_dims)
            self._wrap(f"{path}.gate_proj", ExpertsPart(gate, shared, order[0]))
            self._wrap(f"{path}.up_proj", ExpertsPart(up, shared, order[1]))
            module.gate_up_proj = self.layers[f"{stack}.gate_up_proj"] = shared
        for name in sorted(switches, reverse=True):  # up before down, as transformers has them
            layer = LoRASwitchLinear.from_base(switches[name], r=self._rank, scale=1.0)
            self.layers[f"{stack}.{_NAMES.get(name, name)}"] = self._wrap(f"{path}.{name}", layer)

    def latent(self, path: str, module: Any) -> None:
        """The two halves of a matrix from the latent to keys and values, where they are apart."""
        embed, unembed = (module.children().get(name) for name in ("embed_q", "unembed_out"))
        if isinstance(embed, _HEADS) and isinstance(unembed, _HEADS):
            shared = SharedLatent(_shape_of(embed), _shape_of(unembed), self._rank)
            self._wrap(f"{path}.embed_q", LatentPart(embed, shared, queries=True))
            self._wrap(f"{path}.unembed_out", LatentPart(unembed, shared, queries=False))
            module.kv_b_proj = self.layers[f"{path}.kv_b_proj"] = shared


def attention(causal: Any, trained: Collection[str]) -> set[str]:
    """See `layout.looking_around`."""
    modules = dict(causal.named_modules())
    inside = {id(layer) for layer in causal.layers}
    layers = [path for path, module in modules.items() if id(module) in inside]
    calls = {path: type(module).__call__ for path, module in modules.items()}
    return looking_around(calls, layers, trained)


def shape(layer: Any) -> tuple[int, ...]:
    """`(out, in)`, or `(experts, out, in)`."""
    a, b = layer.lora_a.shape, layer.lora_b.shape
    return (b[1], a[0]) if len(a) == 2 else (a[0], b[1], a[2])


def turned(weight: np.ndarray) -> np.ndarray:
    """A or B between PEFT's orientation and mlx-lm's: only plain projections are transposed."""
    return np.ascontiguousarray(weight.T if weight.ndim == 2 else weight)


class LoraProjection(LoRALinear):
    """mlx-lm's, without the products that change nothing while the base speaks.

    In a pass of several adapters each row takes its own.
    """

    path: str
    row_adapters: RowAdapters

    def __call__(self, x: Any) -> Any:
        now = self.row_adapters.now
        if now is None:
            return super().__call__(x) if self.scale else self.linear(x)
        y = self.linear(x)
        pair = now.pairs.get(self.path)
        if pair is None:
            return y
        a, b = pair
        rows = now.silent if now.slots is None else now.slots
        if rows is not None and (len(rows) != len(x) or x.ndim != 3):
            raise ValueError("the rows have been mixed on the way")
        if now.slots is not None:
            narrow = mx.gather_mm(x.astype(a.dtype), a.swapaxes(1, 2), rhs_indices=now.slots)
            return y + mx.gather_mm(narrow, b, rhs_indices=now.slots).astype(y.dtype)
        narrow = x @ a.T
        if now.silent is not None:
            narrow = mx.where(now.silent, 0.0, narrow)
        return y + (narrow @ b).astype(y.dtype)


class SharedExperts(nn.Module):
    """LoRA on `[gate; up]` of all experts, which mlx-lm keeps apart: A `(E, r, in)`, B `(E, out, r)`."""

    def __init__(self, gate: Any, rank: int) -> None:
        super().__init__()
        self.scale = 1.0
        self.lora_a = mx.zeros((gate.num_experts, rank, gate.input_dims))
        self.lora_b = mx.zeros((gate.num_experts, 2 * gate.output_dims, rank))


class ExpertsPart(nn.Module):
    """The gate, or the up projection, with its rows of the shared LoRA."""

    def __init__(self, linear: Any, shared: SharedExperts, rows: slice) -> None:
        super().__init__()
        self.linear = linear
        self._shared = (shared,)  # in a tuple: a child would be counted twice
        self._rows = rows

    def __call__(self, x: Any, indices: Any, sorted_indices: bool = False) -> Any:
        shared = self._shared[0]
        y = self.linear(x, indices, sorted_indices=sorted_indices)
        z = x.astype(shared.lora_a.dtype)
        for weight in (shared.lora_a, shared.lora_b[:, self._rows]):
            z = mx.gather_mm(z, weight.swapaxes(-1, -2), rhs_indices=indices, sorted_indices=sorted_indices)
        return y + (shared.scale * z).astype(y.dtype)


class SharedLatent(nn.Module):
    """LoRA on the projection from the latent of MLA to keys and values, as one matrix.

    mlx-lm keeps the rows of each head apart, those of the keys transposed.
    """

    def __init__(self, keys: tuple[int, ...], values: tuple[int, ...], rank: int) -> None:
        super().__init__()
        self.scale = 1.0
        self.heads, self.latent, self.size = keys
        self.lora_a = mx.zeros((self.latent, rank))
        self.lora_b = mx.zeros((rank, self.heads * (self.size + values[1])))


class LatentPart(nn.Module):
    """The keys' or the values' part, with its rows of the shared LoRA."""

    def __init__(self, linear: Any, shared: SharedLatent, *, queries: bool) -> None:
        super().__init__()
        self.linear = linear
        self._shared = (shared,)
        self._queries = queries

    def __call__(self, x: Any, transpose: bool = True) -> Any:
        shared = self._shared[0]
        y = self.linear(x, transpose)
        rows = shared.lora_b.T.reshape(shared.heads, -1, shared.lora_b.shape[0])
        b = rows[:, : shared.size] if self._queries else rows[:, shared.size :]
        inward = self._queries == transpose
        z = x.astype(b.dtype)
        z = (z @ b) @ shared.lora_a.T if inward else (z @ shared.lora_a) @ b.swapaxes(-1, -2)
        return y + (shared.scale * z).astype(y.dtype)


def _order(causal: Any, stack: str, size: int) -> tuple[slice, slice]:
    """Which rows of the checkpoint's `[gate; up]` are the gate's: asked of mlx-lm's own conversion."""
    try:
        probe = {f"{stack}.gate_up_proj_bias": mx.arange(2 * size)}
        rows = causal.sanitize(probe)[f"{stack}.gate_proj.bias"].tolist()
    except (AttributeError, KeyError, TypeError, ValueError):
        rows = []
    if rows == list(range(0, 2 * size, 2)):
        return slice(0, None, 2), slice(1, None, 2)
    return slice(0, size), slice(size, None)


def _shape_of(module: Any) -> tuple[int, ...]:
    """Of the weight, unpacked: `(out, in)`, per head `(heads, out, in)`."""
    *rows, columns = module.weight.shape
    packed = isinstance(module, nn.QuantizedLinear | QuantizedMultiLinear)
    return (*rows, columns * 32 // module.bits if packed else columns)
