# SPDX-License-Identifier: Apache-2.0
"""Text in which nothing acts by itself: an invisible joiner behind each sign that would.

Each platform names its own signs; code is left as it is, for people copy from there.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping

from goodbot_connectors.kit.code import CONTAINERS, CodeSpan, Scan

JOINER = "\u2060"
"""Breaks a sign: it is seen nowhere, and joins what stands on its sides."""

Signs = re.Pattern[str]
Acts = Callable[[str, re.Match[str]], bool]

_TAG = re.compile(r"<(?=[A-Za-z])")
_BODY = re.compile(r"(?:[^<>\r\n]|\r?\n(?![ \t]*(?:\r?\n|\Z))){0,200}+")
_LAST = re.compile(r"[ \t\r\n]*+\Z")
_LABEL = 999
_PREFIX = 200


def broken(
    text: str,
    codes: tuple[CodeSpan, ...],
    signs: Signs,
    inside: Signs | None = None,
    acts: Acts = lambda text, found: True,
) -> str:
    """`text` with a joiner behind each of the `signs` in running text, and of those `inside` code."""
    marks = [found.end() for found in outside(text, codes, signs) if acts(text, found)]
    if inside:
        for code in codes:
            marks += [found.end() for found in inside.finditer(text, code.inside, code.until)]
    return inserted(text, dict.fromkeys(marks, JOINER))


def inserted(text: str, marks: Mapping[int, str]) -> str:
    """`text` with what is to stand before each of the places."""
    done, parts = 0, list[str]()
    for at in sorted(marks):
        parts += [text[done:at], marks[at]]
        done = at
    return "".join([*parts, text[done:]])


def outside(
    text: str, codes: tuple[CodeSpan, ...], signs: Signs, *, openings: bool = True
) -> Iterator[re.Match[str]]:
    """The `signs` in running text; with `openings` the opening lines of code blocks count as that."""
    ahead = iter(codes)
    code = next(ahead, None)
    for found in signs.finditer(text):
        at = found.start()
        while code and at >= code.stop:
            code = next(ahead, None)
        if code is None or at < (code.inside if code.fenced and openings else code.start):
            yield found


def is_markup(text: str, found: re.Match[str]) -> bool:
    """Whether CommonMark may take the sign found for a tag, or for the end of a link's definition.

    Signs of other kinds always may. A tag that begins no line has to end in its paragraph; one that is
    longer than 200 characters is taken for one.
    """
    at = found.start()
    if _TAG.match(text, at):
        return _begins_a_line(text, at) or _after(text, found.end()) in (">", None)
    if text.startswith("]:", at):
        opening = text.rfind("[", max(0, at - _LABEL), at)
        while opening > 0 and text[opening - 1] == "\\":
            opening = text.rfind("[", max(0, at - _LABEL), opening)
        return opening >= 0 and _begins_a_line(text, opening)
    return True


def settled(text: str, scan: Scan) -> int:
    """How much of `text` stays as it is shown, whatever is written after it, for `is_markup`."""
    shown = text[: scan.settled]  # what stands behind it may yet become something else
    for found in outside(shown, scan.codes, _TAG):
        if not _begins_a_line(shown, found.start()) and _after(shown, found.end()) == "":
            return found.end()
    return len(shown)


def _after(text: str, at: int) -> str | None:
    """What ends the tag that begins at `at`: `>`; `<` or a blank line, if it is none; "" if nothing
    does yet, None if all that is too far away to be looked for.
    """
    end = body.end() if (body := _BODY.match(text, at)) else at
    if last := _LAST.match(text, end):
        return "" if last[0].count("\n") < 2 else "\n"
    if text[end] == "<":
        return ">" if {"'", '"'} & set(text[at:end]) else "<"
    return text[end] if text[end] in ">\n" or text[end : end + 2] == "\r\n" else None


def _begins_a_line(text: str, at: int) -> bool:
    """Whether nothing but blanks and the signs of lists and quotations stands before it."""
    line = max(text.rfind("\n", 0, at), text.rfind("\r", 0, at)) + 1
    containers = CONTAINERS.match(text, line, line + _PREFIX)
    return containers is not None and containers.end() >= min(at, line + _PREFIX)
