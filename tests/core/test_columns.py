# SPDX-License-Identifier: Apache-2.0
"""Texts in a terminal's columns: broken where a reader expects it, also without spaces."""

from __future__ import annotations

import textwrap

import pytest
from goodbot.base.columns import padded, table, wide, wrapped
from hypothesis import given
from hypothesis import strategies as st

WORDS = st.lists(st.text("abcdefgh.`", min_size=1, max_size=15), min_size=1, max_size=30)


@given(WORDS, st.integers(25, 90))
def test_words_with_spaces_are_broken_as_the_standard_library_does_it(words: list[str], columns: int) -> None:
    text = " ".join(words)
    expected = textwrap.wrap(
        text, columns, initial_indent="  x  ", subsequent_indent="     ", break_on_hyphens=False
    )
    assert wrapped(text, columns, begins="  x  ", indent="     ") == expected


@pytest.mark.parametrize(
    "text",
    [
        "再有 40 个评价，我能更好地了解你的喜好。这次训练会用完它们。仍要现在训练吗？用 `goodbot run` 启动。",
        "評価（40 件）では少なめです。あと 5 件あれば、好みをもっとよく学べます。それでも学習しますか？",
    ],
)
def test_signs_of_two_columns_fit_and_no_line_begins_with_a_stop(text: str) -> None:
    for columns in range(20, 60):
        lines = wrapped(text, columns)
        assert len(lines) > 1
        assert all(wide(line) <= columns for line in lines)
        assert not [line for line in lines if line[0] in "，。？）、" or line[-1] in "（「"]
        assert "".join("".join(lines).split()) == "".join(text.split()), "all of it is there"


def test_a_word_that_is_longer_than_the_line_stays_whole() -> None:
    assert wrapped("a https://example.org/somewhere b", 10) == ["a", "https://example.org/somewhere", "b"]
    assert wrapped("", 10, begins="  ") == [""]


def test_columns_stand_under_each_other() -> None:
    rows = table({"Modell:": " a", "模型：": " b"}, least=9)
    assert rows == ["Modell:   a", "模型：    b"]
    assert {wide(padded(text, 12)) for text in ("", "é", "模型")} == {12}
