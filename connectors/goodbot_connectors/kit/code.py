# SPDX-License-Identifier: Apache-2.0
"""Where code is in what a model writes: one scanner, so that no sign is put into what people copy.

Code is named only where every reading of the platform's Markdown finds it. Whatever could also be
running text is taken for that, and `inert` switches off what acts by itself in it. Linear in the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

_LINE = re.compile(r"[^\r\n]*(?:\r\n?|\n|\Z)")
_RUN = re.compile(r"`+")
_FENCE = re.compile(r"(`{3,}|~{3,})([^\r\n]*)")
_WORD = re.compile(r"[\w+#.-]{1,20}")
_ITEM = re.compile(r"(?:[-*+]|([0-9]{1,9})[.)])(?=[ \t\r\n]|\Z)")
_DELIMITERS = re.compile(r"(?=[^-\r\n]*-)[ \t>*+|:-]*+[\r\n]*\Z")
_PIPE = re.compile(r"(?<!\\)\|")
CONTAINERS = re.compile(r"(?:[ \t>]|[-*+](?=[ \t])|[0-9]{1,9}[.)](?=[ \t]))*+")
"""What may stand before a line's words: blanks, and the signs of lists and quotations."""
_BLOCK = re.compile(r"[\s>#*+-]|[0-9]{1,9}[.)]")
"""What a line begins with that may be more than a line of text to Discord."""
_ODD = 4
"""So many columns beyond its place make no fence any more."""
_DEEP = 50
"""List items within each other that one line may open: what is deeper is no code for any reader."""


class CodeSpan(NamedTuple):
    """A stretch of code: from the sign that opens it to the end of the one that closes it."""

    start: int
    inside: int
    """Where the code itself begins."""
    until: int
    """Where it ends."""
    stop: int
    language: str | None = None
    """None for inline code; for a block what its opening line names, often nothing."""

    @property
    def fenced(self) -> bool:
        """Whether it is a block of its own."""
        return self.language is not None


class Scan(NamedTuple):
    """What was found in a text."""

    codes: tuple[CodeSpan, ...]
    settled: int
    """How much of the text is read alike, whatever is written after it."""


class _Fence(NamedTuple):
    marker: str
    language: str
    column: int
    """Where the contents of the list item begin that it stands in."""
    start: int
    inside: int


def markdown(text: str) -> Scan:
    """Code as CommonMark finds it: fences, also those in lists, and spans within one line.

    A fence that other readers may see elsewhere makes the rest of the text have none; a backtick
    without a partner in its line makes the rest of its paragraph have no spans.
    """
    return _Markdown(text).scan()


class _Markdown:
    def __init__(self, text: str) -> None:
        self._text = text
        self._codes: list[CodeSpan] = []
        self._fence: _Fence | None = None
        self._items: list[int] = []
        """The columns where the contents of the open list items begin."""
        self._lost = False
        self._in_paragraph = self._paired = False
        self._definition = self._table = False
        self._settled = len(text)
        self._end_paragraph()

    def scan(self) -> Scan:
        lines = [found.span() for found in _LINE.finditer(self._text) if found[0]]
        for n, (start, stop) in enumerate(lines):
            line = self._text[start:stop]
            below = self._text[slice(*lines[n + 1])] if n + 1 < len(lines) else ""
            if self._fence is None or self._left(self._fence, line, start, stop):
                self._running(line, start, stop, below)
        if fence := self._fence:
            size = len(self._text)
            self._codes.append(CodeSpan(fence.start, fence.inside, size, size, fence.language))
            last = self._text[self._text.rfind("\n") + 1 :]
            if not last.strip(" \t" + fence.marker[0]):
                self._settle(size - len(last.lstrip(" \t")))
        return Scan(tuple(self._codes), self._settled)

    def _settle(self, at: int) -> None:
        self._settled = min(self._settled, at)

    def _left(self, fence: _Fence, line: str, start: int, stop: int) -> bool:
        """Whether a line stands below the fence that is open, which then ends."""
        words = line.strip()
        column = _column(line)
        if words and column < fence.column:
            self._end_fence(fence, start, start)
            self._lost = True
            return True
        closes = words.startswith(fence.marker) and not words.strip(fence.marker[0])
        if closes and column - fence.column < _ODD:
            self._end_fence(fence, start, stop)
        elif closes:
            self._end_fence(fence, start, start)
            self._lost = True
            return True
        return False

    def _end_fence(self, fence: _Fence, until: int, stop: int) -> None:
        self._fence = None
        inside = min(fence.inside, until)
        self._codes.append(CodeSpan(fence.start, inside, until, stop, fence.language))
        self._end_paragraph()

    def _end_paragraph(self) -> None:
        self._in_paragraph, self._paired = False, True
        self._definition = self._table = False

    def _running(self, line: str, start: int, stop: int, below: str) -> None:
        if not line.strip():
            self._end_paragraph()
            return
        at, column = self._place(line)
        base = self._items[-1] if self._items else 0
        found = _FENCE.match(line, at)
        if found and not self._lost and column - base < _ODD and _opens(found):
            if not _whole(line):
                self._settle(start + at)
            word = _WORD.match(found[2].strip())
            language = word[0] if word else ""
            self._fence = _Fence(found[1], language, base, start + at, stop)
            self._end_paragraph()
            return
        bare = CONTAINERS.sub("", line, count=1)
        if _FENCE.match(bare) and not line.lstrip().startswith(">"):
            self._lost = True
        self._spans(line, bare, start, below)
        self._in_paragraph = not _is_rule(bare) and not bare.startswith("#")

    def _place(self, line: str) -> tuple[int, int]:
        """Where the words of a line begin, behind the list items that it opens, and in which column."""
        at, column = len(line) - len(line.lstrip(" \t")), _column(line)
        lazy = self._in_paragraph and not _FENCE.match(line, at)
        for _ in range(_DEEP):
            item = _ITEM.match(line, at)
            fits = not self._items or column >= self._items[-1]
            if item or not lazy:
                while self._items and column < self._items[-1]:
                    self._items.pop()
            base = self._items[-1] if self._items else 0
            if not item or column - base >= _ODD or _is_rule(line[at:]):
                return at, column
            rest = line[item.end() :]
            if self._in_paragraph and fits and (item[1] or "1") != "1" and not self._items:
                return at, column
            if self._in_paragraph and not rest.strip():
                return at, column
            width = column + item.end() - at
            room = _column(rest, width) - width
            column = width + (room if rest.strip() and room <= _ODD else 1)
            self._items.append(column)
            if rest.strip() and room > _ODD:
                return item.end() + 1, column + room - 1
            at = item.end() + len(rest) - len(rest.lstrip(" \t"))
            lazy = self._in_paragraph = False
        self._lost = True
        return at, column

    def _spans(self, line: str, bare: str, start: int, below: str) -> None:
        """The inline code of a line, where the whole paragraph pairs its backticks line by line."""
        self._definition |= bare.startswith("[")
        self._table |= bool(_DELIMITERS.match(line))
        runs = [(found.start(), found.end()) for found in _RUN.finditer(line)]
        whole = _whole(line)
        pairs, alone = _pairs(line, runs)
        if not whole and runs and (alone is not None or self._definition):
            self._settle(start + (runs[0][0] if self._definition or alone is None else alone))
        if not whole and pairs and pairs[-1][1][1] == len(line):  # one more backtick, and it ends no span
            self._settle(start + pairs[-1][0][0])
        if self._definition and "]:" in line:
            self._paired = False
        pipes = any(_PIPE.search(line, a, b) for (_, a), (b, _) in pairs)
        if pipes and not _whole(below):
            self._settle(start + runs[0][0])
        cells = pipes and (self._table or _DELIMITERS.match(below))
        if self._paired and not cells:
            for (opening, inside), (until, closing) in pairs:
                self._codes.append(CodeSpan(start + opening, start + inside, start + until, start + closing))
        if alone is not None:
            self._paired = False


def _is_rule(line: str) -> bool:
    """Whether it is a line across the page, which looks like items of a list."""
    signs = "".join(line.split())
    return len(signs) > 2 and signs[0] in "-*_" and not signs.strip(signs[0])


def _whole(line: str) -> bool:
    return line.endswith(("\n", "\r"))


def _opens(found: re.Match[str]) -> bool:
    """Whether that line opens a block of code; one with a bar may be the head of a table."""
    return "|" not in found[2] and (found[1][0] == "~" or "`" not in found[2])


def _column(line: str, column: int = 0) -> int:
    """The column of the first sign that is no blank; a tab goes on to the next multiple of four."""
    for sign in line:
        if sign == " ":
            column += 1
        elif sign == "\t":
            column += 4 - column % 4
        else:
            break
    return column


_Span = tuple[int, int]


def _pairs(line: str, runs: list[_Span]) -> tuple[list[tuple[_Span, _Span]], int | None]:
    """Each run of backticks with the next one as long, and where the first without one is."""
    found: list[tuple[_Span, _Span]] = []
    n = 0
    while n < len(runs):
        start, end = runs[n]
        size = end - start
        close = next((m for m in range(n + 1, len(runs)) if runs[m][1] - runs[m][0] == size), None)
        if close is None or line[start - 1 : start] == "\\":
            return found, start
        found.append((runs[n], runs[close]))
        n = close + 1
    return found, None


def discord(text: str) -> Scan:
    """Code as Discord finds it: three backticks anywhere up to the next three, spans of one or two.

    A span of two may hold single ones, and one of one may hold two. It goes over line breaks, unless its
    first line stands in a list, a quotation or a heading, which may end with it. What pairs in another way
    than that makes the rest of the text have no code.
    """
    codes: list[CodeSpan] = []
    runs = [found.span() for found in _RUN.finditer(text)]
    for (start, inside), close in _in_twos(runs):
        size = inside - start
        line = text.rfind("\n", 0, start) + 1
        if close is None or size > 3 or close[1] - close[0] != size or text[start - 1 : start] == "\\":
            break
        code = text[inside : close[0]]
        if size < 3:
            if "\n" in code and _BLOCK.match(text, line):
                break
            codes.append(CodeSpan(start, inside, *close))
            continue
        indent = text[line:start]
        if indent.strip(" ") or not code.strip("\n") or not _indented(code, len(indent)):
            break
        head, newline, _ = code.partition("\n")
        language = head if newline and re.fullmatch(r"[\w+.#-]*", head) else ""
        begin = inside + len(head) + 1 if newline and language == head else inside
        codes.append(CodeSpan(start, begin, *close, language))
    return Scan(tuple(codes), len(text))


def _in_twos(runs: list[_Span]) -> Iterator[tuple[_Span, _Span | None]]:
    """Each run that opens, and the next one; behind one of two those of one are passed over, and the other
    way round."""
    ahead = iter(runs)
    for opening in ahead:
        close = next(ahead, None)
        while close and {opening[1] - opening[0], close[1] - close[0]} == {1, 2}:
            close = next(ahead, None)
        yield opening, close


def _indented(code: str, column: int) -> bool:
    """Whether all lines below the first stand in the list item that the first stands in."""
    lines = code.split("\n")[1:]
    return all(len(line) - len(line.lstrip(" ")) >= column for line in lines if line.strip())
