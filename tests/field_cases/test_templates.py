# SPDX-License-Identifier: Apache-2.0
"""F6, F8, I3: the tiny model with the templates of real ones, and with those that cannot be used."""

# pyright: standard
# (the libraries ship no complete types)

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from goodbot.base.errors import TrainingError

from tests.support import require

require("transformers")
from tests.training.test_thoughts import chat  # noqa: E402

TURN = "<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>\n"
OPEN = "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
EACH = "{% for m in messages %}" + TURN + "{% endfor %}"
USED: dict[str, Any] = {
    "as Gemma's: raises on a system message": (
        "{{ bos_token }}{% if messages[0]['role'] == 'system' %}"
        "{{ raise_exception('System role not supported') }}{% endif %}"
        "{% for m in messages %}{% if (m['role']=='user') != (loop.index0 % 2 == 0) %}"
        "{{ raise_exception('roles must alternate') }}{% endif %}"
        "<|im_start|>{{ 'model' if m['role']=='assistant' else m['role'] }}\n"
        "{{ m['content'] | trim }}<|im_end|>\n{% endfor %}"
        "{% if add_generation_prompt %}<|im_start|>model\n{% endif %}"
    ),
    "as those for pictures: goes through parts": (
        "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{% for line in m['content'] %}"
        "{% if line['type']=='text' %}{{ line['text'] }}{% elif line['type']=='image' %}<image>{% endif %}"
        "{% endfor %}<|im_end|>\n{% endfor %}" + OPEN
    ),
    "leaves system messages out in silence": (
        "{% for m in messages %}{% if m['role']=='user' %}<|im_start|>user\n{{ m['content'] }}<|im_end|>\n"
        "{% elif m['role']=='assistant' %}<|im_start|>assistant\n{{ m['content'] }}<|im_end|>\n"
        "{% endif %}{% endfor %}" + OPEN
    ),
    "as R1's: opens a thought": (
        "{% for m in messages %}<|im_start|>{{ m['role'] }}\n"
        "{{ m['content'].split('</think>')[-1] }}<|im_end|>\n{% endfor %}"
        "{% if add_generation_prompt %}<|im_start|>assistant\n<think>\n{% endif %}"
    ),
    "tells the date": EACH + "Today {{ strftime_now('%d %b %Y') }}" + OPEN,
    "wants a system message first": (
        "{% if messages[0]['role'] != 'system' %}{{ raise_exception('first must be system') }}{% endif %}"
        + EACH
        + OPEN
    ),
    "several by name, one the default": [
        {"name": "default", "template": EACH + "<|im_start|>assistant\n"},
        {"name": "tool_use", "template": "x"},
    ],
    "adds texts up": (
        "{% for m in messages %}{{ '<|im_start|>' + m['role'] + '\n' + m['content'] + '<|im_end|>\n' }}"
        "{% endfor %}" + OPEN
    ),
    # Siblings.
    "as Llama 2's: the system within the question": (
        "{% if messages[0]['role'] == 'system' %}{% set s = messages[0]['content'] %}"
        "{% set rest = messages[1:] %}{% else %}{% set s = '' %}{% set rest = messages %}{% endif %}"
        "{% for m in rest %}{% if m['role'] == 'user' %}[INST] "
        "{% if loop.first and s %}<<SYS>>\n{{ s }}\n<</SYS>>\n\n{% endif %}{{ m['content'] }} [/INST]"
        "{% else %} {{ m['content'] }} <|im_end|>{% endif %}{% endfor %}"
    ),
    "as Phi's: marks by role": (
        "{% for m in messages %}{{ '<|' + m['role'] + '|>\n' + m['content'] + '<|im_end|>\n' }}{% endfor %}"
        "{% if add_generation_prompt %}{{ '<|assistant|>\n' }}{% endif %}"
    ),
    "parts or text, whichever comes": (
        "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{% if m['content'] is string %}"
        "{{ m['content'] }}{% else %}{% for p in m['content'] %}{{ p['text'] }}{% endfor %}{% endif %}"
        "<|im_end|>\n{% endfor %}" + OPEN
    ),
    "writes the rules in capitals around what is said": (
        "{% for m in messages %}<|im_start|>{{ m['role'] | upper }}\n{{ m['content'] }}<|im_end|>\n"
        "{% endfor %}{% if add_generation_prompt %}<|im_start|>ASSISTANT\n{% endif %}"
    ),
}
ALONE = [{"role": "user", "content": "What colour is grass?"}]
WHOLE = [
    {"role": "system", "content": "Be terse."},
    {"role": "user", "content": "Hi"},
    {"role": "assistant", "content": "Hello."},
    *ALONE,
]


@pytest.mark.parametrize("name", USED)
def test_f8_the_question_and_the_rules_are_in_the_prompt(name: str, tmp_path: Path) -> None:
    loaded = chat(tmp_path / "m", USED[name])
    for messages in (ALONE, WHOLE):
        text = loaded._tokenizer.decode(loaded.prompt(messages), clean_up_tokenization_spaces=False)
        for message in messages:
            assert text.count(message["content"]) == 1


REFUSED: dict[str, tuple[Any, str]] = {
    "several by name, none the default": (
        [
            {"name": "chat", "template": "{% for m in messages %}{{ m['content'] }}{% endfor %}"},
            {"name": "rag", "template": "x"},
        ],
        "no default",
    ),
    "it is no Jinja": ("{% for m in messages %}{{ m['content'] }", "unexpected '}'"),
    # Siblings.
    "a filter that nobody knows": (
        "{% for m in messages %}{{ m['content'] | shout }}{% endfor %}",
        "No filter named 'shout'",
    ),
    "a loop that is not closed": ("{% for m in messages %}{{ m['content'] }}", "Unexpected end of template"),
    "it asks for a file": ("{% include 'x.jinja' %}", "cannot be used"),
    "it forgets the question": ("{% for m in messages[:-1] %}" + TURN + "{% endfor %}" + OPEN, "leaves out"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_i3_a_template_that_cannot_be_used_is_one_sentence(name: str, tmp_path: Path) -> None:
    template, why = REFUSED[name]
    with pytest.raises(TrainingError) as told:
        chat(tmp_path / "m", template)
    said = str(told.value)
    assert why in said
    assert "chat template" in said
    assert said.endswith("mend its chat_template.")
    assert "Traceback" not in said
    assert "\n" not in said
