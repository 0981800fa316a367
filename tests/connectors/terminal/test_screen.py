# SPDX-License-Identifier: Apache-2.0
"""The chat's small parts: keys, the line that is typed, and what is drawn."""

from __future__ import annotations

import pytest
from goodbot_connectors.terminal.editor import Editor
from goodbot_connectors.terminal.keys import Key, Keys
from goodbot_connectors.terminal.live import status_line
from goodbot_connectors.terminal.screen import Screen, cells, wrap
from hypothesis import given
from hypothesis import strategies as st


def typed(*chunks: bytes) -> list[Key]:
    keys = Keys()
    return [key for chunk in chunks for key in keys.feed(chunk)]


@pytest.mark.parametrize(
    ("chunks", "keys"),
    [
        ([b"1"], [Key("text", "1")]),
        ([b"hi\r"], [Key("text", "hi"), Key("enter")]),
        (["é".encode()[:1], "é".encode()[1:]], [Key("text", "é")]),
        ([b"\x1b[A", b"\x1bOB", b"\x1b[3~"], [Key("up"), Key("down"), Key("delete")]),
        ([b"\x1b", b"[", b"D"], [Key("left")]),
        ([b"\x1b[1;5C"], [Key("word-right")]),
        ([b"\x1b[200~a\rb", b"\r\nc\x1b[201~d"], [Key("paste", "a\nb\nc"), Key("text", "d")]),
        ([b"\x1b\r", b"\x1b", b"\n"], [Key("newline"), Key("newline")]),
        ([b"/st\t"], [Key("text", "/st"), Key("tab")]),
        ([b"\x03\x04\x7f"], [Key("ctrl-c"), Key("ctrl-d"), Key("backspace")]),
        ([b"\x00\x1c\x1bb\x1b[99;99Z"], []),
    ],
)
def test_keys(chunks: list[bytes], keys: list[Key]) -> None:
    assert typed(*chunks) == keys


@given(st.lists(st.binary(max_size=30), max_size=10))
def test_no_bytes_break_the_keys(chunks: list[bytes]) -> None:
    typed(*chunks)


@given(st.binary(max_size=60), st.integers(1, 7))
def test_keys_do_not_depend_on_how_they_arrive(data: bytes, size: int) -> None:
    chunks = [data[at : at + size] for at in range(0, len(data), size)]

    def flat(keys: list[Key]) -> list[Key | str]:
        return [part for key in keys for part in (key.text if key.name == "text" else [key])]

    assert flat(typed(*chunks)) == flat(typed(data))


def test_the_editor_remembers_lines_and_the_one_begun() -> None:
    editor = Editor()
    for line in ("one", "two", "two"):
        editor.insert(line)
        assert editor.take() == line
    editor.insert("begun")
    for name, text in [
        ("up", "two"),
        ("up", "one"),
        ("up", "one"),
        ("down", "two"),
        ("down", "begun"),
        ("down", "begun"),
    ]:
        editor.handle(Key(name))
        assert editor.text == text


def test_editing() -> None:
    editor = Editor()
    editor.insert("one two three")
    for name in ("word-left", "word-left", "word-rubout", "end", "word-rubout", "backspace"):
        editor.handle(Key(name))
    assert editor.text == "two"
    for name in ("home", "delete", "right", "kill"):
        editor.handle(Key(name))
    assert (editor.text, editor.cursor) == ("w", 1)


@given(st.text(max_size=200), st.integers(2, 30))
def test_rows_fit_and_no_letter_is_lost(text: str, width: int) -> None:
    rows = wrap(text, width)
    assert all(cells(row) <= width for row in rows)
    assert "".join(rows).replace(" ", "") == text.replace(" ", "")


def test_rows_break_between_words_and_wide_letters_count_twice() -> None:
    assert wrap("the quick brown fox", 10) == ["the quick", "brown fox"]
    assert wrap("漢字漢字", 5) == ["漢字", "漢字"]
    assert cells("e\u0301👍") == 3


def test_alt_enter_begins_a_new_line() -> None:
    editor = Editor()
    for key in typed(b"one\x1b\rtwo"):
        editor.handle(key)
    assert editor.take() == "one\ntwo"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("/statu", "/status "),
        ("/st", "/sta"),  # of `status` and `stars`
        ("/rol", "/rollback "),
        ("/xyz", "/xyz"),
        ("hello /sta", "hello /sta"),
        ("", ""),
    ],
)
def test_tab_writes_the_rest_of_a_commands_name(before: str, after: str) -> None:
    editor = Editor()
    editor.insert(before)
    editor.handle(Key("tab"))
    assert (editor.text, editor.cursor) == (after, len(after))


def test_the_status_in_one_line() -> None:
    status = {
        "ratings": 12,
        "needed": 40,
        "version": 0,
        "off": False,
        "paused": False,
        "server": "up",
        "training": None,
    }
    assert status_line({}) == ""
    assert status_line(status) == "12 of 40 until the next training · base model"
    busy = "other programs use 100% of the processors: training waits until they are down to 75%"
    enough = {**status, "ratings": 40, "condition": {"met": False}, "next": busy}
    assert status_line(enough) == f"40 ratings for the next training: {busy} · base model"
    assert (
        status_line({**enough, "condition": {"met": True}}) == "40 ratings for the next training · base model"
    )
    training = {"phase": "train", "step": 12, "steps": 32}
    assert status_line({**status, "version": 3, "training": training}).endswith(
        "· v3 · learning ▇▇▇····· 12/32"
    )
    assert "paused" in status_line({**status, "version": 3, "off": True})
    assert "v3" not in status_line({**status, "version": 3, "off": True})
    assert status_line({**status, "training": {"phase": None}}).endswith("learning ········")


def test_what_has_not_changed_is_not_drawn_again() -> None:
    written: list[str] = []
    screen = Screen(written.append, -1, colour=False)

    def draws(status: str) -> bool:
        before = len(written)
        screen.draw("hi", 2, "", status)
        return len(written) > before

    assert draws("learning 1/4")
    assert not draws("learning 1/4")
    assert draws("learning 2/4")
    screen.say("v1 is live.")
    assert draws("learning 2/4")
    assert "v1 is live." in written[-1]
    assert not draws("learning 2/4")
    screen.forget()  # a key was pressed
    assert draws("learning 2/4")
