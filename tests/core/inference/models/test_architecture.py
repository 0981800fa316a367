# SPDX-License-Identifier: Apache-2.0
"""Parameter counts from a config alone, against the totals that were published."""

from __future__ import annotations

from typing import Any

import pytest
from goodbot.api.model_shape import experts, read
from goodbot.base.errors import ConfigError

BILLION = 1e9
QWEN3_30B: dict[str, Any] = {
    "model_type": "qwen3_moe",
    "hidden_size": 2048,
    "num_hidden_layers": 48,
    "vocab_size": 151936,
    "num_attention_heads": 32,
    "num_key_value_heads": 4,
    "head_dim": 128,
    "intermediate_size": 6144,
    "moe_intermediate_size": 768,
    "num_experts": 128,
    "num_experts_per_tok": 8,
    "decoder_sparse_step": 1,
    "mlp_only_layers": [],
    "tie_word_embeddings": False,
}
DEEPSEEK_V3: dict[str, Any] = {
    "model_type": "deepseek_v3",
    "hidden_size": 7168,
    "num_hidden_layers": 61,
    "vocab_size": 129280,
    "num_attention_heads": 128,
    "num_key_value_heads": 128,
    "q_lora_rank": 1536,
    "kv_lora_rank": 512,
    "qk_rope_head_dim": 64,
    "qk_nope_head_dim": 128,
    "v_head_dim": 128,
    "intermediate_size": 18432,
    "moe_intermediate_size": 2048,
    "n_routed_experts": 256,
    "num_experts_per_tok": 8,
    "n_shared_experts": 1,
    "first_k_dense_replace": 3,
    "moe_layer_freq": 1,
    "tie_word_embeddings": False,
}
GPT_OSS_20B: dict[str, Any] = {
    "model_type": "gpt_oss",
    "hidden_size": 2880,
    "num_hidden_layers": 24,
    "vocab_size": 201088,
    "num_attention_heads": 64,
    "num_key_value_heads": 8,
    "head_dim": 64,
    "intermediate_size": 2880,
    "num_local_experts": 32,
    "num_experts_per_tok": 4,
    "tie_word_embeddings": False,
}
MIXTRAL: dict[str, Any] = {
    "model_type": "mixtral",
    "hidden_size": 4096,
    "num_hidden_layers": 32,
    "vocab_size": 32000,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "intermediate_size": 14336,
    "num_local_experts": 8,
    "num_experts_per_tok": 2,
    "tie_word_embeddings": False,
}
LLAMA_8B: dict[str, Any] = {
    "model_type": "llama",
    "hidden_size": 4096,
    "num_hidden_layers": 32,
    "vocab_size": 128256,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "intermediate_size": 14336,
    "tie_word_embeddings": False,
}


@pytest.mark.parametrize(
    ("config", "total", "active"),
    [
        (QWEN3_30B, 30.53, 3.35),
        (DEEPSEEK_V3, 671.0, 37.5),
        (GPT_OSS_20B, 20.91, 4.19),
        (MIXTRAL, 46.7, 12.88),
        (LLAMA_8B, 8.03, 8.03),
    ],
    ids=["qwen3 30b", "deepseek v3", "gpt-oss 20b", "mixtral 8x7b", "llama 8b"],
)
def test_published_totals(config: dict[str, Any], total: float, active: float) -> None:
    found = read(config)
    assert found.parameters / BILLION == pytest.approx(total, rel=0.002)
    # With the embedding, of which a token only looks a row up.
    assert (found.active + found.head) / BILLION == pytest.approx(active, rel=0.005)


def test_gpt_oss_counts_its_active_weights_without_the_embedding() -> None:
    assert read(GPT_OSS_20B).active / BILLION == pytest.approx(3.61, rel=0.002)


@pytest.mark.parametrize("name", ["experts", "Llama-3-8B-8x7B", "gpt2-dense"])
def test_a_name_never_matters(name: str) -> None:
    assert read(QWEN3_30B | {"_name_or_path": name}) == read(QWEN3_30B)
    assert read({"_name_or_path": name, "text_config": QWEN3_30B}) == read(QWEN3_30B)


def test_experts_share_the_rank_of_a_dense_layer() -> None:
    dense, sparse = read(LLAMA_8B), read(QWEN3_30B)
    assert experts(LLAMA_8B).rank(16) == 16
    assert experts(QWEN3_30B).rank(16) == 2
    assert experts(QWEN3_30B).rank(4) == 1
    # All projections of Llama 3.1 8B with r = 16: the well-known 42 million.
    assert dense.lora(16) == 41_943_040
    attention = 16 * ((2048 + 4096) + 2 * (2048 + 512) + (4096 + 2048))
    stacks = 128 * 2 * ((2 * 768 + 2048) + (2048 + 768))
    assert sparse.lora(16) == 48 * (attention + stacks)


def test_recurrent_layers_have_no_cache() -> None:
    hybrid: dict[str, Any] = {
        "model_type": "qwen3_next",
        "hidden_size": 2048,
        "num_hidden_layers": 48,
        "num_attention_heads": 16,
        "num_key_value_heads": 2,
        "head_dim": 256,
        "full_attention_interval": 4,
        "linear_num_key_heads": 16,
        "linear_num_value_heads": 32,
        "linear_key_head_dim": 128,
        "linear_value_head_dim": 128,
        "linear_conv_kernel_dim": 4,
        "moe_intermediate_size": 512,
        "shared_expert_intermediate_size": 512,
        "num_experts": 512,
        "num_experts_per_tok": 10,
        "vocab_size": 151936,
        "tie_word_embeddings": False,
    }
    found = read(hybrid)
    assert found.kv == 12 * 2 * 2 * 256
    assert found.intermediate == 11 * 512
    assert found.parameters / BILLION == pytest.approx(79.7, rel=0.002)


def test_a_tied_head_is_counted_once() -> None:
    apart, tied = read(LLAMA_8B), read(LLAMA_8B | {"tie_word_embeddings": True})
    assert apart.parameters - tied.parameters == apart.head == 4096 * 128256


@pytest.mark.parametrize("name", ["hidden_size", "qk_rope_head_dim", "moe_intermediate_size"])
def test_a_size_that_is_none_is_named(name: str) -> None:
    for wrong in ("many", -1, True, 1 << 50):
        with pytest.raises(ConfigError, match=name):
            read(DEEPSEEK_V3 | {name: wrong})
