"""A model's shape, read from its own `config.json`: how many numbers it has, and whether it learns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, cast

from goodbot.errors import ConfigError


@dataclass(frozen=True, kw_only=True, slots=True)
class Architecture:
    """A decoder of transformer layers with a gated feed-forward part; sizes in numbers, not bytes."""

    model_type: str
    hidden: int
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    intermediate: int
    vocabulary: int
    tied: bool
    """Whether the output head is the embedding."""
    context: int
    """Tokens."""

    @property
    def body(self) -> int:
        """Weights of the layers, without embedding and head (norms left out)."""
        attention = 2 * self.hidden * self.head_dim * (self.heads + self.kv_heads)
        return self.layers * (attention + 3 * self.hidden * self.intermediate)

    @property
    def head(self) -> int:
        """Weights of the output head."""
        return self.hidden * self.vocabulary

    @property
    def parameters(self) -> int:
        """All weights."""
        return self.body + self.head * (1 if self.tied else 2)

    def lora(self, rank: int) -> int:
        """Weights of an adapter on all linear projections of every layer."""
        queries, keys = self.heads * self.head_dim, self.kv_heads * self.head_dim
        sides = (
            (self.hidden + queries) * 2
            + (self.hidden + keys) * 2
            + (self.hidden + self.intermediate) * 3
        )
        return self.layers * rank * sides

    @property
    def kv(self) -> int:
        """Numbers in the KV cache for one token."""
        return 2 * self.layers * self.kv_heads * self.head_dim


def read(config: Mapping[str, Any]) -> Architecture:
    """The architecture in a `config.json`. Raises ConfigError where a number is missing."""
    inner = config.get("text_config")
    text = cast("Mapping[str, Any]", inner) if isinstance(inner, dict) else config

    def number(name: str, default: int = 0) -> int:
        value = text.get(name)
        value = default if value is None else value
        if isinstance(value, bool) or not isinstance(value, int) or not 0 < value < 1 << 40:
            raise ConfigError(f"the model's config.json has no usable {name}")
        return value

    hidden, heads = number("hidden_size"), number("num_attention_heads")
    tied = text.get("tie_word_embeddings", config.get("tie_word_embeddings"))
    return Architecture(
        model_type=str(text.get("model_type") or config.get("model_type") or ""),
        hidden=hidden,
        layers=number("num_hidden_layers"),
        heads=heads,
        kv_heads=number("num_key_value_heads", heads),
        head_dim=number("head_dim", hidden // heads or 1),
        intermediate=number("intermediate_size", 4 * hidden),
        vocabulary=number("vocab_size", 262144),
        tied=bool(tied) if tied is not None else "gemma" in str(text.get("model_type")),
        context=number("max_position_embeddings", 4096),
    )


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
    inner = config.get("text_config")
    text = cast("Mapping[str, Any]", inner) if isinstance(inner, dict) else config
    if inner is not None or "vision_config" in config:
        return "it takes pictures or sound too, and goodbot was tried on plain chat models only"
    if any(name in text for name in ("num_experts", "num_local_experts", "n_routed_experts")):
        return "it is a mixture of experts, and its experts are not adapted"
    return ""


_SAME_IN_MLX = {"mistral": "llama"}


def _known_types(backend: str) -> set[str] | None:
    """The architectures that the installed framework brings, without importing it."""
    package = {"mlx": "mlx_lm", "torch": "transformers"}.get(backend)
    spec = find_spec(package) if package else None
    if spec is None or not spec.submodule_search_locations:
        return None
    models = Path(next(iter(spec.submodule_search_locations))) / "models"
    names = {entry.stem for entry in models.iterdir()}
    if backend == "mlx":
        return names | {name for name, same in _SAME_IN_MLX.items() if same in names}
    # In transformers one folder holds several types: gemma3 brings gemma3_text.
    return names | {f"{name}_text" for name in names}
