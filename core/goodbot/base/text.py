# SPDX-License-Identifier: Apache-2.0
"""Text on its way to a platform: length in UTF-16 code units, and the splitting of long answers.

Telegram, Discord and Teams all count UTF-16 code units, where an emoji outside the Basic
Multilingual Plane is two; Python counts code points.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

SMALLEST = 64
"""The smallest limit that `split` takes: room for a code fence's two lines and some text."""

_FENCE = re.compile(r" {0,3}(`{3,8})([^`\n]{0,200})$")
_WORD = re.compile(r"[\w+#.-]{1,20}")
_DIRECTION = re.compile("[\u202a-\u202e\u2066-\u2069]")


class Fence(NamedTuple):
    """The opening line of a Markdown code block."""

    marker: str
    language: str
    at: int
    """Where the line starts in the text that was scanned."""

    @property
    def line(self) -> str:
        return f"{self.marker}{self.language}\n"


class Block(NamedTuple):
    """A stretch of running text, or the inside of a code block."""

    text: str
    fence: Fence | None = None
    closed: bool = True


def units(text: str) -> int:
    """The length of `text` in UTF-16 code units."""
    return len(text) + sum(character > "\uffff" for character in text)


def one_way(text: str) -> str:
    """`clean`, and without the signs that turn the direction of reading: they can forge a link's end."""
    return _DIRECTION.sub("", clean(text))


def clean(text: str) -> str:
    """`text` with unpaired surrogates replaced: neither a database nor a platform takes those."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def begun(clause: str) -> str:
    """A clause as it begins a line, or a sentence."""
    return f"{clause[:1].upper()}{clause[1:]}"


def blocks(text: str) -> Iterator[Block]:
    """Running text and code blocks in turn, without the fence lines.

    Knows what CommonMark calls a fenced code block with backticks; one of more than eight
    backticks is taken for text.
    """
    fence: Fence | None = None
    lines: list[str] = []
    at = 0
    for line in text.split("\n"):
        found = _FENCE.match(line.rstrip())
        if found and fence is None:
            if lines:
                yield Block("\n".join(lines))
            word = _WORD.match(found[2].strip())
            fence, lines = Fence(found[1], word[0] if word else "", at), []
        elif found and fence and len(found[1]) >= len(fence.marker) and not found[2].strip():
            yield Block("\n".join(lines), fence)
            fence, lines = None, []
        else:
            lines.append(line)
        at += len(line) + 1
    if fence:
        yield Block("\n".join(lines), fence, closed=False)
    elif lines:
        yield Block("\n".join(lines))


def open_fence(text: str) -> Fence | None:
    """The code block that is still open at the end of `text`, if there is one."""
    *_, last = (Block(""), *blocks(text))
    return None if last.closed else last.fence


def split(text: str, limit: int) -> tuple[str, ...]:
    """Cut `text` into parts of at most `limit` UTF-16 units, at paragraphs where it can.

    A cut is at the end of a paragraph, a line or a word when one lies in the second half of the
    part, else anywhere between two characters. White space around a cut is dropped. A code block
    that a cut goes through is closed before it and opened again after it. No part is blank.

    Raises ValueError for a limit below `SMALLEST`.
    """
    if limit < SMALLEST:
        raise ValueError(f"a part needs at least {SMALLEST} units, not {limit}")
    parts: list[str] = []
    start, head = 0, ""
    while True:
        room = limit - units(head)
        end = _reach(text, start, room)
        if end == len(text):
            parts.append(head + text[start:])
            break
        # Any cut may have to close a code block, with a line of up to eight backticks.
        end = _boundary(text, start, _reach(text, start, room - 9))
        part = head + text[start:end]
        fence = open_fence(part)
        if fence and fence.at > len(head) and "\n" not in part[fence.at :].strip():
            # The cut would leave an opening line with nothing in its block.
            end = start + fence.at - len(head)
            part, fence = part[: fence.at], None
        start = end
        if fence is None:
            head = ""
            parts.append(part.rstrip())
            start += text[start : start + 1] == " "
            start = _skip_blank_lines(text, start)
        else:
            parts.append(f"{part.rstrip()}\n{fence.marker}")
            head = fence.line
            start += text[start : start + 1] == "\n"
            start, head = _skip_closing(text, start, fence)
    return tuple(part for part in parts if part.strip())


def _reach(text: str, start: int, room: int) -> int:
    """The furthest end such that `text[start:end]` has at most `room` units."""
    end = min(len(text), start + room)
    excess = units(text[start:end]) - room
    while excess > 0:
        end -= 1
        excess -= 2 if text[end] > "\uffff" else 1
    return end


def _boundary(text: str, start: int, end: int) -> int:
    """The best place for a cut in the second half of `text[start:end]`."""
    half = start + (end - start) // 2
    for mark in ("\n\n", "\n", " "):
        # `end + len(mark)`: the mark itself may lie beyond, it is dropped anyway.
        at = text.rfind(mark, half, end + len(mark))
        if at > start:
            return at
    return end


def _skip_blank_lines(text: str, start: int) -> int:
    while text[start : start + 1] == "\n":
        start += 1
    return start


def _skip_closing(text: str, start: int, fence: Fence) -> tuple[int, str]:
    """Where to go on after a cut in a code block: past its closing line, if that comes next."""
    end = text.find("\n", start, start + 300)
    line = text[start : end if end >= 0 else start + 300]
    if open_fence(fence.line + line) is None:
        return _skip_blank_lines(text, start + len(line)), ""
    return start, fence.line
