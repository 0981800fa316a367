# SPDX-License-Identifier: Apache-2.0
"""Server-sent events come out whole, however the bytes are cut."""

from __future__ import annotations

import itertools

import pytest
from goodbot.base import sse
from goodbot.base.errors import ServerError
from goodbot.base.sse import EventStream
from hypothesis import given, settings
from hypothesis import strategies as st


def read(chunks: list[bytes]) -> list[str]:
    stream = EventStream()
    return [*(data for chunk in chunks for data in stream.feed(chunk)), *stream.end()]


@pytest.mark.parametrize(
    ("text", "events"),
    [
        ("data: one\n\ndata: two\n\n", ["one", "two"]),
        ("data:one\r\n\r\ndata:  two\r\n\r\n", ["one", " two"]),
        ("data: one\r\rdata: two\r\r", ["one", "two"]),
        (": ping\n\ndata: one\n\n: ping\n\n", ["one"]),
        ("event: message\nid: 7\nretry: 10\ndata: one\n\n", ["one"]),
        ("data: one\ndata: more\n\n", ["one\nmore"]),
        ("\ufeffdata: one\n\n", ["one"]),
        ("data: über 東京 ☕\n\n", ["über 東京 ☕"]),
        ("data: cut short", ["cut short"]),
        ("data\n\n", [""]),
        ("\n\n\n", []),
    ],
)
@pytest.mark.parametrize("size", [1, 2, 3, 1000])
def test_events_are_the_same_however_they_arrive(text: str, events: list[str], size: int) -> None:
    data = text.encode()
    assert read([data[i : i + size] for i in range(0, len(data), size)]) == events


@settings(max_examples=50)
@given(
    st.lists(st.text(st.characters(exclude_characters="\r\n", codec="utf-8"), min_size=1), max_size=5),
    st.sampled_from(["\n", "\r\n", "\r"]),
    st.lists(st.integers(0, 400), max_size=8),
)
def test_any_cut_gives_the_same(texts: list[str], newline: str, cuts: list[int]) -> None:
    data = "".join(f": c{newline}data: {text}{newline * 2}" for text in texts).encode()
    places = [0, *sorted(min(cut, len(data)) for cut in cuts), len(data)]
    chunks = [data[a:b] for a, b in itertools.pairwise(places)]
    assert read(chunks) == texts


def test_broken_utf8_is_shown_as_such() -> None:
    assert read([b"data: a\xffb\n\n"]) == ["a\ufffdb"]


@pytest.mark.parametrize("line", [b"data: " + b"x" * 2000, b"data: x\n" * 2000])
def test_an_event_without_end_is_refused(monkeypatch: pytest.MonkeyPatch, line: bytes) -> None:
    monkeypatch.setattr(sse, "_LARGEST", 1000)
    with pytest.raises(ServerError, match="without end"):
        read([line])
