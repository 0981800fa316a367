# SPDX-License-Identifier: Apache-2.0
"""Regular expressions over long texts, a piece at a time: while one runs, no other thread does.

Each call of `re` holds the interpreter until it returns, in whichever thread it is made. So a search through
megabytes is many short ones, and what others wait for goes on between them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

PIECE = 128 * 1024
"""Characters that are searched at once."""
NEAR = 16 * 1024
"""Characters before the end of a piece that the next one looks at again: what goes on behind it is seen whole
there. A pattern must need no more of a text to know that it fits."""


def each(pattern: str | re.Pattern[str], text: str) -> Iterator[re.Match[str]]:
    """As `re.finditer`, for patterns that match no empty text."""
    pattern = re.compile(pattern)
    if len(text) <= PIECE:
        yield from pattern.finditer(text)
        return
    at = 0
    while at < len(text):
        end = min(at + PIECE, len(text))
        found = pattern.search(text, at, end)
        if found is None:
            at = end - NEAR if end < len(text) else end
            continue
        if end < len(text) and found.end() > end - NEAR:  # it may go on, or be none, behind the piece
            if found.start() > at:
                at = found.start()
                continue
            found = pattern.match(text, at)
            if found is None:
                at += 1
                continue
        yield found
        at = found.end()


def search(pattern: str | re.Pattern[str], text: str) -> re.Match[str] | None:
    """As `re.search`."""
    return next(each(pattern, text), None)


def sub(pattern: str | re.Pattern[str], put: Callable[[re.Match[str]], str], text: str) -> str:
    """As `re.sub`."""
    kept, done = list[str](), 0
    for found in each(pattern, text):
        kept += (text[done : found.start()], put(found))
        done = found.end()
    return "".join([*kept, text[done:]]) if kept else text


def pieces(text: str) -> Iterator[str]:
    """The text in pieces, each with what the one behind it begins with."""
    for at in range(0, len(text), PIECE):
        yield text[at : at + PIECE + NEAR]


def mapped(do: Callable[[str], str], text: str) -> str:
    """What `do` makes of it, where that is done sign by sign."""
    if len(text) <= PIECE:
        return do(text)
    return "".join(do(text[at : at + PIECE]) for at in range(0, len(text), PIECE))
