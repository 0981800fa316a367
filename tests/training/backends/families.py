# SPDX-License-Identifier: Apache-2.0
"""Tiny random models of the current families: hidden 32, two layers, and what LoRA must reach."""

# pyright: standard
# (the frameworks ship no complete types)

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

VOCABULARY = 320
_ROPE = {"rope_type": "default", "rope_theta": 10000.0}
_BOTH = {"full_attention": _ROPE, "sliding_attention": _ROPE}
_PLAIN: dict[str, Any] = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "intermediate_size": 48,
    "vocab_size": VOCABULARY,
    "max_position_embeddings": 256,
    "bos_token_id": 0,
    "eos_token_id": 2,
    "pad_token_id": 0,
    "rope_parameters": _ROPE,
}
_SPARSE = {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 24}
_DELTA = {
    "linear_num_value_heads": 4,
    "linear_num_key_heads": 2,
    "linear_key_head_dim": 8,
    "linear_value_head_dim": 8,
    "linear_conv_kernel_dim": 4,
    "head_dim": 8,
    "layer_types": ["linear_attention", "full_attention"],
}
_SHARED = {"shared_expert_intermediate_size": 40}
_NARROW = {"rope_parameters": _ROPE | {"partial_rotary_factor": 0.5}}
_DEEP = {
    "n_routed_experts": 4,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 24,
    "n_shared_experts": 1,
    "first_k_dense_replace": 1,
}
_LOCAL = {"num_local_experts": 4, "num_experts_per_tok": 2}


def _under(place: str, names: str) -> frozenset[str]:
    return frozenset(f"{place}.{name}" for name in names.split())


ATTENTION = _under("self_attn", "q_proj k_proj v_proj o_proj")
MLP = _under("mlp", "gate_proj up_proj down_proj")
EXPERTS = _under("mlp.experts", "gate_up_proj down_proj")
SHARED = _under("mlp.shared_expert", "gate_proj up_proj down_proj")
SHARED_DEEP = _under("mlp.shared_experts", "gate_proj up_proj down_proj")
BLOCK = _under("block_sparse_moe.experts", "gate_up_proj down_proj")
DELTA = _under("linear_attn", "in_proj_qkvz in_proj_ba out_proj")
SPLIT_DELTA = _under("linear_attn", "in_proj_qkv in_proj_z in_proj_b in_proj_a out_proj")
LATENT = _under("self_attn", "q_a_proj q_b_proj kv_a_proj_with_mqa kv_b_proj o_proj")


@dataclass(frozen=True, kw_only=True)
class Family:
    """A model type with its own numbers."""

    kind: str
    targets: frozenset[str]
    """What follows the number of the layer, for every adapted matrix of any layer."""
    own: dict[str, Any] = field(default_factory=dict[str, Any])
    plain: bool = True
    """Whether the usual numbers have their usual names."""
    mlx: dict[str, Any] | None = field(default_factory=dict[str, Any])
    """What mlx-lm wants in config.json besides; None where it cannot load such a checkpoint."""
    peft: bool = True
    """Whether peft agrees to load an adapter for it."""

    @property
    def config(self) -> dict[str, Any]:
        """All numbers."""
        return (_PLAIN if self.plain else {}) | self.own


FAMILIES = {
    "llama": Family(kind="llama", targets=ATTENTION | MLP),
    "mistral": Family(kind="mistral", targets=ATTENTION | MLP, own={"head_dim": 8}),
    "qwen2": Family(kind="qwen2", targets=ATTENTION | MLP),
    "qwen3": Family(kind="qwen3", targets=ATTENTION | MLP, own={"head_dim": 8, "tie_word_embeddings": True}),
    "gemma": Family(kind="gemma", targets=ATTENTION | MLP, own={"head_dim": 16}),
    "gemma2": Family(kind="gemma2", targets=ATTENTION | MLP, own={"head_dim": 16}),
    "gemma3": Family(
        kind="gemma3_text",
        targets=ATTENTION | MLP,
        mlx={"sliding_window_pattern": 2},
        own={"head_dim": 16, "rope_parameters": _BOTH},
    ),
    "gemma3 with eyes": Family(
        kind="gemma3",
        targets=ATTENTION | MLP,
        plain=False,
        mlx=None,
        own={
            "text_config": _PLAIN | {"model_type": "gemma3_text", "head_dim": 16, "rope_parameters": _BOTH},
            "vision_config": {
                "hidden_size": 16,
                "num_hidden_layers": 1,
                "num_attention_heads": 2,
                "intermediate_size": 16,
                "image_size": 28,
                "patch_size": 14,
            },
            "mm_tokens_per_image": 4,
            "image_token_index": 319,
            "bos_token_id": 0,
        },
    ),
    "phi": Family(
        kind="phi",
        own=_NARROW,
        mlx={"partial_rotary_factor": 0.5},
        targets=_under("self_attn", "q_proj k_proj v_proj dense") | _under("mlp", "fc1 fc2"),
    ),
    "phi3": Family(
        kind="phi3", targets=_under("self_attn", "qkv_proj o_proj") | _under("mlp", "gate_up_proj down_proj")
    ),
    "glm": Family(
        kind="glm",  # of which mlx-lm turns whole heads, whatever the config says
        own={"head_dim": 8, "rope_parameters": _ROPE | {"partial_rotary_factor": 1.0}},
        targets=ATTENTION | _under("mlp", "gate_up_proj down_proj"),
    ),
    "glm4": Family(
        kind="glm4",
        own={"head_dim": 8, **_NARROW},
        mlx={"partial_rotary_factor": 0.5},
        targets=ATTENTION | _under("mlp", "gate_up_proj down_proj"),
    ),
    # mlx-lm's first OLMo needs a package of its own.
    "olmo": Family(kind="olmo", targets=ATTENTION | MLP, mlx=None),
    "olmo2": Family(kind="olmo2", targets=ATTENTION | MLP),
    "olmo3": Family(
        kind="olmo3",
        targets=ATTENTION | MLP,
        own={
            "layer_types": ["sliding_attention", "full_attention"],
            "sliding_window": 64,
            "rope_parameters": _BOTH,
        },
    ),
    "granite": Family(kind="granite", targets=ATTENTION | MLP),
    # A Conv1D is a transposed projection.
    "gpt2": Family(
        kind="gpt2",
        plain=False,
        mlx=None,
        own={
            "n_embd": 32,
            "n_layer": 2,
            "n_head": 4,
            "vocab_size": VOCABULARY,
            "n_positions": 256,
            "bos_token_id": 0,
            "eos_token_id": 2,
        },
        targets=_under("attn", "c_attn c_proj") | _under("mlp", "c_fc c_proj"),
    ),
    "falcon h1": Family(
        kind="falcon_h1",
        peft=False,
        own={
            "head_dim": 8,
            "mamba_d_ssm": 32,
            "mamba_n_heads": 4,
            "mamba_d_head": 8,
            "mamba_d_state": 16,
            "mamba_n_groups": 1,
            "mamba_expand": 1,
        },
        targets=ATTENTION
        | _under("mamba", "in_proj out_proj")
        | _under("feed_forward", "gate_proj up_proj down_proj"),
    ),
    "qwen3.5": Family(kind="qwen3_5_text", own=_DELTA, targets=ATTENTION | MLP | SPLIT_DELTA, mlx=None),
    "mixtral": Family(kind="mixtral", own=_LOCAL, targets=ATTENTION | EXPERTS),
    "qwen2 moe": Family(
        kind="qwen2_moe",
        own=_SPARSE | _SHARED | {"mlp_only_layers": [0]},
        mlx=None,
        targets=ATTENTION | MLP | EXPERTS | SHARED,
    ),
    "qwen3 moe": Family(
        kind="qwen3_moe", own=_SPARSE | {"head_dim": 8}, mlx={"num_experts": 4}, targets=ATTENTION | EXPERTS
    ),
    "qwen3 next": Family(
        kind="qwen3_next",
        own=_SPARSE
        | _SHARED
        | _DELTA
        | {"full_attention_interval": 2, "rope_parameters": _ROPE | {"partial_rotary_factor": 0.25}},
        mlx={"num_experts": 4, "partial_rotary_factor": 0.25},
        targets=ATTENTION | EXPERTS | SHARED | DELTA,
    ),
    "qwen3.5 moe": Family(
        kind="qwen3_5_moe_text",
        own=_SPARSE | _SHARED | _DELTA,
        mlx=None,
        targets=ATTENTION | EXPERTS | SHARED | SPLIT_DELTA,
    ),
    "deepseek v3": Family(
        kind="deepseek_v3",
        own=_DEEP
        | {
            "num_key_value_heads": 4,
            "q_lora_rank": 16,
            "kv_lora_rank": 16,
            "qk_rope_head_dim": 4,
            "qk_nope_head_dim": 8,
            "v_head_dim": 12,
            "head_dim": 4,
            "n_group": 2,
            "topk_group": 1,
        },
        targets=LATENT | MLP | EXPERTS | SHARED_DEEP,
    ),
    "glm4 moe": Family(
        kind="glm4_moe",
        targets=ATTENTION | MLP | EXPERTS | SHARED_DEEP,
        own=_DEEP | _NARROW | {"head_dim": 8, "n_group": 1, "topk_group": 1, "use_qk_norm": True},
        mlx={"n_routed_experts": 4, "rope_scaling": None, "partial_rotary_factor": 0.5},
    ),
    "gpt-oss": Family(
        kind="gpt_oss",
        targets=ATTENTION | EXPERTS,
        own=_LOCAL
        | {"head_dim": 8, "sliding_window": 64, "layer_types": ["sliding_attention", "full_attention"]},
    ),
    "olmoe": Family(
        kind="olmoe", own={"num_experts": 4, "num_experts_per_tok": 2}, targets=ATTENTION | EXPERTS
    ),
    "granite moe": Family(kind="granitemoe", own=_LOCAL, targets=ATTENTION | BLOCK),
    "granite hybrid": Family(
        kind="granitemoehybrid",
        own=_LOCAL
        | {
            "shared_intermediate_size": 40,
            "layer_types": ["mamba", "attention"],
            "mamba_n_heads": 8,
            "mamba_d_head": 8,
            "mamba_d_state": 16,
            "mamba_n_groups": 1,
            "mamba_expand": 2,
            "position_embedding_type": "nope",
        },
        mlx={"layer_types": ["mamba", "attention"]},
        targets=ATTENTION
        | BLOCK
        | _under("mamba", "in_proj out_proj")
        | _under("shared_mlp", "input_linear output_linear"),
    ),
    "llama4": Family(
        kind="llama4_text",
        mlx=None,
        own=_LOCAL
        | {
            "head_dim": 8,
            "intermediate_size_mlp": 40,
            "num_experts_per_tok": 1,
            "interleave_moe_layer_step": 2,
        },
        targets=ATTENTION
        | _under("feed_forward", "gate_proj up_proj down_proj")
        | _under("feed_forward.experts", "gate_up_proj down_proj")
        | _under("feed_forward.shared_expert", "gate_proj up_proj down_proj"),
    ),
}


def make(family: Family) -> Any:
    """A random transformers model."""
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM

    config = AutoConfig.for_model(family.kind, **family.config)
    torch.manual_seed(0)
    return AutoModelForCausalLM.from_config(config, attn_implementation="eager").eval()


def save(model: Any, family: Family, directory: Path) -> dict[str, Any]:
    """Save a model so that mlx-lm reads it too; returns the config."""
    model.save_pretrained(directory)
    path = directory / "config.json"
    config: dict[str, Any] = json.loads(path.read_text())
    config |= {"rope_theta": 10000.0} | (family.mlx or {})
    path.write_text(json.dumps(config))
    if family.kind == "gpt_oss":
        _split_experts(directory / "model.safetensors")
    return config


def _split_experts(path: Path) -> None:
    """As the converted checkpoints of gpt-oss are: gate and up, which alternate, are taken apart."""
    import numpy as np
    from safetensors.numpy import load_file, save_file

    found: dict[str, Any] = {}
    for name, value in load_file(path).items():
        kind = ".bias" if name.endswith("_bias") else ".weight"
        matrix = value if kind == ".bias" or value.ndim < 3 else value.swapaxes(1, 2)
        if ".experts.gate_up_proj" in name:
            place = name.split("gate_up_proj")[0]
            found[f"{place}gate_proj{kind}"] = np.ascontiguousarray(matrix[:, ::2])
            found[f"{place}up_proj{kind}"] = np.ascontiguousarray(matrix[:, 1::2])
        elif ".experts.down_proj" in name:
            own = name.removesuffix("_bias") + kind
            found[own] = np.ascontiguousarray(matrix)
        else:
            found[name] = value
    save_file(found, path, metadata={"format": "pt"})
