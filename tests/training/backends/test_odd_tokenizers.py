# SPDX-License-Identifier: Apache-2.0
"""Tokenizers that nobody would make who means well: a sentence, or an answer, and never the child's end."""

# pyright: standard
# (tokenizers ships no complete types)

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from goodbot.base.errors import TrainingError
from goodbot_training.backends.chat import ChatTemplate
from goodbot_training.backends.odd_tokenizers import check_ids

from tests.support import require
from tests.training.backends import shapes

require("transformers")
ALONE = [{"role": "user", "content": "What colour is grass?"}]
WHOLE = [
    {"role": "system", "content": "Be terse."},
    {"role": "user", "content": "Hi there"},
    {"role": "assistant", "content": "Hello."},
    *ALONE,
]
Whole = dict[str, Any]


def spoilt(directory: Path, spoil: Callable[[Whole], None]) -> Path:
    """A sound tokenizer in which something is changed."""
    shapes.write("byte level", directory)
    file = directory / "tokenizer.json"
    whole = json.loads(file.read_bytes())
    spoil(whole)
    file.write_text(json.dumps(whole))
    return directory


def an_id_like_no_other(whole: Whole) -> None:
    whole["model"]["vocab"]["Z"] = 1 << 31


def ten_million_words(whole: Whole) -> None:
    whole["model"]["vocab"]["Z"] = 9_999_999


def a_mark_far_out(whole: Whole) -> None:
    whole["added_tokens"][-1]["id"] = 1 << 31


def merges_of_nothing(whole: Whole) -> None:
    whole["model"]["merges"] = [["qq", "zz"]]


def a_charsmap_of_rubbish(whole: Whole) -> None:
    whole["normalizer"] = {"type": "Precompiled", "precompiled_charsmap": "AAAA"}


def a_charsmap_of_nothing(whole: Whole) -> None:
    """The library looks for its first entry."""
    whole["normalizer"] = {"type": "Precompiled", "precompiled_charsmap": "AAAAAA=="}


@pytest.mark.parametrize(
    ("spoil", "why"),
    [
        (an_id_like_no_other, "no model has so many"),
        (ten_million_words, "no model has so many"),
        (a_mark_far_out, "no model has so many"),
        (merges_of_nothing, "cannot be loaded"),
        (a_charsmap_of_rubbish, "cannot be loaded|gave up"),
        (a_charsmap_of_nothing, "cannot be loaded|gave up"),
    ],
)
def test_s10_it_is_refused_with_a_sentence(spoil: Callable[[Whole], None], why: str, tmp_path: Path) -> None:
    with pytest.raises(TrainingError, match=why):
        ChatTemplate(spoilt(tmp_path, spoil), {})


def test_a_vocabulary_is_looked_at_only_where_a_tokenizer_is_made_of_it(tmp_path: Path) -> None:
    """Beside a whole tokenizer it may be anything, as an older tool left it: nothing reads it."""
    tokenizer = spoilt(tmp_path, lambda whole: None) / "tokenizer.json"
    (tmp_path / "vocab.json").write_text(json.dumps({"Z": 1 << 31}))
    check_ids(tmp_path)
    tokenizer.unlink()
    with pytest.raises(TrainingError, match="no model has so many"):
        check_ids(tmp_path)


def test_a_number_that_python_does_not_read_hides_no_id(tmp_path: Path) -> None:
    """Other libraries skip what they do not look for, however long it is."""
    file = spoilt(tmp_path, an_id_like_no_other) / "tokenizer.json"
    file.write_text(file.read_text().replace("{", '{"odd": ' + "1" * 5000 + ",", 1))
    with pytest.raises(TrainingError, match="cannot be read"):
        check_ids(tmp_path)


def test_nor_does_the_file_that_a_tokenizer_is_made_of_where_there_is_none(tmp_path: Path) -> None:
    check_ids(tmp_path)
    file = tmp_path / "vocab.json"
    file.write_text(json.dumps({"model": {"vocab": {}}, "Z": 1 << 31}))
    with pytest.raises(TrainingError, match="cannot be read"):
        check_ids(tmp_path)
    file.write_text(json.dumps({"a": 0, "Z": 1 << 31}))
    with pytest.raises(TrainingError, match="no model has so many"):
        check_ids(tmp_path)
    file.write_text(json.dumps({"a": 0, "Z": 1}))
    check_ids(tmp_path)


def test_a_template_without_end_is_refused_before_it_is_compiled(tmp_path: Path) -> None:
    """Behind what is looked at it could write marks that nobody knows."""
    shapes.write("byte level", tmp_path, template=shapes.CHAT + "{#" + "x" * (1 << 20) + "#}")
    with pytest.raises(TrainingError, match="longer than any"):
        ChatTemplate(tmp_path, {})


def a_pattern_that_tries_all(whole: Whole) -> None:
    cut = {"type": "Split", "pattern": {"Regex": "(a+)+$"}, "behavior": "Isolated", "invert": False}
    whole["pre_tokenizer"] = {"type": "Sequence", "pretokenizers": [cut, whole["pre_tokenizer"]]}


def test_a_question_that_its_pattern_cannot_bear_is_one_question(tmp_path: Path) -> None:
    """The library panics once it has tried ten million ways; who does not catch that is ended by it."""
    chat = ChatTemplate(spoilt(tmp_path, a_pattern_that_tries_all), {})
    before = chat.prompt(ALONE)
    with contextlib.suppress(TrainingError):
        chat.prompt([{"role": "user", "content": "a" * 28 + "!"}])
    assert chat.prompt(ALONE) == before


def test_of_ids_that_the_model_does_not_know_no_prompt_is_made(tmp_path: Path) -> None:
    """One that reads them is of no more use on a GPU, and reads elsewhere in memory with MLX."""
    chat = ChatTemplate(spoilt(tmp_path, lambda _: None), {})
    largest = max(chat.prompt(ALONE))
    chat.vocabulary = largest + 1
    assert max(chat.prompt(ALONE)) == largest
    chat.vocabulary = largest
    with pytest.raises(TrainingError, match="does not know"):
        chat.prompt(ALONE)


def tokens_put_in_front(whole: Whole) -> None:
    [first] = [token for token in whole["added_tokens"] if token["content"] == "<s>"]
    name, ids = first["content"], [first["id"]]
    begin = [{"SpecialToken": {"id": name, "type_id": 0}}] * 5000
    whole["post_processor"] = {
        "type": "TemplateProcessing",
        "single": [*begin, {"Sequence": {"id": "A", "type_id": 0}}],
        "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
        "special_tokens": {name: {"id": name, "ids": ids, "tokens": [name]}},
    }


def test_what_it_would_put_in_front_of_a_text_is_no_part_of_a_prompt(tmp_path: Path) -> None:
    for name in ("sound", "odd"):
        (tmp_path / name).mkdir()
    sound = ChatTemplate(spoilt(tmp_path / "sound", lambda _: None), {})
    odd = ChatTemplate(spoilt(tmp_path / "odd", tokens_put_in_front), {})
    assert odd.prompt(WHOLE) == sound.prompt(WHOLE)
    assert odd.turn(ALONE, "Green.") == sound.turn(ALONE, "Green.")


def marks_that_take_blanks(whole: Whole) -> None:
    for token in whole["added_tokens"]:
        token["lstrip"] = token["rstrip"] = True


def test_marks_that_take_the_blanks_around_them_take_no_words(tmp_path: Path) -> None:
    chat = ChatTemplate(spoilt(tmp_path, marks_that_take_blanks), {})
    text = chat.text(chat.prompt(WHOLE))
    assert [message["content"] for message in WHOLE if message["content"] not in text] == []
