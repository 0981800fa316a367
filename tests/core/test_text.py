# SPDX-License-Identifier: Apache-2.0
"""Splitting of long answers: properties first, then the cases that a reader would expect."""

from __future__ import annotations

import pytest
from goodbot.base.text import SMALLEST, clean, open_fence, split, units
from hypothesis import given
from hypothesis import strategies as st

ANY = st.text(st.characters(exclude_categories=["Cs"]), max_size=600)
MARKDOWN = st.lists(
    st.sampled_from(
        [
            "```",
            "```python",
            "````",
            "word",
            "a longer line of words",
            "    indented",
            "",
            "😀" * 40,
            "x" * 130,
            "``` not a fence ```",
            "~~~",
            " ```",
            "`" * 9,
        ]
    ),
    max_size=40,
).map("\n".join)
LIMIT = st.integers(SMALLEST, 300)


def letters(text: str) -> str:
    return "".join(text.split())


@given(ANY | MARKDOWN, LIMIT)
def test_every_part_fits_and_none_is_blank(text: str, limit: int) -> None:
    for part in split(text, limit):
        assert units(part) <= limit
        assert part.strip()


@given(ANY.filter(lambda text: "`" not in text), LIMIT)
def test_nothing_but_white_space_is_lost(text: str, limit: int) -> None:
    assert letters("".join(split(text, limit))) == letters(text)


@given(MARKDOWN, LIMIT)
def test_with_code_blocks_only_fence_lines_are_added(text: str, limit: int) -> None:
    kept = letters("".join(split(text, limit))).replace("`", "").replace("python", "")
    assert kept == letters(text).replace("`", "").replace("python", "")


@given(MARKDOWN, LIMIT)
def test_all_parts_but_the_last_close_their_code_blocks(text: str, limit: int) -> None:
    assert all(open_fence(part) is None for part in split(text, limit)[:-1])


@given(ANY, LIMIT)
def test_a_text_that_fits_is_left_alone(text: str, limit: int) -> None:
    if units(text) <= limit and text.strip():
        assert split(text, limit) == (text,)


@given(st.text())
def test_clean_text_can_be_stored_and_sent(text: str) -> None:
    clean(text).encode("utf-8")


def test_surrogate_pairs_stay_whole() -> None:
    parts = split("😀" * 100, 65)
    assert "".join(parts) == "😀" * 100
    assert max(map(units, parts)) <= 65


def test_it_prefers_paragraphs_then_lines_then_words() -> None:
    text = "a" * 50 + " b\n" + "c" * 20 + "\n\n" + "d" * 40
    assert split(text, 90) == ("a" * 50 + " b\n" + "c" * 20, "d" * 40)
    assert split("a" * 50 + "\n" + "b " * 30, 70)[0] == "a" * 50
    assert split("a" * 40 + " " + "b" * 60, 64) == ("a" * 40, "b" * 60)


def test_a_code_block_goes_on_in_the_next_part() -> None:
    lines = "\n".join(f"print({n})" for n in range(20))
    parts = split(f"Look:\n```python\n{lines}\n```\nThat is all.", 100)
    assert len(parts) > 1
    assert parts[1].startswith("```python\nprint(")
    assert all(part.count("```") == 2 for part in parts[:-1])
    assert parts[-1].endswith("That is all.")


def test_no_empty_code_block_is_left_at_a_cut() -> None:
    text = "x" * 80 + "\n```python\n" + "y" * 80 + "\n```"
    assert split(text, 100) == ("x" * 80, "```python\n" + "y" * 80 + "\n```")
    code = "```\n" + "z" * 86
    assert split(code + "\n```\nafter the code there is more", 100) == (
        code + "\n```",
        "after the code there is more",
    )


def test_long_text_takes_linear_time() -> None:
    assert len(split("word " * 200_000, 4096)) < 300


def test_a_tiny_limit_is_an_error() -> None:
    with pytest.raises(ValueError, match="64"):
        split("text", 10)
