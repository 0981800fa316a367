# SPDX-License-Identifier: Apache-2.0
"""The chat's small parts: keys, the line that is typed, and what is drawn."""

from __future__ import annotations

import re

import pytest
from goodbot_connectors.terminal.editor import Editor
from goodbot_connectors.terminal.keys import Key, Keys
from goodbot_connectors.terminal.live import status_line
from goodbot_connectors.terminal.screen import Screen, cells, wrap
from hypothesis import given
from hypothesis import strategies as st

from tests.cli.terminal import Page


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
        ([b"\x12"], [Key("search")]),
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


def test_a_word_ends_where_its_line_does() -> None:
    editor = Editor()
    editor.insert("hello\nworld")
    editor.handle(Key("word-rubout"))
    assert editor.text == "hello\n"
    for name in ("home", "up", "word-right"):
        editor.handle(Key(name))
    assert editor.cursor == len("hello")


def test_s8_nothing_that_is_pasted_steers_the_terminal() -> None:
    editor = Editor()
    editor.handle(Key("paste", "a\x1b]0;x\x07\x9b31mred\r\n👩\u200d🚀\tא\u200f"))
    assert editor.text == "a]0;x31mred\n👩\u200d🚀    א\u200f"


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


def test_the_commands_that_begin_like_what_was_typed_are_shown() -> None:
    editor = Editor()
    shown: list[str] = []
    for piece in ("/", "sta", "tu", "s now"):
        editor.insert(piece)
        shown.append(editor.menu)
    assert "  /good  /bad  /stars  /undo  " in shown[0]
    assert shown[1:] == ["/stars  /status", "/status – what answers, and how far the next training is", ""]
    editor.clear()
    assert editor.menu == ""


def test_up_and_down_go_through_the_lines_of_a_message_first() -> None:
    editor = Editor()
    editor.insert("before")
    editor.take()
    editor.insert("one\nlonger\nx")
    for name, cursor in {"up": 5, "end": 10, "home": 4, "left": 3, "down": 7, "kill": 7}.items():
        editor.handle(Key(name))
        assert editor.cursor == cursor, name
    assert editor.text == "one\nlon\nx"
    for name in ("up", "up"):
        editor.handle(Key(name))
    assert editor.text == "before"
    editor.handle(Key("down"))
    assert editor.text == "one\nlon\nx"


def test_ctrl_r_finds_earlier_messages_that_hold_what_was_typed() -> None:
    editor = Editor()
    for line in ("the Capital of France", "hello", "capital of Peru", "thanks"):
        editor.insert(line)
        editor.take()
    editor.insert("capital")
    for text in ("capital of Peru", "the Capital of France", "the Capital of France"):
        editor.handle(Key("search"))
        assert editor.text == text
    for text in ("hello", "capital of Peru", "thanks", "capital"):
        editor.handle(Key("down"))
        assert editor.text == text
    editor.insert(" of Mars")
    editor.handle(Key("search"))
    assert editor.text == "capital of Mars"


@pytest.mark.parametrize("colour", [True, False])
def test_several_lines_are_shown_as_lines_with_the_cursor_in_its_own(colour: bool) -> None:
    page, written = Page(), [""]
    screen = Screen(written.append, -1, colour=colour)
    for text, cursor, shown, place in [
        ("one\ntwo", 7, ["› one", "  two", "bar"], (1, 5)),
        ("one\ntwo", 2, ["› one", "  two", "bar"], (0, 4)),
        ("one\n" * 9 + "end", 39, ["  one"] * 4 + ["  end", "bar"], (4, 5)),
        ("", 0, ["› say", "bar"], (0, 2)),
    ]:
        screen.draw(text, cursor, "say", "bar")
        page.feed(written[-1].replace("\n", "\r\n"))  # as the terminal is set
        assert [row.rstrip() for row in page.rows] == shown
        assert (page.row, page.column) == place
    codes = set(re.findall(r"\x1b\[([0-9;]*)m", "".join(written)))
    assert codes == ({"0", "1", "2"} if colour else set()), "what every terminal knows: bold and faint"


def test_s8_whatever_is_drawn_moves_no_cursor() -> None:
    """The status line held a daemon's words, and what is typed may be pasted, with marks that turn it."""
    hostile = "\x1b]0;mine\x07\x1b[2Jone\rtwo\x9b31m\u202ethree"
    written: list[str] = []
    screen = Screen(written.append, -1, colour=False)
    for text in ("", "paste\u202ed"):
        screen.say(hostile)
        screen.stream(hostile)
        screen.draw(text, len(text), hostile, f"{hostile}\nfour")
    screen.leave()
    drawn = re.sub(r"\x1b\[\d*[ACJ]", "", "".join(written))
    assert not set(drawn) & set("\x1b\x07\x9b\u202e")
    assert "\rtwo" not in drawn
    assert "pasted" in drawn
    assert "onetwo31mthree four" in drawn, "the status is one row"


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
    assert status_line(status) == "12 of 40 ratings, 28 more until the next training · base model"
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
