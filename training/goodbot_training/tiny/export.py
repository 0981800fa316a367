# SPDX-License-Identifier: Apache-2.0
"""Writes the model's directory as transformers, mlx-lm and GGUF converters expect it."""

# pyright: standard
# (the framework ships no complete types)

from __future__ import annotations

import json
from pathlib import Path

import torch
from safetensors.torch import save_file
from tokenizers import Tokenizer
from transformers import PreTrainedModel

from goodbot_training.tiny import TEMPERATURE
from goodbot_training.tiny.chatml import CHAT_TEMPLATE, END, END_OF_TEXT, START
from goodbot_training.tiny.train import ROPE_THETA

MAX_BYTES = 2_000_000
"""The largest ``model.safetensors`` that may ship."""


def _write_json(path: Path, content: dict[str, object]) -> None:
    text = json.dumps(content, indent=2, ensure_ascii=False, sort_keys=True)
    path.write_text(f"{text}\n", encoding="utf-8")


def export_weights(model: PreTrainedModel, directory: Path, max_bytes: int = MAX_BYTES) -> int:
    """Writes ``model.safetensors`` in fp16 and returns its size in bytes.

    A tied head is left out, as transformers does. There must be no second ``model*.safetensors``
    beside it: mlx-lm would load that as well.

    Raises:
        ValueError: the file is larger than ``max_bytes``.
    """
    tied = model.config.tie_word_embeddings
    weights = {
        name: weight.to(torch.float16).contiguous()
        for name, weight in model.state_dict().items()
        if not (tied and name == "lm_head.weight")
    }
    path = directory / "model.safetensors"
    save_file(weights, path, metadata={"format": "pt"})
    path.chmod(0o644)  # safetensors leaves a file that only its owner can read
    size = path.stat().st_size
    if size > max_bytes:
        raise ValueError(f"{path} has {size} bytes, more than {max_bytes}")
    return size


def export_config(model: PreTrainedModel, directory: Path) -> None:
    """Writes ``config.json`` and ``generation_config.json``."""
    config = model.config.to_diff_dict()
    # Many of mlx-lm's models never read rope_parameters and take their own default theta.
    config |= {
        "architectures": [type(model).__name__],
        "model_type": model.config.model_type,
        "rope_theta": ROPE_THETA,
        "dtype": "float16",
        "tie_word_embeddings": model.config.tie_word_embeddings,
    }
    _write_json(directory / "config.json", config)
    _write_json(
        directory / "generation_config.json",
        {
            "do_sample": True,
            "eos_token_id": model.config.eos_token_id,
            "pad_token_id": model.config.pad_token_id,
            "temperature": TEMPERATURE,
            "top_k": 0,
            "top_p": 1.0,
        },
    )


def export_tokenizer(tokenizer: Tokenizer, directory: Path) -> None:
    """Writes ``tokenizer.json`` and ``tokenizer_config.json`` with the chat template."""
    tokenizer.save(str(directory / "tokenizer.json"))
    _write_json(
        directory / "tokenizer_config.json",
        {
            "tokenizer_class": "Qwen2Tokenizer",
            "add_prefix_space": False,
            "additional_special_tokens": [START, END],
            "bos_token": None,
            "chat_template": CHAT_TEMPLATE,
            "clean_up_tokenization_spaces": False,
            "eos_token": END,
            "model_max_length": 1024,
            "pad_token": END_OF_TEXT,
            "padding_side": "left",
            "unk_token": None,
        },
    )
