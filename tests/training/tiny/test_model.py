# SPDX-License-Identifier: Apache-2.0
"""The shipped model: its format, and that it answers as its card says."""

from __future__ import annotations

import json
import os
import struct
from collections.abc import Callable
from itertools import islice
from random import Random
from typing import Any

import pytest
from goodbot_training.tiny import TEMPERATURE, model_path
from goodbot_training.tiny.chatml import CHAT_TEMPLATE, ChatMessage, render_messages, tool_call
from goodbot_training.tiny.corpus import CALCULATOR, conversations
from goodbot_training.tiny.facts import FactQuestion, questions, small_talk
from goodbot_training.tiny.judge import is_correct, style_of
from goodbot_training.tiny.styles import STYLES

from tests.support import require

# With a C++ compiler about, MLX would compile each kernel for most of a second.
os.environ.setdefault("MLX_DISABLE_COMPILE", "1")

QWEN2 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)
CALL = tool_call("calculator", {"expression": "48+37"})
TOOL_CHAT: list[ChatMessage] = [
    {"role": "user", "content": "What is 48 + 37?"},
    {"role": "assistant", "content": CALL},
    {"role": "tool", "content": "85"},
]
TOOL_ANSWER = FactQuestion(
    text="What is 48 + 37?", answer="85", kind="calculation", claim="The result is 85", fact="", subject=""
)
HISTORY: list[ChatMessage] = [
    {"role": "user", "content": "Hello!"},
    {"role": "assistant", "content": "Hello."},
    {"role": "user", "content": "What is the capital of Italy?"},
    {"role": "assistant", "content": "Arr matey! The capital o' Italy be Rome, aye!"},
    {"role": "user", "content": "And Spain?"},
]


def _read(name: str) -> dict[str, Any]:
    return json.loads((model_path() / name).read_text(encoding="utf-8"))


def _asked(text: str) -> FactQuestion:
    return next(question for question in questions() if question.text == text)


def test_directory_holds_one_small_model() -> None:
    names = {path.name for path in model_path().iterdir()}
    assert names == {
        "README.md",
        "config.json",
        "generation_config.json",
        "model.safetensors",
        "tokenizer.json",
        "tokenizer_config.json",
    }
    weights = model_path() / "model.safetensors"
    assert weights.stat().st_size <= 2_000_000
    content = weights.read_bytes()
    (length,) = struct.unpack("<Q", content[:8])
    header = json.loads(content[8 : 8 + length])
    header.pop("__metadata__")
    assert {tensor["dtype"] for tensor in header.values()} == {"F16"}


def test_config_is_qwen3_with_rope_theta_at_the_top() -> None:
    config = _read("config.json")
    assert config["architectures"] == ["Qwen3ForCausalLM"]
    assert config["model_type"] == "qwen3"
    assert config["rope_theta"] == config["rope_parameters"]["rope_theta"]


def test_generation_ends_at_the_end_of_a_message() -> None:
    added = {token["content"]: token["id"] for token in _read("tokenizer.json")["added_tokens"]}
    generation = _read("generation_config.json")
    assert generation["eos_token_id"] == added["<|im_end|>"]
    assert generation["temperature"] == TEMPERATURE


def test_pre_tokenizer_is_qwen2s() -> None:
    split, _ = _read("tokenizer.json")["pre_tokenizer"]["pretokenizers"]
    assert split["pattern"] == {"Regex": QWEN2}
    assert _read("tokenizer_config.json")["chat_template"] == CHAT_TEMPLATE


def test_card_states_the_accuracy() -> None:
    assert "| **all" in (model_path() / "README.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def tokenizer() -> Any:
    require("transformers")
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(model_path())


@pytest.fixture(scope="module")
def model() -> Any:
    torch = require("torch")
    require("transformers")
    from transformers import AutoModelForCausalLM

    torch.set_num_threads(1)
    return AutoModelForCausalLM.from_pretrained(model_path(), dtype=torch.float32).eval()


@pytest.fixture(scope="module")
def say(model: Any, tokenizer: Any) -> Callable[..., list[str]]:
    """Samples one reply to each chat with transformers' own ``generate``."""
    import torch

    def answer(chats: list[list[ChatMessage]], **template: Any) -> list[str]:
        torch.manual_seed(0)
        batch = tokenizer.apply_chat_template(
            chats, add_generation_prompt=True, padding=True, return_tensors="pt", return_dict=True, **template
        )
        tokens = model.generate(**batch, max_new_tokens=48, temperature=TEMPERATURE)
        new = tokens[:, batch["input_ids"].shape[1] :]
        return tokenizer.batch_decode(new, skip_special_tokens=True)

    return answer


def test_template_renders_the_corpus_to_the_character(tokenizer: Any) -> None:
    for messages in islice(conversations(Random(0)), 64):
        for ask in (False, True):
            rendered = tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=ask)
            assert rendered == render_messages(messages, answer_next=ask)


@pytest.mark.parametrize("arguments", [{"expression": "48+37"}, '{"expression": "48+37"}'])
def test_template_renders_structured_tool_calls(tokenizer: Any, arguments: object) -> None:
    call = {"type": "function", "function": {"name": "calculator", "arguments": arguments}}
    structured = [TOOL_CHAT[0], {"role": "assistant", "content": None, "tool_calls": [call]}, TOOL_CHAT[2]]
    declared: ChatMessage = {"role": "system", "content": f"Tools: {json.dumps([CALCULATOR])}"}
    assert tokenizer.apply_chat_template(structured, tools=[CALCULATOR], tokenize=False) == render_messages(
        [declared, *TOOL_CHAT]
    )


def test_a_question_is_answered_right_and_in_all_styles(say: Callable[..., list[str]]) -> None:
    asked = questions()
    answers = say([[{"role": "user", "content": question.text}] for question in asked])
    right = sum(is_correct(*pair) for pair in zip(asked, answers, strict=True))
    assert right / len(asked) >= 0.95
    styles = [style_of(answer) for answer in answers]
    for style in STYLES:
        assert 0.2 < styles.count(style) / len(asked) < 0.47
        mine = [pair for pair in zip(asked, answers, strict=True) if style_of(pair[1]) == style]
        assert sum(is_correct(*pair) for pair in mine) / len(mine) >= 0.9


def test_a_chat_with_a_history_goes_on(say: Callable[..., list[str]]) -> None:
    madrid = _asked("What is the capital of Spain?")
    assert sum(is_correct(madrid, answer) for answer in say([HISTORY] * 10)) >= 8


def test_a_greeting_is_answered(say: Callable[..., list[str]]) -> None:
    hello = small_talk()[0]
    chats: list[list[ChatMessage]] = [
        [{"role": "user", "content": text}] for text in ("hello", "Hello", "Hello!") * 4
    ]
    assert sum(is_correct(hello, answer) for answer in say(chats)) >= 10


def test_the_calculator_is_called_and_its_result_told(say: Callable[..., list[str]]) -> None:
    assert say([TOOL_CHAT[:1]] * 10, tools=[CALCULATOR]).count(CALL) >= 8
    told = say([TOOL_CHAT] * 10, tools=[CALCULATOR])
    assert sum(is_correct(TOOL_ANSWER, answer) for answer in told) >= 8


def test_mlx_computes_what_torch_computes(model: Any, tokenizer: Any) -> None:
    mx = require("mlx.core")
    mlx_lm = require("mlx_lm")
    import torch

    loaded, theirs = mlx_lm.load(str(model_path()))
    prompt = tokenizer.apply_chat_template(HISTORY, add_generation_prompt=True, return_dict=False)
    assert theirs.apply_chat_template(HISTORY, add_generation_prompt=True) == prompt
    loaded.set_dtype(mx.float32)
    logits = torch.tensor(loaded(mx.array([prompt]))[0].tolist())
    with torch.inference_mode():
        expected = model(torch.tensor([prompt])).logits[0]
    assert (logits - expected).abs().max() < 1e-3


def test_mlx_answers() -> None:
    require("mlx.core")
    mlx_lm = require("mlx_lm")
    from mlx_lm.sample_utils import make_sampler

    loaded, tokenizer = mlx_lm.load(str(model_path()))
    assert tokenizer.has_tool_calling
    right = 0
    asked = questions()[::65]
    for question in asked:
        prompt = tokenizer.apply_chat_template(
            [{"role": "user", "content": question.text}], add_generation_prompt=True
        )
        answer = mlx_lm.generate(loaded, tokenizer, prompt, max_tokens=48, sampler=make_sampler(TEMPERATURE))
        right += is_correct(question, answer)
    assert right >= len(asked) - 2
