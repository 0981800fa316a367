# SPDX-License-Identifier: Apache-2.0
"""Agents' conversations, for templates that know only users and assistants in turn."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from goodbot.api.plain import plainer
from goodbot.base.errors import TrainingError
from goodbot_training.backends.chat import ChatTemplate

from tests.support import require
from tests.training.conftest import write_tokenizer

CALL = {"id": "1", "type": "function", "function": {"name": "add", "arguments": '{"a": 2}'}}
AGENT: list[dict[str, Any]] = [
    {"role": "system", "content": "Be short."},
    {"role": "user", "content": "2 + 2?"},
    {"role": "assistant", "content": "", "tool_calls": [CALL]},
    {"role": "tool", "tool_call_id": "1", "content": "4"},
]
PICKY = (
    "{% for m in messages %}{% if m['role'] != (['user', 'assistant'][loop.index0 % 2]) %}"
    "{{ raise_exception('only users and assistants in turn') }}{% endif %}"
    "<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>\n{% endfor %}"
)


def test_the_same_words_are_said_by_two_in_turn() -> None:
    assert plainer(AGENT) == [
        {"role": "user", "content": "Be short.\n\n2 + 2?"},
        {"role": "assistant", "content": 'Call: add({"a": 2})'},
        {"role": "user", "content": "Result:\n4"},
    ]
    assert plainer([{"role": "assistant", "content": "Hello"}])[0]["role"] == "user"
    assert plainer([{"role": "user", "content": None, "tool_calls": ["odd"]}])


@pytest.fixture
def picky(tmp_path: Path) -> Path:
    require("transformers")
    write_tokenizer(tmp_path)
    file = tmp_path / "tokenizer_config.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), "chat_template": PICKY}))
    return tmp_path


def test_a_template_that_refuses_tools_gets_them_as_text(picky: Path) -> None:
    chat = ChatTemplate(picky, {})
    text = chat._tokenizer.decode(chat.prompt(AGENT))
    assert 'Call: add({"a": 2})' in text
    assert "Result:\n4" in text
    assert chat.prompt(AGENT) == chat.prompt(plainer(AGENT))


def test_what_no_rendering_helps_with_is_refused(picky: Path) -> None:
    file = picky / "tokenizer_config.json"
    always = "{% if messages[0]['content'] == 'no' %}{{ raise_exception('never') }}{% endif %}" + PICKY
    file.write_text(json.dumps({**json.loads(file.read_text()), "chat_template": always}))
    with pytest.raises(TrainingError, match="refuses this conversation"):
        ChatTemplate(picky, {}).prompt([{"role": "user", "content": "no"}])
