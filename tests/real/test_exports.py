# SPDX-License-Identifier: Apache-2.0
"""What was learnt on the real model, in other programs' formats: they must say what the bot itself says.

The yardstick is not our own reader: peft, and for GGUF the `gguf` package and transformers' own loader.
"""

from __future__ import annotations

import asyncio
import math
import re
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from goodbot.api.manners import Manners
from goodbot.base import spawn
from goodbot.base.clock import SystemClock
from goodbot.inference.servers.llama_process import LlamaProcess

from tests.core.inference.servers import llama_wheel
from tests.real import yardstick
from tests.real.conftest import Pupil
from tests.real.model import HEADS, KEY_HEADS, TENSORS, in_halves
from tests.real.taught import Turn
from tests.support import require

pytestmark = [
    pytest.mark.real,
    pytest.mark.timeout(2400),
    pytest.mark.filterwarnings("ignore:`is_gradient_checkpointing`:FutureWarning"),  # peft's, not ours
]
LIKELIEST = 2000
"""So many tokens llama.cpp tells the chances of. Answers are cut at `top_p`, so theirs are among them."""


def agree(causal: Any, turns: list[Turn], allowed: float) -> None:
    """The log-probs that the bot stored with its answers are those of this model."""
    for turn in turns:
        own = np.subtract(turn.logprobs, turn.lifts)
        np.testing.assert_allclose(own, yardstick.own_logprobs(causal, turn), atol=allowed)


def nearly(turns: list[Turn], found: list[np.ndarray], mean: float = 0.08, *, worst: float = 1.0) -> None:
    """Eight bits a weight: most tokens are hardly off, and none is far.

    Tokens are off by .02 to .05 on average, and without the adapter by .09 to .20. The worst token of an
    answer is off by .07 to .38, so a limit on that would be a matter of luck.
    """
    pairs = zip(turns, found, strict=True)
    apart = np.concatenate([np.abs(np.subtract(t.logprobs, t.lifts) - own) for t, own in pairs])
    assert apart.mean() < mean, apart
    assert apart.max() < worst, apart


def differs(causal: Any, turns: list[Turn]) -> bool:
    return any(
        np.abs(np.subtract(t.logprobs, t.lifts) - yardstick.own_logprobs(causal, t)).max() > 0.02
        for t in turns
    )


def alike(turns: list[Turn], found: list[np.ndarray], bare: Any) -> float:
    """How much what is found differs from the base at the tokens where what is learnt does: -1 to 1.

    What rounding changes has nothing to do with the adapter: where that is missing, this is about 0.
    """
    own = [yardstick.own_logprobs(bare, turn) for turn in turns]
    learnt = [np.subtract(turn.logprobs, turn.lifts) - base for turn, base in zip(turns, own, strict=True)]
    seen = [there - base for there, base in zip(found, own, strict=True)]
    return float(np.corrcoef(np.concatenate(learnt), np.concatenate(seen))[0, 1])


def exported(pupil: Pupil, kind: str, path: Path, version: str = "1") -> Path:
    said = pupil.bot.done("adapters", "export", version, "--format", kind, "--out", str(path))
    assert "read back and compared" in said
    return path


def test_peft_says_what_the_bot_says(pupil: Pupil, tmp_path: Path) -> None:
    peft = require("peft")
    causal = yardstick.load(pupil.bot.model)
    assert differs(causal, pupil.after), "without the adapter it is another model"
    out = exported(pupil, "peft", tmp_path / "v1")
    agree(peft.PeftModel.from_pretrained(causal, str(out)), pupil.after, 5e-3)


def test_a_gguf_adapter_says_what_the_bot_says(pupil: Pupil, tmp_path: Path) -> None:
    """As llama.cpp adds it: alpha / rank · B A on the tensor of that name, q and k in its own order."""
    gguf, torch = require("gguf"), require("torch")
    reader = gguf.GGUFReader(exported(pupil, "gguf", tmp_path / "v1.gguf"))
    alpha = float(reader.get_field("adapter.lora.alpha").contents())
    halves = {tensor.name: np.asarray(tensor.data) for tensor in reader.tensors}
    causal = yardstick.load(pupil.bot.model)
    added = 0
    for name in {name.removesuffix(".lora_a") for name in halves if name.endswith(".lora_a")}:
        a, b = halves[f"{name}.lora_a"], halves[f"{name}.lora_b"]
        change = alpha / len(a) * (b @ a)
        found = re.fullmatch(r"blk\.(\d+)\.(\w+)\.weight", name)
        assert found, name
        part = TENSORS[found[2]]
        if part.endswith(("q_proj", "k_proj")):
            change = in_halves(change, HEADS if part.endswith("q_proj") else KEY_HEADS)
        with torch.no_grad():
            weight = causal.get_submodule(f"model.layers.{found[1]}.{part}").weight
            weight += torch.from_numpy(np.ascontiguousarray(change, np.float32))
        added += 1
    assert added == 7 * causal.config.num_hidden_layers
    agree(causal, pupil.after, 5e-3)


def test_a_gguf_model_says_nearly_what_the_bot_says(pupil: Pupil, tmp_path: Path) -> None:
    """Base and adapter in one file of 8 bits a weight, read by transformers with its own names and order."""
    transformers, torch = require("transformers"), require("torch")
    out = exported(pupil, "gguf-model", tmp_path / "v1.gguf")
    causal = transformers.AutoModelForCausalLM.from_pretrained(
        str(tmp_path), gguf_file=out.name, dtype=torch.float32
    )
    assert causal.config.num_key_value_heads == KEY_HEADS
    causal = causal.eval()
    nearly(pupil.after, [yardstick.own_logprobs(causal, turn) for turn in pupil.after])
    tokenizer = transformers.AutoTokenizer.from_pretrained(str(tmp_path), gguf_file=out.name)
    for turn in pupil.after:
        assert tokenizer.decode(turn.prompt) == pupil.bot.text(turn.prompt)
        assert tokenizer(pupil.bot.text(turn.prompt)).input_ids == turn.prompt


def test_llama_cpp_says_what_the_bot_says(pupil: Pupil, tmp_path: Path) -> None:
    """llama.cpp's own numbers, of its Python package's server, started and locked up as our driver does it.

    The base in 16 bits and our adapter beside it are what the bot computes with. For a whole model in 8 bits
    llama.cpp also rounds to 8 bits what flows through it: tokens of the bare base are off by .06 so, the
    worst of 51 by .38, and by .002 in 16 bits. What was learnt in one round may be as little, so that no
    distance tells whether it is there; at which tokens they differ from the base does.
    """
    require(llama_wheel.PACKAGE)
    base = exported(pupil, "gguf", tmp_path / "base.gguf", version="base")
    adapter = exported(pupil, "gguf", tmp_path / "v1-adapter.gguf")
    nearly(pupil.after, llama_cpp(pupil.after, base, adapter), 0.01, worst=0.1)
    whole = llama_cpp(pupil.after, exported(pupil, "gguf-model", tmp_path / "v1.gguf"))
    nearly(pupil.after, whole, 0.2)
    if find_spec("torch"):  # which tells what the bare base says
        assert alike(pupil.after, whole, yardstick.load(pupil.bot.model)) > 0.5


def llama_cpp(turns: list[Turn], model: Path, adapter: Path | None = None) -> list[np.ndarray]:
    """log π of the tokens of each answer, at its temperature."""
    words = [str(llama_wheel.program(model.parent)), "--model", str(model), "--n-gpu-layers", "0"]
    words += ["--parallel", "1", "--ctx-size", "512", "--cache-ram", "0", "--threads", "1"]
    environ, clock, manners = spawn.child_environment(), SystemClock(), Manners()
    process = LlamaProcess(
        "exported", words, weights=[model], adapter=adapter, environ=environ, clock=clock, manners=manners
    )

    async def told(turn: Turn, at: int) -> float:
        body = {
            "prompt": [*turn.prompt, *turn.tokens[:at]],
            "n_predict": 1,
            "temperature": turn.temperature,
            "samplers": ["temperature"],
            "n_probs": LIKELIEST,
            "post_sampling_probs": True,
        }
        [one] = (await process.upstream.ask("/completion", body)).body["completion_probabilities"]
        [chance] = [entry["prob"] for entry in one["top_probs"] if entry["id"] == turn.tokens[at]]
        return math.log(chance)

    async def all_() -> list[np.ndarray]:
        await process.start()
        try:
            return [np.array([await told(turn, at) for at in range(len(turn.tokens))]) for turn in turns]
        finally:
            await process.stop()

    return asyncio.run(all_())
