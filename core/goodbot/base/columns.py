# SPDX-License-Identifier: Apache-2.0
"""Texts in the columns of a terminal, where a Chinese or Japanese sign takes two."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Mapping

_NOT_FIRST = "。，、；：！？）」』】…ー々っゃゅょッャュョ.,;:!?)”`"
_NOT_LAST = "（「『【(“`"
"""Signs before or behind which no line of Chinese or Japanese is broken."""


def wide(text: str) -> int:
    """The columns that a text takes."""
    return len(text) if text.isascii() else sum(1 + _is_wide(sign) for sign in text)


def padded(text: str, columns: int) -> str:
    """A text with spaces behind it up to so many columns."""
    return text + " " * (columns - wide(text))


def table(rows: Mapping[str, str], *, least: int = 0) -> list[str]:
    """Names with what they are, in two columns; the first has at least so many."""
    first = max(least, *map(wide, rows))
    return [f"{padded(name, first)}{what}" for name, what in rows.items()]


def wrapped(text: str, columns: int, *, begins: str = "", indent: str = "") -> list[str]:
    """A text in lines of so many columns, as far as its words allow.

    Args:
        text: One paragraph.
        columns: The most that a line takes.
        begins: What stands before the first line.
        indent: What stands before each other.

    Returns:
        The lines; one at least.
    """
    lines: list[str] = []
    line, bare = begins, True
    for piece in _pieces(text):
        if not bare and wide(line + piece.rstrip()) > columns:
            lines.append(line.rstrip())
            line = indent
        line, bare = line + piece, False
    return [*lines, line.rstrip()]


def _pieces(text: str) -> Iterator[str]:
    """What no line is broken within: a word with the spaces behind it, or a sign of two columns."""
    piece = ""
    for sign, following in zip(text, f"{text[1:]} ", strict=False):
        piece += sign
        apart = sign == " " != following
        joins = following in _NOT_FIRST or sign in _NOT_LAST or " " in (sign, following)
        if apart or ((_is_wide(sign) or _is_wide(following)) and not joins):
            yield piece
            piece = ""
    if piece:
        yield piece


def _is_wide(sign: str) -> bool:
    return unicodedata.east_asian_width(sign) in "FW"
