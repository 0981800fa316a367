# SPDX-License-Identifier: Apache-2.0
"""I2: tiny random models with the quirks of real ones: they answer, or there is a sentence why not."""

# pyright: standard
# (the frameworks ship no complete types)

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from goodbot.api.backend import LoraSettings
from goodbot.api.sampler import Sampled, SampleRequest
from goodbot.base.errors import GoodbotError
from goodbot.cli.doctor.weights import problems
from goodbot_training.tiny import model_path

from tests.support import require

torch = require("torch")
transformers = require("transformers")
require("peft")
from goodbot_training.backends.torch.trainer import TorchBackend  # noqa: E402

TINY = model_path()
END, VOCABULARY = 2, 1536
ASKED = [{"role": "user", "content": "What colour is grass?"}]
LLAMA: dict[str, Any] = {
    "vocab_size": VOCABULARY,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "intermediate_size": 48,
    "max_position_embeddings": 128,
    "eos_token_id": END,
    "bos_token_id": None,
    "pad_token_id": None,
}


def llama(**more: Any) -> Any:
    torch.manual_seed(0)
    return transformers.LlamaForCausalLM(transformers.LlamaConfig(**{**LLAMA, **more}))


def gpt2() -> Any:
    torch.manual_seed(0)
    return transformers.GPT2LMHeadModel(
        transformers.GPT2Config(
            vocab_size=VOCABULARY,
            n_positions=64,
            n_embd=32,
            n_layer=2,
            n_head=4,
            eos_token_id=END,
            bos_token_id=None,
        )
    )


def put(directory: Path, model: Any) -> Path:
    model.save_pretrained(directory)
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(TINY / name, directory)
    return directory


def loaded(directory: Path) -> Any:
    backend = TorchBackend()
    backend.load(directory, lora=LoraSettings(), seed=0)
    return backend


def answer(directory: Path, words: str = "", most: int = 24, temperature: float = 1.0) -> Any:
    """What the sampler gives back, or why it gives nothing."""
    sampler = loaded(directory).sampler()
    sampler.activate(0)
    messages = [{"role": "user", "content": words}] if words else ASKED
    request = SampleRequest(messages=messages, max_tokens=most, temperature=temperature, seed=3)
    sampler.start(1, request, 0)
    while sampler.writes():
        for _, ended in sampler.step():
            return ended
    raise AssertionError("nothing came back")


def changed(file: Path, **fields: Any) -> None:
    known = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    file.write_text(json.dumps({**known, **fields}), encoding="utf-8")


def several_ends(at: Path) -> None:
    changed(at / "generation_config.json", eos_token_id=[END, 5, 6])


def no_end(at: Path) -> None:
    changed(at / "tokenizer_config.json", eos_token=None)
    changed(at / "config.json", eos_token_id=None)
    (at / "generation_config.json").unlink(missing_ok=True)


def end_outside(at: Path) -> None:
    changed(at / "config.json", eos_token_id=99999)
    (at / "generation_config.json").unlink(missing_ok=True)


def generation_is_a_list(at: Path) -> None:
    (at / "generation_config.json").write_text("[]")


def template_elsewhere(name: str) -> Callable[[Path], None]:
    def change(at: Path) -> None:
        config = json.loads((at / "tokenizer_config.json").read_text(encoding="utf-8"))
        template = config.pop("chat_template")
        (at / "tokenizer_config.json").write_text(json.dumps(config), encoding="utf-8")
        text = json.dumps({"chat_template": template}) if name.endswith("json") else template
        (at / name).write_text(text, encoding="utf-8")

    return change


def links(at: Path) -> None:
    """As the hub's cache has them."""
    (blobs := at.parent / "blobs").mkdir()
    for number, file in enumerate(sorted(at.iterdir())):
        file.rename(blobs / f"sha{number}")
        os.symlink(f"../blobs/sha{number}", file)


def sharded(at: Path) -> None:
    (at / "model.safetensors").unlink()
    llama().save_pretrained(at, max_shard_size="40KB")


YARN = {"rope_type": "yarn", "rope_theta": 10000.0, "factor": 4.0, "original_max_position_embeddings": 64}
ANSWERING: dict[str, tuple[Callable[[], Any], Callable[[Path], None] | None]] = {
    "plain": (llama, None),
    "more rows than the tokenizer has tokens": (lambda: llama(vocab_size=VOCABULARY + 200), None),
    "GPT-2, of 64 positions": (gpt2, None),
    "yarn": (lambda: llama(rope_parameters=YARN), None),
    "several ends": (llama, several_ends),
    "tied embeddings": (lambda: llama(tie_word_embeddings=True), None),
    "no end in any file": (llama, no_end),
    "an end outside the vocabulary": (llama, end_outside),
    "the template in chat_template.jinja": (llama, template_elsewhere("chat_template.jinja")),
    "links to files beside it": (llama, links),
    "in several files": (llama, sharded),
}


@pytest.mark.parametrize("name", ANSWERING)
def test_i2_a_model_with_a_quirk_answers(name: str, tmp_path: Path) -> None:
    made, change = ANSWERING[name]
    directory = put(tmp_path / "m", made())
    if change is not None:
        change(directory)
    ended = answer(directory)
    assert isinstance(ended, Sampled), ended
    assert ended.finish in ("stop", "length")
    assert 0 < len(ended.tokens) <= 24


REFUSED = {
    "generation_config.json is a list": (generation_is_a_list, "cannot be loaded"),
    "the template in chat_template.json": (template_elsewhere("chat_template.json"), "has no chat template"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_i2_what_the_library_does_not_read_is_a_sentence(name: str, tmp_path: Path) -> None:
    change, why = REFUSED[name]
    change(directory := put(tmp_path / "m", llama()))
    with pytest.raises(GoodbotError, match=why):
        loaded(directory)
    if "template" in name:
        assert any("no chat template" in problem for problem in problems(directory)), "doctor says so, too"


@pytest.mark.parametrize("temperature", [0.0, 1e-6])
def test_i2_the_coldest_answer_is_the_likeliest(temperature: float, tmp_path: Path) -> None:
    directory = put(tmp_path / "m", llama())
    ended = answer(directory, temperature=temperature)
    assert ended.tokens == answer(directory, temperature=0.0).tokens


def test_i2_no_token_is_asked_for_behind_the_last_position(tmp_path: Path) -> None:
    """On CUDA such an index ends the process."""
    directory = put(tmp_path / "m", gpt2())
    assert loaded(directory)._model.context == 64
    ended = answer(directory, most=100)
    assert isinstance(ended, Sampled)
    assert len(ended.prompt) + len(ended.tokens) <= 64
    with pytest.raises(GoodbotError, match=r"long|room|see"):
        answer(directory, "grass " * 80)


def no_numbers(at: Path) -> None:
    from safetensors.torch import load_file, save_file

    weights = load_file(at / "model.safetensors")
    weights["model.norm.weight"][:] = float("nan")
    save_file(weights, at / "model.safetensors", metadata={"format": "pt"})


@pytest.mark.parametrize("name", ["weights that are no numbers", "fewer rows than the tokenizer has tokens"])
def test_i2_a_broken_model_is_a_sentence_or_an_answer_and_never_an_error_of_a_library(
    name: str, tmp_path: Path
) -> None:
    few = name.startswith("fewer")
    directory = put(tmp_path / "m", llama(vocab_size=VOCABULARY - 40) if few else llama())
    if not few:
        no_numbers(directory)
    try:
        ended = answer(directory)
    except GoodbotError as error:
        ended = error
    assert isinstance(ended, Sampled | GoodbotError), ended
