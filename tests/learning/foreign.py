# SPDX-License-Identifier: Apache-2.0
"""Adapters and models that do not belong together: other numbers, another base, another template."""

# pyright: standard
# (safetensors ships no complete types)

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
from goodbot_training.tiny import model_path
from safetensors.numpy import load_file, save_file

TEMPLATE = (
    "{% for m in messages %}[{{ m['role'] }}] {{ m['content'] }}<|endoftext|>{% endfor %}"
    "{% if add_generation_prompt %}[assistant] {% endif %}"
)


def with_one_number(adapter: Path, place: Path, number: float) -> Path:
    """A copy of an adapter in which one weight is `number`."""
    shutil.copytree(adapter, place, dirs_exist_ok=True)
    tensors = load_file(place / "adapter_model.safetensors")
    name = sorted(tensors)[-1]
    tensors[name].flat[0] = number
    save_file(tensors, place / "adapter_model.safetensors", metadata={"format": "pt"})
    return place


def unsigned(adapter: Path) -> None:
    """Take the name of its base out of an adapter."""
    path = adapter / "adapter_config.json"
    known = json.loads(path.read_text())
    path.write_text(json.dumps(known | {"base_model_name_or_path": ""}))


def reordered(place: Path, seed: int) -> Path:
    """The tiny model with its neurons in another order: it says the same, with other matrices.

    That is what a base from another run of the same training is to an adapter: all shapes fit.
    """
    _copy(place)
    tensors = load_file(model_path() / "model.safetensors")
    random = np.random.default_rng(seed)
    wide = len(tensors["model.norm.weight"])
    stream = random.permutation(wide)
    for name, tensor in tensors.items():
        if name.endswith(
            (
                "q_proj.weight",
                "k_proj.weight",
                "v_proj.weight",
                "gate_proj.weight",
                "up_proj.weight",
                "embed_tokens.weight",
            )
        ):
            tensors[name] = tensor[:, stream]
        elif name.endswith(("o_proj.weight", "down_proj.weight")) or tensor.shape == (wide,):
            tensors[name] = tensor[stream]
    tensors = {name: np.ascontiguousarray(tensor) for name, tensor in tensors.items()}
    save_file(tensors, place / "model.safetensors", metadata={"format": "pt"})
    return place


def with_another_template(place: Path, seed: int) -> Path:
    """The tiny model behind another chat template, which ends a message with another token."""
    _copy(place)
    shutil.copy(model_path() / "model.safetensors", place)
    end = json.loads((place / "config.json").read_text())["pad_token_id"]
    for file, changes in (
        ("tokenizer_config.json", {"chat_template": TEMPLATE, "eos_token": "<|endoftext|>"}),
        ("config.json", {"eos_token_id": end}),
        ("generation_config.json", {"eos_token_id": end}),
    ):
        known = json.loads((place / file).read_text())
        (place / file).write_text(json.dumps(known | changes))
    return place


def _copy(place: Path) -> None:
    for entry in model_path().iterdir():
        if entry.is_file() and entry.suffix != ".safetensors":
            shutil.copy(entry, place)
