# SPDX-License-Identifier: Apache-2.0
"""A model's shape, read from its own `config.json`: how many numbers it has, and whether it learns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, cast

from goodbot.api.projections import HUGE, Experts, Projection, Sizes

__all__ = ["Architecture", "Experts", "context_of", "doubt", "experts", "read", "sizes_of", "unusable"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Architecture:
    """A decoder of transformer layers; sizes in numbers, not bytes."""

    model_type: str
    hidden: int
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    intermediate: int
    """Of the widest feed-forward part, as one token sees it: of the experts, those that it meets."""
    vocabulary: int
    tied: bool
    """Whether the output head is the embedding."""
    context: int
    """Tokens."""
    kv: int
    """Numbers in the KV cache for one token."""
    experts: Experts
    projections: tuple[Projection, ...]
    """The matrices of all layers."""

    @property
    def body(self) -> int:
        """Weights of the layers, without embedding and head (norms left out)."""
        return sum(p.outputs * p.inputs * p.count for p in self.projections)

    @property
    def head(self) -> int:
        """Weights of the output head."""
        return self.hidden * self.vocabulary

    @property
    def parameters(self) -> int:
        """All weights."""
        return self.body + self.head * (1 if self.tied else 2)

    @property
    def active_body(self) -> int:
        """Weights of the layers that one token is multiplied with."""
        return sum(p.outputs * p.inputs * p.active for p in self.projections)

    @property
    def active(self) -> int:
        """Weights that one token is multiplied with: of the experts, those that it meets."""
        return self.active_body + self.head

    def lora(self, rank: int) -> int:
        """Weights of an adapter on all projections of every layer; experts share the rank."""
        own = self.experts.rank(rank)
        return sum(
            (p.outputs + p.inputs) * p.count * (own if p.count > 1 else rank)
            for p in self.projections
            if p.adapted
        )


def read(config: Mapping[str, Any]) -> Architecture:
    """The architecture in a `config.json`. Raises ConfigError where a number is missing."""
    text = _text(config)
    sizes = Sizes(text)
    hidden, layers = sizes.hidden, sizes.layers
    kv_heads, head_dim, value_dim = sizes.attention
    attending = [layer for layer in range(layers) if not sizes.recurrent(layer)]
    tied = text.get("tie_word_embeddings", config.get("tie_word_embeddings"))
    return Architecture(
        model_type=sizes.kind or str(config.get("model_type") or ""),
        hidden=hidden,
        layers=layers,
        heads=sizes.heads,
        kv_heads=kv_heads,
        head_dim=head_dim,
        intermediate=max(sizes.width(layer) for layer in range(layers)),
        vocabulary=sizes.need("vocab_size", default=262144),
        tied=bool(tied) if tied is not None else sizes.kind.startswith(_TIED),
        context=context_of(config) or 4096,
        kv=len(attending) * kv_heads * (head_dim + value_dim),
        experts=sizes.experts,
        projections=tuple(p for layer in range(layers) for p in sizes.projections(layer)),
    )


def experts(config: Mapping[str, Any]) -> Experts:
    """How many experts a layer has, and how many a token goes through. Raises ConfigError."""
    return sizes_of(config).experts


def sizes_of(config: Mapping[str, Any]) -> Sizes:
    """The numbers of the model of text in a `config.json`, layer by layer."""
    return Sizes(_text(config))


def context_of(config: Mapping[str, Any]) -> int:
    """Tokens that the model has positions for, as its config says; 0 where it does not."""
    for part in reversed(_parts(config)):
        for name in _CONTEXT:
            value = part.get(name)
            if isinstance(value, str) and value.isdecimal() and len(value) < _DIGITS:
                value = int(value)
            if isinstance(value, float) and value.is_integer():
                value = int(value)
            if isinstance(value, int) and not isinstance(value, bool) and 0 < value < HUGE:
                return value
    return 0


def _text(config: Mapping[str, Any]) -> Mapping[str, Any]:
    """The part that is about text, in the config of a model that takes pictures or sound too."""
    return _parts(config)[-1]


def _parts(config: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The config and, where it has such, the one of the model of text in it, and in that."""
    parts = [config]
    for _ in range(_DEEP):
        found = [parts[-1].get(name) for name in _INNER]
        parts += [cast("Mapping[str, Any]", one) for one in found if isinstance(one, dict)][:1]
    return parts


def unusable(config: Mapping[str, Any], backend: str) -> str:
    """Why goodbot cannot load a model of this config, as a clause; empty if it can.

    `backend` is `mlx` or `torch`; of any other nothing is known, and nothing is refused.
    """
    if "quantization" in config and backend != "mlx":
        return "its weights are quantized for MLX: take the model that they were made from"
    if "quantization_config" in config and "quantization" not in config:
        return "its weights are quantized: take the model that they were made from"
    kind = str(config.get("model_type", ""))
    if (known := _known_types(backend)) is not None and kind not in known:
        return f"the {backend} backend does not know the architecture {kind[:40]!r}"
    return ""


def doubt(config: Mapping[str, Any]) -> str:
    """Why training a model of this config may go wrong, as a clause; empty for a plain one."""
    if "vision_config" in config or any(config.get(name) is not None for name in _INNER):
        return "it takes pictures or sound too, and goodbot was tried on plain chat models only"
    return ""


_CONTEXT = (
    "max_position_embeddings",
    "n_positions",
    "n_ctx",
    "max_seq_len",
    "max_sequence_length",
    "seq_length",
    "seq_len",
)
_INNER = ("text_config", "llm_config", "language_config", "thinker_config")
_DEEP = 2
_DIGITS = 10
_TIED = ("gemma", "gpt2")
"""Families whose configs leave out that the head is the embedding."""
_SAME_IN_MLX = {"mistral": "llama"}
_IN_TORCH = ("torch", "tinker", "ray")


def _known_types(backend: str) -> set[str] | None:
    """The architectures that the installed framework brings, without importing it."""
    package = "mlx_lm" if backend == "mlx" else "transformers" if backend in _IN_TORCH else None
    spec = find_spec(package) if package else None
    if spec is None or not spec.submodule_search_locations:
        return None
    models = Path(next(iter(spec.submodule_search_locations))) / "models"
    names = {entry.stem for entry in models.iterdir()}
    if backend == "mlx":
        return names | {name for name, same in _SAME_IN_MLX.items() if same in names}
    # In transformers one folder holds several types: gemma3 brings gemma3_text.
    return names | {f"{name}_text" for name in names}
