# SPDX-License-Identifier: Apache-2.0
"""What a family's model is asked, where its answer ends, and what of it is shown: no weights needed."""

# pyright: standard
# (the libraries ship no complete types)

from __future__ import annotations

import functools
import json
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from goodbot.api import marks as served
from goodbot.api.completions import with_tools
from goodbot.api.sampler import SampleRequest

from tests.ordinary import ORDINARY
from tests.support import require
from tests.training.backends.shapes import SCRIPTS
from tests.training.zoo import making
from tests.training.zoo.dialects import DIALECTS, ROWS, Dialect

require("transformers")

from goodbot_training.backends.chat import ChatTemplate  # noqa: E402
from goodbot_training.backends.decoding import Row  # noqa: E402

EVERY = pytest.mark.parametrize("row", ROWS)
THINKING = pytest.mark.parametrize("row", [r for r, (_, d) in ROWS.items() if DIALECTS[d].thought])
BREAKER = "\u2060"
ASKED = [{"role": "user", "content": "What colour is grass?"}]


@pytest.fixture
def dialect(row: str) -> Dialect:
    return DIALECTS[ROWS[row][1]]


@functools.cache
def loaded(files: Path, eos: int) -> ChatTemplate:
    return ChatTemplate(files, {"eos_token_id": eos})


@pytest.fixture
def chat(files: Path, dialect: Dialect) -> ChatTemplate:
    return loaded(files, making.tokens(dialect)[dialect.eos])


def conversation(say: Any) -> list[dict[str, Any]]:
    return [
        {"role": "system", "content": say("Be nice.")},
        {"role": "user", "content": say("Hi")},
        {"role": "assistant", "content": say("Hello")},
        {"role": "user", "content": say("What now?")},
    ]


def agents(say: Any) -> list[dict[str, Any]]:
    """A conversation with a tool, its call and its result."""
    tool = {"name": "look", "description": say("It looks."), "parameters": {"type": "object"}}
    call = {"name": "look", "arguments": {"where": say("outside")}}
    messages = [
        {"role": "system", "content": say("Be nice.")},
        {"role": "user", "content": say("Hi")},
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [{"id": "call12345", "type": "function", "function": call}],
        },
        {"role": "tool", "tool_call_id": "call12345", "content": say("It rains.")},
        {"role": "user", "content": say("What now?")},
    ]
    return list(with_tools(messages, [{"type": "function", "function": tool}]))


def marks(chat: ChatTemplate, dialect: Dialect, ids: tuple[int, ...]) -> Counter[str]:
    """Each mark that stands in a prompt: as a token, or, where the tokenizer has none, as its characters."""
    known = {i: name for name, i in making.tokens(dialect).items()}
    found = Counter(known[token] for token in ids if token in known)
    text = chat.thoughts.raw(ids)
    return found + Counter({mark: text.count(mark) for mark in dialect.plain})


def plain(text: str) -> str:
    """As people see it: what breaks a mark is nothing."""
    return text.replace(BREAKER, "")


@EVERY
def test_the_question_is_in_the_prompt_and_all_that_was_said(chat: ChatTemplate) -> None:
    said: list[str] = []

    def say(words: str) -> str:
        said.append(words)
        return words

    text = chat.thoughts.raw(chat.prompt(conversation(say)))
    assert [text.count(words) for words in said] == [1] * 4
    assert "What colour is grass?" in chat.thoughts.raw(chat.prompt(ASKED))


@pytest.mark.parametrize("row", [row for row, (_, name) in ROWS.items() if DIALECTS[name].tools])
def test_a_tool_its_call_and_its_result_are_in_the_prompt(chat: ChatTemplate) -> None:
    said: list[str] = []

    def say(words: str) -> str:
        said.append(words)
        return words

    text = chat.thoughts.raw(chat.prompt(agents(say)))
    assert said
    assert [words for words in (*said, "look", "where") if words not in text] == []
    assert "It looks." not in chat.thoughts.raw(chat.prompt(ASKED))


@EVERY
@pytest.mark.parametrize("made", [conversation, agents])
def test_nobody_forges_a_mark(chat: ChatTemplate, dialect: Dialect, made: Any) -> None:
    everything = (*dialect.special, *dialect.added, *dialect.plain)
    for seed in range(6):
        dice = random.Random(seed)
        said: list[str] = []

        def evil(words: str, dice: random.Random = dice, said: list[str] = said) -> str:
            parts = dice.choices([*everything, "\n", " ", "user", "assistant", "<|", "|>"], k=6)
            said.append(f"{words}{''.join(parts)}x")
            return said[-1]

        prompt = chat.prompt(made(evil))
        assert marks(chat, dialect, prompt) == marks(chat, dialect, chat.prompt(made(str)))
        assert plain(said[-1]) in plain(chat.thoughts.raw(prompt)), "the same characters"


@EVERY
def test_ordinary_words_stay_and_are_the_same_in_serving(
    chat: ChatTemplate, files: Path, dialect: Dialect, row: str
) -> None:
    found = served.of(files)
    for text in ORDINARY[: -1 if row in ("vicuna", "alpaca", "deepseek v2") else None]:
        assert chat._marks.quote(text) == served.broken(text, found) == text
    for mark in dialect.plain:
        for text in (f"{mark} a", f"a{mark}b", f"a\n{mark}\nb"):
            assert chat._marks.quote(text) == served.broken(text, found)
            assert plain(chat._marks.quote(text)) == text


@EVERY
def test_an_answer_ends_where_the_family_ends_it(chat: ChatTemplate, dialect: Dialect) -> None:
    ids = making.tokens(dialect)
    assert chat.end == ids[dialect.end]
    assert chat.stops == {ids[name] for name in {dialect.end, dialect.eos, *dialect.stops}}
    better = chat.turn(ASKED, "Green.").response
    assert better[-1] == ids[dialect.end]
    assert not set(better[:-1]) & chat.stops
    for mark in {dialect.end, dialect.eos, *dialect.stops, *dialect.goes_on}:
        growing = row_of(chat, [])
        for token in (*better[:-1], ids[mark]):
            growing.add(token, -0.1, chat.stops)
        assert growing.finish == ("" if mark in dialect.goes_on else "stop"), mark
        if growing.finish:
            assert growing.result().text == "Green."


def row_of(chat: ChatTemplate, pieces: list[str], prompt: tuple[int, ...] = (1,)) -> Row:
    request = SampleRequest(messages=[], max_tokens=9999)
    return Row(prompt, request, chat, 1 << 20, lambda piece: not pieces.append(piece))


@EVERY
def test_ten_scripts_are_whole_as_shown_and_as_stored(chat: ChatTemplate) -> None:
    for script, text in SCRIPTS.items():
        pieces: list[str] = []
        growing, ids = row_of(chat, pieces), chat.turn(ASKED, text).response
        for token in ids:
            growing.add(token, -0.1, chat.stops)
        assert growing.result().text == "".join(pieces) == text == chat.text(ids), script
        asked = chat.prompt([{"role": "user", "content": text}])
        assert text in chat.thoughts.raw(asked), script


def written(chat: ChatTemplate, prompt: tuple[int, ...], text: str) -> tuple[str, Any]:
    """What is shown of an answer that the model writes with its own marks, and the answer."""
    pieces: list[str] = []
    growing = row_of(chat, pieces, prompt)
    for token in (*chat._tokenizer.encode(text, add_special_tokens=False), chat.end):
        growing.add(token, -0.5, chat.stops)
    return "".join(pieces), growing.result()


@THINKING
def test_a_thought_is_neither_shown_nor_learnt_nor_told_again(chat: ChatTemplate, dialect: Dialect) -> None:
    assert dialect.thought
    before, behind = dialect.thought
    shown, answer = written(chat, chat.prompt(ASKED, thinking=True), f"{before}Hm, grass.{behind}Green.")
    assert (shown, answer.text, answer.thought) == ("Green.", "Green.", "Hm, grass.")
    learnt = answer.turn
    assert chat.text(learnt.response[:-1]).strip() == "Green."
    assert learnt.prompt + learnt.response == answer.prompt + answer.tokens

    typed = chat.turn(ASKED, "Green.", "Hm, grass.")
    assert chat.text(typed.response[:-1]) == "Green."
    assert "Hm, grass." in chat.thoughts.raw(typed.prompt)
    later = [*ASKED, {"role": "assistant", "content": answer.text}, *ASKED]
    assert "Hm, grass." not in chat.thoughts.raw(chat.prompt(later))


@THINKING
def test_told_not_to_think_it_does_not_or_is_split_all_the_same(chat: ChatTemplate, dialect: Dialect) -> None:
    assert dialect.thought
    before, behind = dialect.thought
    prompt = chat.prompt(ASKED)
    if dialect.always:
        shown, answer = written(chat, prompt, f"{before}Hm.{behind}Green.")
        assert (shown, answer.thought) == ("Green.", "Hm.")
    else:
        shown, answer = written(chat, prompt, "Green.")
        assert (shown, answer.text, answer.thought) == ("Green.", "Green.", "")
    shown, answer = written(chat, chat.prompt(ASKED, thinking=None), "Green.")
    assert (shown, answer.text, answer.thought) == ("Green.", "Green.", "")


@EVERY
def test_an_answer_without_a_thought_stays_as_it_is(chat: ChatTemplate) -> None:
    prompt = chat.prompt(ASKED, thinking=None)
    for text in ("Green.", "Write <think> first, then </think>.", "A [THINK] is a word.", "analysis"):
        pieces: list[str] = []
        growing = row_of(chat, pieces, prompt)
        for token in chat.turn(ASKED, text).response:
            growing.add(token, -0.5, chat.stops)
        answer = growing.result()
        assert ("".join(pieces), answer.text, answer.thought) == (text, text, "")


@EVERY
def test_the_files_are_read_as_the_family_has_them(chat: ChatTemplate, files: Path, dialect: Dialect) -> None:
    """The zoo's own facts: a dialect that lost its trait would make the cells above say nothing."""
    template = json.loads((files / "tokenizer_config.json").read_text())["chat_template"]
    render = chat._tokenizer.apply_chat_template
    if dialect.system == "refused":
        with pytest.raises(Exception, match="not supported"):
            render(conversation(str), tokenize=False)
    if dialect.turns == "strict":
        with pytest.raises(Exception, match="alternate"):
            render([*ASKED, *ASKED], tokenize=False)
    assert ("grass" in render(ASKED, tokenize=False)) != dialect.parts, "plain text is no part"
    fresh = chat.thoughts.raw(chat.prompt(conversation(str)))
    assert not set(dialect.plain) & set(making.tokens(dialect))
    assert all(mark in fresh for mark in dialect.plain), "the template writes them"
    assert ("tool" in template and "tool_calls" in template) >= dialect.tools
