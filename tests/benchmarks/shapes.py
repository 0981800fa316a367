# SPDX-License-Identifier: Apache-2.0
"""Random models of given shapes, and the same random ratings for all who train on them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

from tests.training.conftest import write_tokenizer

_QWEN3_8B = {
    "model_type": "qwen3",
    "hidden_size": 4096,
    "intermediate_size": 12288,
    "num_hidden_layers": 36,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "vocab_size": 151936,
}
_QWEN3_30B = {
    "model_type": "qwen3_moe",
    "hidden_size": 2048,
    "intermediate_size": 6144,
    "num_hidden_layers": 48,
    "num_attention_heads": 32,
    "num_key_value_heads": 4,
    "head_dim": 128,
    "vocab_size": 151936,
    "num_experts": 128,
    "num_experts_per_tok": 8,
    "moe_intermediate_size": 768,
    "norm_topk_prob": True,
}
CPU: dict[str, dict[str, Any]] = {
    "4M Llama": {
        "model_type": "llama",
        "hidden_size": 256,
        "intermediate_size": 688,
        "num_hidden_layers": 4,
        "num_attention_heads": 4,
        "num_key_value_heads": 4,
        "vocab_size": 4096,
        "tie_word_embeddings": True,
    },
    "27M Qwen2": {
        "model_type": "qwen2",
        "hidden_size": 512,
        "intermediate_size": 1408,
        "num_hidden_layers": 8,
        "num_attention_heads": 8,
        "num_key_value_heads": 2,
        "vocab_size": 8192,
        "tie_word_embeddings": True,
    },
}
CUDA: dict[str, dict[str, Any]] = {
    "0.5B Qwen2": {
        "model_type": "qwen2",
        "hidden_size": 896,
        "intermediate_size": 4864,
        "num_hidden_layers": 24,
        "num_attention_heads": 14,
        "num_key_value_heads": 2,
        "vocab_size": 151936,
        "tie_word_embeddings": True,
    },
    "8B Qwen3": _QWEN3_8B,
    "30B-A3B Qwen3-MoE": _QWEN3_30B,
}
_SMALL = {
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "vocab_size": 512,
    "num_experts": 4,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 32,
}


def toy(shape: dict[str, Any]) -> dict[str, Any]:
    """The same family, so small that a test can afford it."""
    return {name: _SMALL.get(name, value) for name, value in shape.items()}


def make_model(
    directory: Path, shape: dict[str, Any], *, dtype: str = "float32", written: bool = True
) -> None:
    """Random weights and a byte tokenizer, as a model directory.

    Not `written`, it has no weights: `random_weights` makes them in the process that loads it.
    """
    import torch
    from safetensors.torch import save_file
    from transformers import AutoConfig, AutoModelForCausalLM
    from transformers.utils import logging

    logging.disable_progress_bar()
    fixed = {"max_position_embeddings": 4096, "bos_token_id": None, "eos_token_id": 2, "pad_token_id": 0}
    config: Any = AutoConfig.for_model(**shape, **fixed)
    if written:
        torch.manual_seed(0)
        with torch.device("cuda" if torch.cuda.is_available() else "cpu"):
            model: Any = AutoModelForCausalLM.from_config(config, dtype=getattr(torch, dtype))
        model.save_pretrained(str(directory))
        del model  # else whoever trains on it has that much less of the GPU
        if torch.cuda.is_available():
            torch.cuda.empty_cache()
    else:
        config.save_pretrained(str(directory))
        save_file({}, directory / "model.safetensors")
    path = directory / "config.json"
    written = json.loads(path.read_text())
    written["rope_theta"] = (written.get("rope_parameters") or {}).get("rope_theta", 10000.0)
    path.write_text(json.dumps(written))  # mlx-lm reads it at the top
    write_tokenizer(directory)


@contextmanager
def random_weights() -> Iterator[None]:
    """Within this, a model of which only the config lies on disk is loaded with weights made on the spot."""
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM

    def make(directory: str, *, dtype: Any, **_: Any) -> Any:
        torch.manual_seed(0)
        with torch.device("cuda" if torch.cuda.is_available() else "cpu"):
            config = AutoConfig.from_pretrained(directory)
            return AutoModelForCausalLM.from_config(config, dtype=dtype)

    with patch.object(AutoModelForCausalLM, "from_pretrained", make):
        yield


@dataclass(frozen=True, kw_only=True)
class Ratings:
    """How many rated turns, of how many tokens on average, and the response's part of them."""

    count: int = 32
    tokens: int = 211
    response: float = 0.4
    seed: int = 7

    def items(self) -> list[dict[str, Any]]:
        """Items as the worker protocol has them: not captured, by the base, good and bad in turn."""
        random = np.random.default_rng(self.seed)
        spread = random.lognormal(0.0, 0.45, self.count)
        lengths = np.maximum(24, self.tokens * spread / spread.mean()).astype(int)
        found: list[dict[str, Any]] = []
        for index, length in enumerate(lengths):
            answer = max(4, int(length * self.response))
            # The template brings about as many tokens as 20 letters, and the end token one.
            prompt = max(1, length - answer - 20)
            texts = ["".join(random.choice([*"abcdefgh "], size)) for size in (prompt, answer - 1)]
            found.append(
                {
                    "id": f"turn-{index}",
                    "messages": [{"role": "user", "content": texts[0]}],
                    "response": texts[1],
                    "prompt_tokens": [],
                    "tokens": [],
                    "logprobs": [],
                    "temperature": 1.0,
                    "version": 0,
                    "reward": 1.0 if index % 2 else -1.0,
                    "weight": 1.0,
                    "split": "train",
                }
            )
        return found


def training_flops(tokens: int, response: int, body: int, lora: int, head: int) -> float:
    """One pass over the ratings, as `S · (4 N_b + 6 N_lora) + R · 4 H` (without attention's scores)."""
    return tokens * (4 * body + 6 * lora) + response * 4 * head
