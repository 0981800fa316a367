# SPDX-License-Identifier: Apache-2.0
"""The weight matrices of a decoder's layers, from its `config.json` alone.

What the config cannot tell is known by the declared `model_type`: whether a family's feed-forward
part has a gate, and which of its matrices are stored as one. Norms, and the biases of projections
other than the experts', are left out: a few thousandths of a real model.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

from goodbot.base.errors import ConfigError
from goodbot.base.worded import Worded

_UNGATED = {
    "bloom",
    "falcon",
    "gpt2",
    "gpt_bigcode",
    "gpt_neox",
    "gptj",
    "nemotron",
    "opt",
    "phi",
    "starcoder2",
}
_ONE_QKV = {"bloom", "falcon", "gpt2", "gpt_bigcode", "gpt_neox", "phi3"}
_ONE_GATE_UP = {"glm", "glm4", "phi3"}
HUGE = 1 << 26
"""Above any size of a model: the longest contexts have ten million tokens."""
_MOST_LAYERS = 2000
_RECURRENT = {"linear_attention", "mamba", "mamba2"}
"""Kinds of layers in `layer_types` that have no attention."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Projection:
    """One matrix, or a stack of them, of which a token goes through `active`."""

    outputs: int
    inputs: int
    count: int = 1
    active: int = 1
    adapted: bool = True
    """Whether it gets LoRA: not a router, a convolution or a bias."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Experts:
    """The routed experts of a sparse layer."""

    count: int = 0
    """0 in a dense model."""
    active: int = 1
    """That each token goes through."""

    def rank(self, usual: int) -> int:
        """The rank of each expert's LoRA: usual / active, at least 1.

        So a token meets as many adapter weights in a sparse layer as in a dense one (Schulman et al.
        2025, "LoRA Without Regret").
        """
        return max(1, usual // self.active)


class Sizes:
    """The numbers of a text model's config, by name."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        self.config = config
        self.kind = str(config.get("model_type") or "")

    def get(self, *names: str, default: int = 0) -> int:
        """The first of these that the config has. Raises ConfigError for one that is no size."""
        for name in names:
            value = self.config.get(name)
            if value is None:
                continue
            if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < HUGE:
                raise ConfigError(Worded("the model's config.json has no usable {name}", name=name))
            return value
        return default

    def need(self, *names: str, default: int = 0) -> int:
        """As `get`, but not 0. Raises ConfigError where it is missing."""
        value = self.get(*names, default=default)
        if not value:
            raise ConfigError(Worded("the model's config.json has no usable {name}", name=names[0]))
        return value

    @property
    def hidden(self) -> int:
        """Of the states between the layers."""
        return self.need("hidden_size", "n_embd")

    @property
    def layers(self) -> int:
        """How many, and no more than can be gone through one by one. Raises ConfigError."""
        if (count := self.need("num_hidden_layers", "n_layer")) > _MOST_LAYERS:
            many = "the model's config.json names {count} layers: none has so many"
            raise ConfigError(Worded(many, count=count))
        return count

    @property
    def heads(self) -> int:
        """Of the queries."""
        return self.need("num_attention_heads", "n_head")

    @property
    def experts(self) -> Experts:
        """The routed experts."""
        count = self.get("n_routed_experts", "num_local_experts", "num_experts", "moe_num_experts")
        active = self.get("num_experts_per_tok", "num_experts_per_token", "moe_k", "moe_topk")
        return Experts(count=count, active=max(1, active)) if count > 1 else Experts()

    @property
    def attention(self) -> tuple[int, int, int]:
        """(key and value heads, numbers in a head's query or key, numbers in its value)."""
        if self.get("kv_lora_rank"):
            size = self.need("qk_nope_head_dim") + self.need("qk_rope_head_dim")
            return self.heads, size, self.need("v_head_dim")
        size = self.need("head_dim", default=self.hidden // self.heads or 1)
        return self.need("num_key_value_heads", default=self.heads), size, size

    def recurrent(self, layer: int) -> bool:
        """Whether a layer has a recurrent state in place of attention."""
        if layer < len(self._kinds):
            return self._kinds[layer] in _RECURRENT
        interval = self.get("full_attention_interval")
        return bool(interval) and (layer + 1) % interval != 0

    def sparse(self, layer: int) -> bool:
        """Whether a layer's feed-forward part is a mixture of experts."""
        if not self.experts.count:
            return False
        if layer < len(self._mixed):
            return self._mixed[layer] in ("sparse", 1)
        if self._chosen is not None:
            return layer in self._chosen
        if layer < self.get("first_k_dense_replace") or layer in self._dense_ones:
            return False
        step = self.get("decoder_sparse_step", "interleave_moe_layer_step", default=1) or 1
        return (layer + 1) % step == 0

    @cached_property
    def _kinds(self) -> list[str | int]:
        return self._each("layer_types") or self._each("layers_block_type")

    @cached_property
    def _mixed(self) -> list[str | int]:
        if found := self._each("mlp_layer_types"):
            return found
        one_for_all = isinstance(self.config.get("moe_layer_freq"), int)
        return [] if one_for_all else self._each("moe_layer_freq")

    @cached_property
    def _chosen(self) -> frozenset[str | int] | None:
        return None if self.config.get("moe_layers") is None else frozenset(self._each("moe_layers"))

    @cached_property
    def _dense_ones(self) -> frozenset[str | int]:
        return frozenset(self._each("mlp_only_layers"))

    def _each(self, name: str) -> list[str | int]:
        """A list about layers; empty where there is none. Raises ConfigError for what is no such list."""
        value: Any = self.config.get(name)
        if value is None:
            return []
        found = cast("list[object]", value) if isinstance(value, list) else None
        if found is None or len(found) > _MOST_LAYERS or not all(isinstance(x, str | int) for x in found):
            raise ConfigError(Worded("the model's config.json has no usable {name}", name=name))
        return cast("list[str | int]", found)

    def width(self, layer: int) -> int:
        """Intermediate numbers that a token has in a layer's feed-forward part."""
        if not self.sparse(layer):
            return self.get("shared_intermediate_size") or self._dense()
        return self.experts.active * self._expert() + self._shared()

    def projections(self, layer: int) -> Iterator[Projection]:
        """All matrices of a layer."""
        if self.recurrent(layer):
            yield from self._delta() if self.get("linear_num_value_heads") else self._mamba()
        else:
            yield from self._latent() if self.get("kv_lora_rank") else self._attention()
            if self.get("mamba_d_ssm"):  # both, side by side
                yield from self._mamba()
        if self.sparse(layer):
            yield from self._sparse()
        elif not self.get("shared_intermediate_size"):
            yield from self._feed_forward(self._dense())
        if shared := self.get("shared_intermediate_size"):
            yield from self._feed_forward(shared, fused=True)

    def _attention(self) -> Iterator[Projection]:
        groups, size, _ = self.attention
        queries, keys, hidden = self.heads * size, groups * size, self.hidden
        gated = self.config.get("attn_output_gate", bool(self.get("linear_num_value_heads")))
        outputs = [queries * (2 if gated else 1), keys, keys]
        for one in [sum(outputs)] if self.kind in _ONE_QKV else outputs:
            yield Projection(outputs=one, inputs=hidden)
        yield Projection(outputs=hidden, inputs=queries)

    def _latent(self) -> Iterator[Projection]:
        """Multi-head latent attention."""
        heads, size, values = self.attention
        latent, hidden = self.need("kv_lora_rank"), self.hidden
        narrow = self.get("q_lora_rank")
        if narrow:
            yield Projection(outputs=narrow, inputs=hidden)
        yield Projection(outputs=heads * size, inputs=narrow or hidden)
        yield Projection(outputs=latent + self.need("qk_rope_head_dim"), inputs=hidden)
        yield Projection(outputs=heads * (self.need("qk_nope_head_dim") + values), inputs=latent)
        yield Projection(outputs=hidden, inputs=heads * values)

    def _delta(self) -> Iterator[Projection]:
        """A gated delta net."""
        groups, heads = self.need("linear_num_key_heads"), self.need("linear_num_value_heads")
        keys = groups * self.need("linear_key_head_dim")
        values = heads * self.need("linear_value_head_dim")
        outputs = [2 * keys + 2 * values, 2 * heads]
        if self.kind.startswith("qwen3_5"):
            outputs = [2 * keys + values, values, heads, heads]
        for one in outputs:
            yield Projection(outputs=one, inputs=self.hidden)
        kernel = self.need("linear_conv_kernel_dim")
        yield Projection(outputs=2 * keys + values, inputs=kernel, adapted=False)
        yield Projection(outputs=self.hidden, inputs=values)

    def _mamba(self) -> Iterator[Projection]:
        """Mamba 2."""
        heads = self.need("mamba_n_heads")
        inner = self.get("mamba_d_ssm") or heads * self.need("mamba_d_head")
        mixed = inner + 2 * self.need("mamba_n_groups") * self.need("mamba_d_state")
        yield Projection(outputs=inner + mixed + heads, inputs=self.hidden)
        yield Projection(outputs=mixed, inputs=self.need("mamba_d_conv"), adapted=False)
        yield Projection(outputs=self.hidden, inputs=inner)

    def _feed_forward(self, width: int, *, fused: bool = False) -> Iterator[Projection]:
        outputs = [width] if self.kind in _UNGATED else [width, width]
        fused = fused or self.kind in _ONE_GATE_UP
        for one in [sum(outputs)] if fused else outputs:
            yield Projection(outputs=one, inputs=self.hidden)
        yield Projection(outputs=self.hidden, inputs=width)

    def _sparse(self) -> Iterator[Projection]:
        count, active = self.experts.count, self.experts.active
        width, hidden = self._expert(), self.hidden
        yield Projection(outputs=count, inputs=hidden, adapted=False)  # the router
        for outputs, inputs in ((2 * width, hidden), (hidden, width)):
            yield Projection(outputs=outputs, inputs=inputs, count=count, active=active)
            if self.kind == "gpt_oss":
                yield Projection(outputs=outputs, inputs=1, count=count, active=active, adapted=False)
        if self.get("shared_intermediate_size"):
            return
        if shared := self._shared():
            yield from self._feed_forward(shared)
        if self.get("shared_expert_intermediate_size"):
            yield Projection(outputs=1, inputs=hidden, adapted=False)

    def _dense(self) -> int:
        names = ("intermediate_size_mlp", "intermediate_size", "n_inner")
        return self.need(*names, default=4 * self.hidden)

    def _expert(self) -> int:
        return self.get("moe_intermediate_size") or self.need("intermediate_size")

    def _shared(self) -> int:
        """Intermediate numbers of the experts that every token goes through."""
        own = self.get("shared_expert_intermediate_size", "shared_intermediate_size")
        if own or self.kind == "llama4_text":
            return own or self._expert()
        return self.get("n_shared_experts", "num_shared_experts") * self._expert()
