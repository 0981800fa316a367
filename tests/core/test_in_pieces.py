# SPDX-License-Identifier: Apache-2.0
"""Long texts are looked through in pieces: what is found is the same, and no look is a long one."""

from __future__ import annotations

import re
from types import SimpleNamespace
from typing import Any

import pytest
from goodbot.base import in_pieces, thoughts
from goodbot.base.redact import redact
from goodbot.base.thoughts import split

from tests.security.test_secrets import HARMLESS, SECRETS, WITHIN

PIECE, NEAR = 2048, 1024
TEXTS = [*SECRETS.values(), *WITHIN, *HARMLESS]


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(in_pieces, "PIECE", PIECE)
    monkeypatch.setattr(in_pieces, "NEAR", NEAR)


class Looks:
    """Stands for `re` where it is used in pieces: how many signs each look may have seen."""

    def __init__(self, pattern: Any = None) -> None:
        self.pattern = pattern
        self.seen: list[int] = []

    def compile(self, pattern: Any) -> Looks:
        looks = Looks(pattern.pattern if isinstance(pattern, Looks) else re.compile(pattern))
        looks.seen = self.seen
        return looks

    def findall(self, text: str) -> list[str]:
        self.seen.append(len(text))
        return self.pattern.findall(text)

    def finditer(self, text: str) -> Any:
        self.seen.append(len(text))
        return self.pattern.finditer(text)

    def search(self, text: str, at: int, end: int) -> Any:
        self.seen.append(end - at)
        return self.pattern.search(text, at, end)

    def match(self, text: str, at: int) -> Any:
        return self.pattern.match(text, at)


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> Looks:
    """All looks into a text; one that is not in pieces has no `re` to look with."""
    made = Looks()
    monkeypatch.setattr(in_pieces, "re", made)
    monkeypatch.setattr("goodbot.base.redact.re", SimpleNamespace())
    for name in ("_KEYLIKE", "_LONG"):
        monkeypatch.setattr(f"goodbot.base.redact.{name}", made.compile(getattr(redact_module(), name)))
    only_from_its_start = SimpleNamespace(escape=re.escape, match=re.match)
    monkeypatch.setattr(thoughts, "re", only_from_its_start)
    return made


def redact_module() -> Any:
    from goodbot.base import redact

    return redact


@pytest.mark.parametrize("at", [PIECE - NEAR - 1, PIECE - 60, PIECE - 20, PIECE - 3, PIECE, PIECE + 7])
def test_what_lies_across_two_pieces_is_masked_as_elsewhere(
    monkeypatch: pytest.MonkeyPatch, small: None, at: int
) -> None:
    del small
    before = "é" * (at % 7) + " word" * (at // 5)
    for text in TEXTS:
        long = f"{before}\n{text}, and{' so on' * 400} {text}"
        found = redact(long)
        with monkeypatch.context() as whole:
            whole.setattr(in_pieces, "PIECE", 10 * len(long))
            assert found == redact(long), text


@pytest.mark.parametrize("size", [PIECE - NEAR, PIECE, 5 * PIECE])
def test_one_that_is_longer_than_a_piece_is_masked_whole(small: None, size: int) -> None:
    del small
    key = f"sk-proj-{'aB3' * (size // 3)}"
    for before in range(0, PIECE, 97):
        assert redact(f"{'x ' * before}{key} and {key}.") == f"{'x ' * before}*** and ***."
    lines = "\n".join(["aB3x" * 16] * (size // 64))
    assert redact(f"{'x ' * 500}Private-Lines: 9\n{lines}\n{'x ' * 500}").count("aB3x") == 0


def test_nothing_is_looked_through_at_once(looks: Looks) -> None:
    """While an expression runs, in whichever thread, nobody else is served: tenths of a second with 8 MB."""
    firsts = " ".join(text[:60] for text in TEXTS)
    text = f"{firsts} {'some words and /a/path/of/a/file/in/a/deep/directory.py ' * 20_000} {firsts}"
    assert redact(text).count("***") > 50
    assert len(looks.seen) > 100
    assert max(looks.seen) <= in_pieces.PIECE + in_pieces.NEAR


def test_thoughts_are_told_apart_in_pieces_too(looks: Looks) -> None:
    long = "words <of> it " * 60_000
    assert split(f"<think>{long}</think>{long}") == (long.strip(), long)
    assert split(f"{long}\n</think>\n{long}") == (long.strip(), long)
    assert looks.seen
    assert max(looks.seen) <= in_pieces.PIECE + in_pieces.NEAR


def test_as_re_says(small: None) -> None:
    del small
    pattern = re.compile(r"(?m)^a+b?(?!c)")
    for text in ("", "a", "a" * 9000, f"{'a' * 3000}bc\n{'a' * 2047}b\nac\n" * 3, "x" * 5000 + "\nab"):
        assert [one.span() for one in in_pieces.each(pattern, text)] == [
            one.span() for one in pattern.finditer(text)
        ]
        assert in_pieces.sub(pattern, lambda found: found[0][:1], text) == pattern.sub(
            lambda found: found[0][:1], text
        )
    assert in_pieces.mapped(str.upper, "ab" * 4000) == "AB" * 4000
