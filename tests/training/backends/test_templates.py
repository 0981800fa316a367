# SPDX-License-Identifier: Apache-2.0
"""What a chat template does with a conversation is looked at when a model is loaded, not believed."""

# pyright: standard
# (the libraries ship no complete types)

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from goodbot.base.errors import TrainingError
from goodbot_training.backends.chat import ChatTemplate, context_of

from tests.support import require
from tests.training.backends import shapes
from tests.training.backends.shapes import CHAT, SHAPES

require("transformers")
OPEN = "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
SAY = "<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>\n"
EACH = "{% for m in messages %}" + SAY + "{% endfor %}" + OPEN
TEMPLATES: dict[str, Any] = {
    "plain": CHAT,
    "refuses the system": "{% if messages[0]['role'] == 'system' %}{{ raise_exception('no system') }}"
    "{% endif %}{% for m in messages %}{% if (m['role'] == 'user') != (loop.index0 % 2 == 0) %}"
    "{{ raise_exception('in turn') }}{% endif %}" + SAY + "{% endfor %}" + OPEN,
    "drops the system": "{% for m in messages %}{% if m['role'] != 'system' %}"
    + SAY
    + "{% endif %}{% endfor %}"
    + OPEN,
    "parts": "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{% for line in m['content'] %}"
    "{% if line['type'] == 'text' %}{{ line['text'] }}{% endif %}{% endfor %}<|im_end|>\n{% endfor %}" + OPEN,
    "parts without a system": "{% for m in messages %}{% if m['role'] != 'system' %}<|im_start|>"
    "{{ m['role'] }}\n{% for line in m['content'] %}{{ line['text'] }}{% endfor %}<|im_end|>\n"
    "{% endif %}{% endfor %}" + OPEN,
    "wants a system": "{% if messages[0]['role'] != 'system' %}{{ raise_exception('system first') }}"
    "{% endif %}" + EACH,
    "splits thoughts": "{% for m in messages %}<|im_start|>{{ m['role'] }}\n"
    "{{ m['content'].split('</think>')[-1] }}<|im_end|>\n{% endfor %}" + OPEN,
    "always writes a schema": '{{ \'Calls: {"type": "object"}\n\' }}' + EACH,
    "named": [{"name": "default", "template": EACH}, {"name": "rag", "template": "x"}],
}
ALONE = [{"role": "user", "content": "What colour is grass?"}]
WHOLE = [
    {"role": "system", "content": "Be terse."},
    {"role": "user", "content": "Hi"},
    {"role": "assistant", "content": "Hello."},
    *ALONE,
]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", TEMPLATES)
def test_all_that_is_said_is_in_the_prompt(name: str, shape: str, tmp_path: Path) -> None:
    shapes.write(shape, tmp_path, template=TEMPLATES[name])
    chat = ChatTemplate(tmp_path, {})
    text = chat._tokenizer.decode(chat.prompt(WHOLE), clean_up_tokenization_spaces=False)
    for message in WHOLE:
        assert text.count(message["content"]) == 1
    assert "grass?" in chat._tokenizer.decode(chat.prompt(ALONE))
    assert "'type'" not in text
    assert chat._tokenizer.convert_ids_to_tokens(chat.end) == "<|im_end|>"


@pytest.mark.parametrize(
    ("template", "why"),
    [
        ("{% for m in messages %}{{ m['content'] }", "unexpected '}'"),
        ([{"name": "chat", "template": EACH}, {"name": "rag", "template": "x"}], "no default"),
        ("{% for m in messages %}{{ m['words'] }}{% endfor %}", "leaves out what is said"),
        *(
            (EACH.replace("m['content']", f"m['content']{change}"), "leaves out what is said, or changes it")
            for change in (
                "[:5]",
                " | title",
                " | upper",
                ".split('\\n')[0]",
                " | e",
                " | tojson",
                " | truncate(9)",
                " | replace('<', '')",
                " | string | title",
            )
        ),
        ("{{ raise_exception('never again') }}", "never again"),
        ("{{ messages[0]['content'] / 0 }}", "unsupported operand"),
        ("{{ messages[0]['content'] * 99999999999999 }}", "used: there was not enough memory. "),
        (
            "{% for a in range(10 ** 6) %}{% for b in range(10 ** 6) %}{% endfor %}{% endfor %}",
            "Range too big",
        ),
    ],
)
def test_a_template_that_cannot_be_used_is_a_sentence(template: Any, why: str, tmp_path: Path) -> None:
    shapes.write("byte level", tmp_path, template=template)
    with pytest.raises(TrainingError, match=r"chat template .* cannot be used: .*chat_template\.$") as e:
        ChatTemplate(tmp_path, {})
    assert why in str(e.value)


NEVER_BEGUN = {
    "marks": (EACH.replace(OPEN, ""), "<|im_start|>assistant\n"),
    "words": (
        "{% for m in messages %}{{ m['role'] | title }}: {{ m['content'] }}\n{% endfor %}",
        "Assistant:",
    ),
    "nothing": ("{% for m in messages %}{{ m['content'] + eos_token }}{% endfor %}", ""),
    "a blank": ("{% for m in messages %}{{ ' ' + m['content'] }}{% endfor %}", ""),
}


@pytest.mark.parametrize("name", NEVER_BEGUN)
def test_an_answer_is_begun_as_the_template_begins_one_though_it_does_not_when_asked(
    name: str, tmp_path: Path
) -> None:
    template, opening = NEVER_BEGUN[name]
    shapes.write("byte level", tmp_path, template=template)
    chat = ChatTemplate(tmp_path, {})
    raw = chat._tokenizer.apply_chat_template(WHOLE, tokenize=False, add_generation_prompt=True)
    assert chat._tokenizer.decode(chat.prompt(WHOLE), clean_up_tokenization_spaces=False) == raw + opening
    assert any("add_generation_prompt" in clause for clause in chat.helped) is bool(opening)


@pytest.mark.parametrize("shape", SHAPES)
def test_an_answer_ends_where_the_template_ends_it_whatever_the_files_say(shape: str, tmp_path: Path) -> None:
    shapes.write(shape, tmp_path, eos_token="</s>")
    chat = ChatTemplate(tmp_path, {})
    end, eos = chat._tokenizer.convert_tokens_to_ids(["<|im_end|>", "</s>"])
    assert chat.end == end
    assert chat.stops == {end, eos}
    assert chat.turn(ALONE, "Green.").response[-1] == end


def test_the_context_is_what_there_are_positions_for() -> None:
    assert context_of({"n_positions": 64}) == 64
    assert context_of({"text_config": {"max_position_embeddings": 32}}) == 32
    assert context_of({"max_position_embeddings": 16}) == 16
    assert context_of({}) == 1 << 20
    for name in ("n_ctx", "max_seq_len", "max_sequence_length", "seq_length", "seq_len"):
        assert context_of({name: 64}) == 64
    for spelled in ("64", 64.0):
        assert context_of({"max_position_embeddings": spelled}) == 64
    for none in ("x", 1e999, -1, True, [64], {}, "9" * 5000, 10**30):
        assert context_of({"max_position_embeddings": none, "n_ctx": 64}) == 64
    for inner in ("llm_config", "language_config", "thinker_config"):
        assert context_of({inner: {"seq_len": 64}, "seq_len": 8}) == 64
    assert context_of({"thinker_config": {"text_config": {"seq_len": 64}}}) == 64
