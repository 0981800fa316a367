# SPDX-License-Identifier: Apache-2.0
"""A terminal's lower edge: what was said scrolls up above a line to type in and a status line.

Nothing is drawn over the person's scrollback: only the last few rows are ever redrawn.
"""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Callable

from goodbot.base.printing import printable

_ROWS = 5
"""Lines of a message that are shown while it is typed: those around the cursor."""
_DIM, _BOLD, _RESET = "\x1b[2m", "\x1b[1m", "\x1b[0m"


def cells(text: str) -> int:
    """How many columns `text` takes."""
    return sum(_width(character) for character in text)


def _width(character: str) -> int:
    if character < "\u0300":
        return 1
    if unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def cut(text: str, width: int) -> int:
    """How many characters of `text` fit into `width` columns."""
    used = 0
    for index, character in enumerate(text):
        used += _width(character)
        if used > width:
            return index
    return len(text)


def wrap(text: str, width: int) -> list[str]:
    """Rows of at most `width` columns, broken between words where it can be. Never empty."""
    rows: list[str] = []
    while (fit := cut(text, width)) < len(text):
        space = text.rfind(" ", 0, fit + 1)
        end = space if space > 0 else max(fit, 1)
        rows.append(text[:end])
        text = text[end:].removeprefix(" ")
    return [*rows, text]


class Screen:
    """Writes to a terminal. `draw` shows what the other methods have changed."""

    def __init__(self, write: Callable[[str], object], fd: int, *, colour: bool) -> None:
        self._write = write
        self._fd = fd
        self._colour = colour
        self._done: list[str] = []
        self._open = ""
        self._above = 0
        self._shown: object = None
        """What the last rows hold, so that they are drawn only when they change."""
        self.prompt = "› "

    def say(self, text: str, *, dim: bool = False, bold: bool = False) -> None:
        """Whole lines that stay."""
        self.end()
        style = _DIM if dim else _BOLD if bold else ""
        for line in self._clean(text).split("\n"):
            self._done += [self._styled(row, style) for row in wrap(line, self._width())]

    def stream(self, text: str) -> None:
        """A piece of a text whose end is not known yet."""
        *lines, last = (self._open + self._clean(text)).split("\n")
        for line in lines:
            self._done += wrap(line, self._width())
        *rows, self._open = wrap(last, self._width())
        self._done += rows

    def end(self) -> None:
        """The streamed text is whole."""
        if self._open:
            self._done.append(self._open)
            self._open = ""

    def draw(self, text: str, cursor: int, placeholder: str, status: str) -> None:
        """Show all of it: news, the open row, what is typed, the status."""
        width = self._width()
        begun = [self._open] if self._open else []
        typed, row, right = self._typed(text, cursor, width)
        if not text:
            typed[0] += self._styled(self._fitted(placeholder, width - 4), _DIM)
        rows = [*begun, *typed, self._styled(self._fitted(status, width), _DIM)]
        shown = (rows, row, right, width)
        if shown == self._shown and not self._done:
            return
        self._shown = shown
        top = f"\x1b[{self._above}A" if self._above else ""
        out = f"\r{top}\x1b[J" + "".join(f"{row}\n" for row in self._done) + "\n".join(rows)
        self._above = len(begun) + row
        self._write(f"{out}\x1b[{len(typed) - row}A\r\x1b[{right}C")
        self._done = []

    def forget(self) -> None:
        """Draw the next time whatever stands there: something else may have written."""
        self._shown = None

    def leave(self) -> None:
        """Take the line and the status away; what was said stays."""
        self.end()
        top = f"\x1b[{self._above}A" if self._above else ""
        self._write(f"\r{top}\x1b[J" + "".join(f"{row}\n" for row in self._done))
        self._done, self._above, self._shown = [], 0, None

    def _typed(self, text: str, cursor: int, width: int) -> tuple[list[str], int, int]:
        """Rows for what is typed, and the cursor's row and column in them."""
        at = text.count("\n", 0, cursor)
        first = max(0, at - _ROWS + 1)
        cursor -= text.rfind("\n", 0, cursor) + 1
        rows: list[str] = []
        right = indent = cells(self.prompt)
        for number, line in [*enumerate(text.split("\n"))][first : first + _ROWS]:
            shown, column = self._line(line, cursor if number == at else 0, width - indent)
            right = indent + column if number == at else right
            rows.append((" " * indent if number else self._styled(self.prompt, _BOLD)) + shown)
        return rows, at - first, right

    def _line(self, text: str, cursor: int, room: int) -> tuple[str, int]:
        """The part of a long line that is around the cursor, and the cursor's column in it."""
        start = 0
        while cells(text[start:cursor]) >= room:
            start += max(1, room // 2)
        visible = text[start:]
        # What is taken out is no column wide: marks that turn around what was pasted.
        return self._clean(visible[: cut(visible, room)]), cells(text[start:cursor])

    def _fitted(self, text: str, width: int) -> str:
        """As much of it as has room in one row."""
        row = " ".join(self._clean(text).split("\n"))
        return row[: cut(row, width)]

    def _clean(self, text: str) -> str:
        return printable(text).replace("\t", "    ")

    def _styled(self, text: str, style: str) -> str:
        return f"{style}{text}{_RESET}" if self._colour and style and text else text

    def _width(self) -> int:
        try:
            columns = os.get_terminal_size(self._fd).columns
        except OSError:
            columns = 80
        return max(20, columns or 80) - 1
