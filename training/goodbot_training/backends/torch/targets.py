# SPDX-License-Identifier: Apache-2.0
"""Which weights of a transformers model get LoRA, and the layers that hold it.

Found by structure, never by a name: in the text decoder every linear projection, and every stack of
experts, but not the head, nor a router, nor what stands beside the decoder (vision and audio towers).
"""

# pyright: standard
# (the framework ships no complete types)

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from peft import LoraConfig
from peft.tuners.lora import LoraLayer, LoraModel, ParamWrapper
from torch import nn
from transformers.integrations.moe import ALL_EXPERTS_FUNCTIONS, _grouped_mm, grouped_mm_experts_forward
from transformers.modeling_layers import GradientCheckpointingLayer
from transformers.pytorch_utils import Conv1D

from goodbot_training.backends.layout import looking_around

NAME = "default"  # peft's name of the one adapter that we keep in place
_EXPERTS = "low_rank"  # our name among the ways in which transformers runs experts
_ALIGNED = 8  # grouped matrix products want rows of a multiple of 16 bytes


def find(causal: Any, experts: int = 0) -> list[str]:
    """Paths of the projections and, of stacks of experts, of the parameters, in the model's order.

    `experts`: how many a layer has by the model's config; 0 for a dense model.
    """
    decoder, head = causal.get_decoder(), causal.get_output_embeddings()
    inside = {id(module) for module in decoder.modules()} - {id(head)}
    modules = {path: m for path, m in causal.named_modules() if id(m) in inside}
    stacks = {path: _stacks(module, experts) for path, module in modules.items()}
    blocks = [path.rpartition(".")[0] for path, names in stacks.items() if names]
    found: list[str] = []
    for path, module in modules.items():
        found += [f"{path}.{name}" for name in stacks[path]]
        if isinstance(module, nn.Linear | Conv1D):
            routes = _size(module)[0] in (1, experts)
            if not (routes and any(path.startswith(f"{block}.") for block in blocks)):
                found.append(path)
    return found


def inject(causal: Any, rank: int, experts: int = 0) -> dict[str, LoraLayer]:
    """Freeze the model and put a LoRA layer without effect on every target: path → layer."""
    causal.requires_grad_(False)
    config = LoraConfig(r=rank, lora_alpha=rank, task_type="CAUSAL_LM")
    layers: dict[str, LoraLayer] = {}
    modules = dict(causal.named_modules())
    for path in find(causal, experts):
        place, _, name = path.rpartition(".")
        if path in modules:
            # Quantized layers are told by their type; each library has a layer of its own in peft.
            layer = LoraModel._create_new_module(  # noqa: SLF001 - peft offers it under no other name
                _oriented(config, modules[path]),
                NAME,
                modules[path],
                device_map=None,
                r=rank,
                lora_alpha=rank,
                loaded_in_4bit=getattr(causal, "is_loaded_in_4bit", False),
                loaded_in_8bit=getattr(causal, "is_loaded_in_8bit", False),
            )
            target = path
        else:
            within = causal.get_submodule(place)
            layer = ExpertsLora(within, NAME, name, config=config, r=rank, lora_alpha=rank)
            target = place
        outside, _, own = target.rpartition(".")
        setattr(causal.get_submodule(outside), own, layer)
        layers[path] = layer
    if any(isinstance(layer, ExpertsLora) and layer.native for layer in layers.values()):
        causal.set_experts_implementation(_EXPERTS)
    return layers


def attention(causal: Any, trained: Collection[str]) -> set[str]:
    """See `layout.looking_around`."""
    modules = dict(causal.named_modules())
    layers = [path for path, m in modules.items() if isinstance(m, GradientCheckpointingLayer)]
    calls = {path: module.forward for path, module in modules.items()}
    return looking_around(calls, layers, trained)


def shape(layer: Any) -> tuple[int, ...]:
    """`(out, in)`, or `(experts, out, in)`."""
    rows, columns = int(layer.out_features), int(layer.in_features)
    return (layer.num_experts, rows, columns) if isinstance(layer, ExpertsLora) else (rows, columns)


class ExpertsLora(ParamWrapper):
    """LoRA on a stack of experts; A is kept as `(experts, r, in)`, B as `(experts, out, r)`.

    peft adds B·A to the weights, which copies all experts in every pass, and in bf16 rounds small
    updates away. Where transformers lets us, the product goes the narrow way instead.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        a, b = self._pair(NAME)
        a.data = a.data.reshape(self.num_experts, -1, a.shape[-1])
        b.data = b.data.new_zeros(self.num_experts, b.shape[0], a.shape[1])

    @property
    def native(self) -> bool:
        """Whether transformers runs these experts through its interface."""
        return hasattr(self.get_base_layer(), "_apply_gate")

    def get_delta_factors(self, adapter_name: str) -> tuple[torch.Tensor, torch.Tensor, float]:
        """As in peft, from weights in our layout."""
        a, b = self._pair(adapter_name)
        left, right = (b, a) if self._did_swap_in_out_features else (a.mT, b.mT)
        dtype = self.get_param().dtype
        return left.to(dtype), right.to(dtype), self.scaling[adapter_name]

    def _pair(self, name: str) -> tuple[torch.Tensor, torch.Tensor]:
        halves: list[Any] = [self.lora_A[name], self.lora_B[name]]
        return halves[0].weight, halves[1].weight

    @contextmanager
    def _activate_lora(self, active_adapters: list[str]) -> Iterator[None]:
        if not self.native:
            with super()._activate_lora(active_adapters):
                yield
            return
        experts = self.get_base_layer()
        before = getattr(experts, _EXPERTS, {})
        ours = (*self._pair(NAME), self.scaling[NAME])
        setattr(experts, _EXPERTS, before | {self.parameter_name: ours})
        try:
            yield
        finally:
            setattr(experts, _EXPERTS, before)


def experts_forward(
    experts: Any, hidden: torch.Tensor, index: torch.Tensor, weight: torch.Tensor
) -> torch.Tensor:
    """`(T, D)` through the k experts of each token; `index` and `weight` are `(T, k)`.

    As transformers' own, which it is without an adapter, with `scale · B A x` added to each product.
    """
    low_rank = getattr(experts, _EXPERTS, {})
    if not low_rank:
        return grouped_mm_experts_forward(experts, hidden, index, weight)
    chosen, order = index.reshape(-1).sort(stable=True)
    ends = torch.bincount(chosen, minlength=experts.num_experts).cumsum(0, dtype=torch.int32)

    def project(name: str, x: torch.Tensor) -> torch.Tensor:
        base = getattr(experts, name)
        y = _grouped(x, base if experts.is_transposed else base.mT, ends)
        if experts.has_bias:
            y = y + getattr(experts, f"{name}_bias")[chosen]
        if name in low_rank:
            a, b, scale = low_rank[name]
            narrow = _grouped(x, _aligned(a.to(x.dtype), 1).mT, ends)
            y = y + scale * _grouped(narrow, _aligned(b.to(x.dtype), 2).mT, ends)
        return y

    rows = hidden[order // index.shape[1]]
    if experts.has_gate:
        states = experts._apply_gate(project("gate_up_proj", rows))  # noqa: SLF001 - as above
    else:
        states = experts.act_fn(project("up_proj", rows))
    states = project("down_proj", states)
    if experts.has_post_expert_norm:
        states = experts.post_expert_norm(states)
    states = states * weight.reshape(-1)[order, None]
    back = states[order.argsort()].view(*index.shape, -1)
    return back.sum(1).to(hidden.dtype)


ALL_EXPERTS_FUNCTIONS.register(_EXPERTS, experts_forward)


def _grouped(x: torch.Tensor, weight: torch.Tensor, ends: torch.Tensor) -> torch.Tensor:
    """Rows `(S, in)`, sorted by expert, times `(experts, in, out)`."""
    return _grouped_mm(x, weight, ends)


def _aligned(weight: torch.Tensor, axis: int) -> torch.Tensor:
    missing = -weight.shape[axis] % _ALIGNED
    return nn.functional.pad(weight, (0, missing) if axis == 2 else (0, 0, 0, missing))


def _stacks(module: nn.Module, experts: int) -> list[str]:
    """The names of the module's own parameters that hold a matrix for each expert."""
    if experts < 2 or isinstance(module, nn.Conv1d):
        return []
    return [
        name
        for name, parameter in module.named_parameters(recurse=False)
        if parameter.ndim == 3 and parameter.shape[0] == experts and parameter.is_floating_point()
    ]


def _size(module: Any) -> tuple[int, int]:
    """(out, in)."""
    if isinstance(module, Conv1D):
        return module.weight.shape[1], module.weight.shape[0]
    return module.out_features, module.in_features


def _oriented(config: LoraConfig, module: nn.Module) -> LoraConfig:
    config.fan_in_fan_out = isinstance(module, Conv1D)
    return config
