# SPDX-License-Identifier: Apache-2.0
"""What a decoder of the llama family answers, in plain NumPy: the yardstick of every conversion.

It knows two layouts of the rotary embedding. transformers and MLX turn the first half of a head
against the second; llama.cpp's `llama` architecture turns neighbours, and its converter reorders the
rows of queries and keys to fit. A wrong order, a wrong scale or a wrong place changes the logits.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

Weights = Callable[[str], "np.ndarray | None"]
"""A tensor's name, as transformers has it, → its numbers in fp32, or None where there is none."""

KNOWN = {"llama", "mistral", "qwen2", "qwen3"}
"""Values of `model_type` whose forward pass this is."""
_ROTATIONS = {"default", "linear", "llama3"}


@dataclass(frozen=True, kw_only=True)
class DecoderShape:
    """The numbers of a decoder that its weights do not tell."""

    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    eps: float
    frequencies: np.ndarray
    """Of the rotary embedding, one per pair of a head's numbers, radians a token."""
    neighbours: bool = False
    """Whether neighbours are turned, not halves."""


def decoder(config: Mapping[str, Any]) -> DecoderShape | None:
    """The decoder that a `config.json` describes; None for one that is not known here."""
    rope: Mapping[str, Any] = config.get("rope_parameters") or config.get("rope_scaling") or {}
    kind = rope.get("rope_type") or rope.get("type") or "default"
    if config.get("model_type") not in KNOWN or kind not in _ROTATIONS:
        return None
    if config.get("hidden_act", "silu") != "silu":
        return None
    heads = int(config["num_attention_heads"])
    size = int(config.get("head_dim") or config["hidden_size"] // heads)
    theta = float(rope.get("rope_theta") or config.get("rope_theta") or 10000.0)
    plain = theta ** -(np.arange(0, size, 2, dtype=np.float64) / size)
    return DecoderShape(
        layers=int(config["num_hidden_layers"]),
        heads=heads,
        kv_heads=int(config.get("num_key_value_heads") or heads),
        head_dim=size,
        eps=float(config["rms_norm_eps"]),
        frequencies=plain / factors(rope, kind, plain),
    )


def factors(rope: Mapping[str, Any], kind: str, frequencies: np.ndarray) -> np.ndarray:
    """What each frequency is divided by for a longer context; ones without such an extension."""
    if kind == "linear":
        return np.full_like(frequencies, float(rope["factor"]))
    if kind != "llama3":
        return np.ones_like(frequencies)
    factor, low, high = (float(rope[name]) for name in ("factor", "low_freq_factor", "high_freq_factor"))
    turns = float(rope["original_max_position_embeddings"]) * frequencies / (2 * math.pi)
    smooth = np.clip((turns - low) / (high - low), 0.0, 1.0)
    return 1.0 / ((1.0 - smooth) / factor + smooth)


def logits(model: DecoderShape, weights: Weights, ids: np.ndarray) -> np.ndarray:
    """`(tokens, vocabulary)` in fp32, for one sequence of token ids, each seeing those before it."""
    table = _need(weights, "model.embed_tokens.weight")
    x = table[ids]
    for layer in range(model.layers):
        at = f"model.layers.{layer}"
        x = x + _attention(
            model,
            weights,
            f"{at}.self_attn",
            _norm(x, _need(weights, f"{at}.input_layernorm.weight"), model.eps),
        )
        y = _norm(x, _need(weights, f"{at}.post_attention_layernorm.weight"), model.eps)
        gate = _linear(weights, f"{at}.mlp.gate_proj", y)
        with np.errstate(over="ignore"):  # far below 0 the gate is shut: 1 / inf is what is meant
            shut = 1.0 + np.exp(-gate)
        inner = gate / shut * _linear(weights, f"{at}.mlp.up_proj", y)
        x = x + _linear(weights, f"{at}.mlp.down_proj", inner)
    head = weights("lm_head.weight")
    x = _norm(x, _need(weights, "model.norm.weight"), model.eps)
    return x @ (table if head is None else head).T


def _attention(model: DecoderShape, weights: Weights, at: str, x: np.ndarray) -> np.ndarray:
    tokens, size = len(x), model.head_dim
    q = _linear(weights, f"{at}.q_proj", x).reshape(tokens, model.heads, size)
    k, v = (_linear(weights, f"{at}.{name}_proj", x).reshape(tokens, model.kv_heads, size) for name in "kv")
    for_q, for_k = weights(f"{at}.q_norm.weight"), weights(f"{at}.k_norm.weight")
    q = _turned(model, q if for_q is None else _norm(q, for_q, model.eps))
    k = _turned(model, k if for_k is None else _norm(k, for_k, model.eps))
    shared = model.heads // model.kv_heads
    k, v = k.repeat(shared, axis=1), v.repeat(shared, axis=1)
    scores = np.einsum("qhd,khd->hqk", q, k) / math.sqrt(size)
    scores = np.where(np.tri(tokens, dtype=bool), scores, -np.inf)
    weight = np.exp(scores - scores.max(-1, keepdims=True))
    mixed = np.einsum("hqk,khd->qhd", weight / weight.sum(-1, keepdims=True), v)
    return _linear(weights, f"{at}.o_proj", mixed.reshape(tokens, -1))


def _turned(model: DecoderShape, x: np.ndarray) -> np.ndarray:
    angles = np.arange(len(x))[:, None, None] * model.frequencies
    cos, sin = np.cos(angles).astype(np.float32), np.sin(angles).astype(np.float32)
    half = model.head_dim // 2
    first, second = (x[..., ::2], x[..., 1::2]) if model.neighbours else (x[..., :half], x[..., half:])
    turned = (first * cos - second * sin, second * cos + first * sin)
    return np.stack(turned, -1).reshape(x.shape) if model.neighbours else np.concatenate(turned, -1)


def _norm(x: np.ndarray, weight: np.ndarray, eps: float) -> np.ndarray:
    return x / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + eps) * weight


def _linear(weights: Weights, name: str, x: np.ndarray) -> np.ndarray:
    bias = weights(f"{name}.bias")
    y = x @ _need(weights, f"{name}.weight").T
    return y if bias is None else y + bias


def _need(weights: Weights, name: str) -> np.ndarray:
    found = weights(name)
    if found is None:
        raise KeyError(name)
    return found
