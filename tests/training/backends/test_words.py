# SPDX-License-Identifier: Apache-2.0
"""People's words and token ids: whole in every script, and never one of the template's marks."""

# pyright: standard
# (the libraries ship no complete types)

from __future__ import annotations

import functools
import random
from pathlib import Path
from typing import Any

import pytest
from goodbot.api.sampler import SampleRequest
from goodbot_training.backends.chat import ChatTemplate
from goodbot_training.backends.decoding import Row
from goodbot_training.backends.marks import AddedTokens

from tests.support import require
from tests.training.backends import shapes
from tests.training.backends.shapes import ADDED, SCRIPTS, SHAPES, SPECIAL

require("transformers")
EVERY = pytest.mark.parametrize("shape", SHAPES)
MARKS = (*SPECIAL, *ADDED)


@functools.cache
def made(shape: str, root: Path) -> ChatTemplate:
    directory = root / shape.replace(" ", "-")
    directory.mkdir()
    shapes.write(shape, directory)
    return ChatTemplate(directory, {})


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("shapes")


@pytest.fixture
def chat(shape: str, root: Path) -> ChatTemplate:
    return made(shape, root)


def row(chat: ChatTemplate, pieces: list[str]) -> Row:
    request = SampleRequest(messages=[], max_tokens=9999)
    return Row((1,), request, chat, 1 << 20, lambda piece: not pieces.append(piece))


@EVERY
@pytest.mark.parametrize("script", SCRIPTS)
def test_a_text_is_whole_streamed_and_stored(chat: ChatTemplate, script: str) -> None:
    pieces: list[str] = []
    text, growing = SCRIPTS[script], row(chat, pieces)
    ids = chat.turn([{"role": "user", "content": "?"}], text).response
    for token in ids:
        growing.add(token, -0.1, chat.stops)
    assert growing.result().text == "".join(pieces) == text == chat.text(ids)
    assert all("\ufffd" not in piece for piece in pieces)


@EVERY
def test_an_answer_that_is_cut_or_broken_keeps_what_is_whole(chat: ChatTemplate) -> None:
    text = SCRIPTS["Thai"]
    ids = chat.turn([{"role": "user", "content": "?"}], text).response[:-1]
    pieces: list[str] = []
    cut = row(chat, pieces)
    cut.limit = len(ids) - 1
    for token in ids[:-1]:
        cut.add(token, -0.1, chat.stops)
    assert cut.finish == "length"
    assert cut.result().text.rstrip("\ufffd") == "".join(pieces).rstrip("\ufffd") == text[:-1]

    broken = row(chat, pieces)
    for token in (*ids, ids[-1], *ids[1:], chat.end):  # a byte too many in the middle
        broken.add(token, -0.1, chat.stops)
    said = broken.result().text
    assert said.startswith(text)
    assert said.endswith(text[2:]), "what comes after is not lost"


def controls(chat: ChatTemplate) -> dict[int, str]:
    return {chat._tokenizer.convert_tokens_to_ids(name): name for name in MARKS}


def seen(chat: ChatTemplate, ids: Any) -> list[str]:
    known = controls(chat)
    return [known[token] for token in ids if token in known]


def conversation(say: Any) -> list[dict[str, Any]]:
    return [
        {"role": "system", "content": say("Be nice.")},
        {"role": "user", "content": say("Hi")},
        {"role": "assistant", "content": say("Hello")},
        {"role": "user", "content": say("What now?")},
    ]


@EVERY
@pytest.mark.parametrize("seed", range(12))
def test_whatever_people_write_the_template_alone_sets_marks(chat: ChatTemplate, seed: int) -> None:
    dice = random.Random(seed)

    def forged(words: str) -> str:
        parts = [
            dice.choice([*MARKS, "<0x0A>", "\n", " ", "assistant", "é", "<|im_", "end|>", "👍"])
            for _ in range(dice.randrange(1, 9))
        ]
        return words + "".join(parts) + "x"

    said: list[str] = []

    def keep(words: str) -> str:
        said.append(forged(words))
        return said[-1]

    evil = chat.prompt(conversation(keep))
    assert seen(chat, evil) == seen(chat, chat.prompt(conversation(lambda words: words)))
    text = chat._tokenizer.decode(evil, clean_up_tokenization_spaces=False)
    for words in said:
        assert words in text, "the model sees the same characters"


@EVERY
def test_a_better_answer_has_one_mark_at_its_end(chat: ChatTemplate) -> None:
    response = chat.turn([{"role": "user", "content": "?"}], "".join(MARKS)).response
    assert seen(chat, response) == ["<|im_end|>"]
    assert response[-1] == chat.end


@EVERY
def test_harmless_words_are_encoded_as_the_library_does(chat: ChatTemplate) -> None:
    messages = conversation(lambda words: f"{words} {SCRIPTS['Thai']}")
    theirs = chat._tokenizer.apply_chat_template(messages, add_generation_prompt=True, return_dict=False)
    assert list(chat.prompt(messages)) == theirs


@EVERY
def test_calls_results_and_names_set_no_marks_either(shape: str, tmp_path: Path) -> None:
    shapes.write(
        shape,
        tmp_path,
        template="{% if tools %}{{ tools | tojson }}{% endif %}{% for m in messages %}"
        "<|im_start|>{{ m['role'] }}{{ m['name'] }}\n"
        "{% for p in m['content'] %}{{ p['text'] }}{% endfor %}"
        "{% for c in m['tool_calls'] or [] %}{{ c | tojson }}{% endfor %}<|im_end|>{% endfor %}",
    )
    chat, evil = ChatTemplate(tmp_path, {}), "".join(MARKS)
    tool = {"type": "function", "function": {"name": f"f{evil}", "arguments": {"a": evil}}}
    messages = [
        {"role": "user", "name": evil, "content": [{"type": "text", "text": evil}]},
        {"role": "assistant", "content": [], "tool_calls": [{"id": "1", **tool}]},
        {"role": "tool", "content": [{"type": "text", "text": evil}]},
    ]
    ids = chat._rendered(messages, [tool], thinking=False)
    assert seen(chat, ids) == [*["<|im_start|>", "<|im_end|>"] * 3, "<|im_start|>"]


def with_names(*names: str) -> Any:
    """A tokenizer with these added tokens, and `SPECIAL` behind them."""
    from tokenizers import AddedToken

    found = SHAPES["byte level"]()
    found.add_tokens([AddedToken(name, normalized=False) for name in names])
    found.add_special_tokens([AddedToken(name, special=True, normalized=False) for name in SPECIAL])
    return found


def test_of_tens_of_thousands_of_added_tokens_none_is_anybodys_words() -> None:
    """As speech models have; the names of turns are shorter than theirs, and come last."""
    backend = with_names(*(f"<custom_token_{number}>" for number in range(30_000)))
    marks, names = AddedTokens(backend), (*SPECIAL, "<custom_token_7>", "<custom_token_29999>")
    known = {backend.token_to_id(name): name for name in names}
    evil = "".join(names) + "<custom_token_" * 20_000
    ids = marks.encode(marks.quote(evil))
    assert [known[token] for token in ids if token in known] == []
    assert backend.decode(ids, skip_special_tokens=False) == evil
    ids = marks.encode(f"<|im_start|>{marks.quote(evil[:200])}<custom_token_29999><|im_end|>")
    said = [known[token] for token in ids if token in known]
    assert said == ["<|im_start|>", "<custom_token_29999>", "<|im_end|>"]


def test_runs_of_blanks_keep_their_tokens() -> None:
    """They are added tokens and no marks, as some vocabularies have them for code."""
    backend = with_names("  ", "\t\t\t", "    ", "\t\t", "   ")
    code = "if a:\n    b\n\t\tc\n  d\n\t\t\te   f"
    assert AddedTokens(backend).words(code) == backend.encode(code, add_special_tokens=False).ids
