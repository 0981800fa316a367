# SPDX-License-Identifier: Apache-2.0
"""What a pass of a training takes at most, measured, against what the plan says of it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.support import require
from tests.training.conftest import write_tokenizer

WIDTH, INNER, HEADS, GROUPS, SIZE, VOCABULARY, LAYERS = 256, 768, 4, 2, 64, 320, 6
CONFIG = {
    "architectures": ["Qwen3ForCausalLM"],
    "model_type": "qwen3",
    "hidden_size": WIDTH,
    "num_hidden_layers": LAYERS,
    "num_attention_heads": HEADS,
    "num_key_value_heads": GROUPS,
    "head_dim": SIZE,
    "intermediate_size": INNER,
    "vocab_size": VOCABULARY,
    "max_position_embeddings": 512,
    "rms_norm_eps": 1e-6,
    "rope_theta": 10000.0,
    "tie_word_embeddings": True,
    "hidden_act": "silu",
    "attention_bias": False,
    "eos_token_id": 2,
    "torch_dtype": "float32",
}

MEASURE = """
import json, sys
from importlib import import_module
from pathlib import Path

import numpy as np
from goodbot.api import model_shape
from goodbot.api.backend import LoraSettings, OptimizerSettings
from goodbot.api.sampler import TokenizedTurn
from goodbot_training.memory.fit import FOOTPRINTS, Memory, Footprint
from tests.training.oracle import batch, objective

name, model, again = sys.argv[1], Path(sys.argv[2]), sys.argv[3] == "again"
module = import_module(f"goodbot_training.backends.{name}.trainer")
backend = getattr(module, {"torch": "TorchBackend", "mlx": "MlxBackend"}[name])()
backend.load(model, lora=LoraSettings(), seed=1)

def rated(count):
    ids = tuple(range(3, 128))
    turns = [TokenizedTurn(prompt=ids, response=ids) for _ in range(count)]
    scores = [np.full(len(ids), -5.0, np.float32) for _ in turns]
    return batch(turns, scores, scores)

def train(count):
    settings = OptimizerSettings(learning_rate=1e-3, recompute=again, tokens_per_forward=count * 250)
    list(backend.train(iter([rated(count)]), settings, objective("scale")))

def held(what):
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(1024 * int(line.split()[1]) for line in lines if line.startswith(what))

train(1)
if name == "torch":
    Path("/proc/self/clear_refs").write_text("5")
    before = held("VmRSS")
    train(6)
    peak = held("VmHWM") - before
else:
    import mlx.core as mx

    mx.clear_cache()
    before = mx.get_active_memory()
    mx.reset_peak_memory()
    train(6)
    peak = mx.get_peak_memory() - before
shape = model_shape.read(json.loads((model / "config.json").read_bytes()))
found = Memory(free=0, fixed=0, width=4, model=shape, footprint=FOOTPRINTS.get(name, Footprint()))
print(json.dumps([peak, found.needed(6 * 250, recompute=again)]))
"""


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A random Qwen3 in which what a token leaves behind is more than the rest."""
    require("safetensors")
    from safetensors.numpy import save_file

    directory = tmp_path_factory.mktemp("wide")
    write_tokenizer(directory)
    (directory / "config.json").write_text(json.dumps(CONFIG))
    random = np.random.default_rng(7)

    def matrix(rows: int, columns: int) -> Any:
        return (0.05 * random.standard_normal((rows, columns))).astype(np.float32)

    tensors = {
        "model.embed_tokens.weight": matrix(VOCABULARY, WIDTH),
        "model.norm.weight": np.ones(WIDTH, "f4"),
    }
    for layer in range(LAYERS):
        at = f"model.layers.{layer}"
        for name, rows, columns in (
            ("self_attn.q_proj", HEADS * SIZE, WIDTH),
            ("self_attn.k_proj", GROUPS * SIZE, WIDTH),
            ("self_attn.v_proj", GROUPS * SIZE, WIDTH),
            ("self_attn.o_proj", WIDTH, HEADS * SIZE),
            ("mlp.gate_proj", INNER, WIDTH),
            ("mlp.up_proj", INNER, WIDTH),
            ("mlp.down_proj", WIDTH, INNER),
        ):
            tensors[f"{at}.{name}.weight"] = matrix(rows, columns)
        for name, size in (
            ("input_layernorm", WIDTH),
            ("post_attention_layernorm", WIDTH),
            ("self_attn.q_norm", SIZE),
            ("self_attn.k_norm", SIZE),
        ):
            tensors[f"{at}.{name}.weight"] = np.ones(size, "f4")
    save_file(tensors, directory / "model.safetensors", metadata={"format": "pt"})
    return directory


@pytest.mark.skipif(sys.platform != "linux", reason="read out of /proc")
@pytest.mark.parametrize(("name", "how"), [("torch", "again"), ("mlx", "again"), ("mlx", "kept")])
def test_a_pass_takes_no_more_than_was_planned(name: str, how: str, model: Path) -> None:
    """With layers computed again a process with torch held three times what was told, one with MLX twice."""
    require({"torch": "peft", "mlx": "mlx_lm"}[name])
    words = [sys.executable, "-c", MEASURE, name, str(model), how]
    root = Path(__file__).parents[2]
    done = subprocess.run(words, capture_output=True, text=True, check=False, cwd=root)
    assert done.returncode == 0, done.stderr
    peak, told = json.loads(done.stdout.splitlines()[-1])
    assert peak <= told
