# SPDX-License-Identifier: Apache-2.0
"""A random tiny chat model, made here: nothing in these tests needs a download or the shipped
model.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support import require

TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
SPECIALS = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
CORPUS = ["What is the capital of France? Paris.", "Arr matey! Zwölf Äpfel 👍", "user assistant system"]


@pytest.fixture(scope="session")
def random_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A random Qwen3 of 30 000 parameters with a byte-level tokenizer and a ChatML template."""
    require("safetensors")
    require("tokenizers")
    directory = tmp_path_factory.mktemp("model")
    write_tokenizer(directory)
    _write_weights(directory)
    return directory


def write_tokenizer(directory: Path) -> None:
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=320,
        special_tokens=SPECIALS,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(CORPUS, trainer)
    tokenizer.save(str(directory / "tokenizer.json"))
    config = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "eos_token": "<|im_end|>",
        "pad_token": "<|endoftext|>",
        "chat_template": TEMPLATE,
        "model_max_length": 512,
    }
    (directory / "tokenizer_config.json").write_text(json.dumps(config))


def _write_weights(directory: Path) -> None:
    import numpy as np
    from safetensors.numpy import save_file

    d, layers, heads, groups, size, ff, vocabulary = 32, 2, 4, 2, 8, 64, 320
    config = {
        "architectures": ["Qwen3ForCausalLM"],
        "model_type": "qwen3",
        "hidden_size": d,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "num_key_value_heads": groups,
        "head_dim": size,
        "intermediate_size": ff,
        "vocab_size": vocabulary,
        "max_position_embeddings": 512,
        "rms_norm_eps": 1e-6,
        "rope_theta": 10000.0,
        "tie_word_embeddings": True,
        "hidden_act": "silu",
        "attention_bias": False,
        "bos_token_id": None,
        "eos_token_id": 2,
        "torch_dtype": "float32",
        "use_sliding_window": False,
    }
    (directory / "config.json").write_text(json.dumps(config))
    random = np.random.default_rng(7)

    def matrix(rows: int, columns: int, deviation: float) -> np.ndarray:
        return (random.standard_normal((rows, columns)) * deviation).astype(np.float32)

    tensors = {
        "model.embed_tokens.weight": matrix(vocabulary, d, 0.25),
        "model.norm.weight": np.ones(d, np.float32),
    }
    for i in range(layers):
        at = f"model.layers.{i}"
        for name, rows, columns in (
            ("self_attn.q_proj", heads * size, d),
            ("self_attn.k_proj", groups * size, d),
            ("self_attn.v_proj", groups * size, d),
            ("self_attn.o_proj", d, heads * size),
            ("mlp.gate_proj", ff, d),
            ("mlp.up_proj", ff, d),
            ("mlp.down_proj", d, ff),
        ):
            tensors[f"{at}.{name}.weight"] = matrix(rows, columns, columns**-0.5)
        for name in ("self_attn.q_norm", "self_attn.k_norm"):
            tensors[f"{at}.{name}.weight"] = np.ones(size, np.float32)
        for name in ("input_layernorm", "post_attention_layernorm"):
            tensors[f"{at}.{name}.weight"] = np.ones(d, np.float32)
    save_file(tensors, str(directory / "model.safetensors"), metadata={"format": "pt"})
