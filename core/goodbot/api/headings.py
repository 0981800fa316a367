# SPDX-License-Identifier: Apache-2.0
"""What a chat template writes around people's words, where some of it is no token of its own.

Such a mark is plain text to the tokenizer: a sign (`[|user|]`), or a heading (`USER:`, `### Response:`). A
sign is one wherever it stands. A heading is one at the beginning of a line only, or behind a blank where the
template writes it so: elsewhere it is a word like others.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

INNER = r"[^|｜<>'\"{}\s]{1,48}"
_SIGN = re.compile(
    rf"<\|{INNER}\|?>|<{INNER}\|>|<｜{INNER}｜>|<</?[A-Za-z]{{2,12}}>>|\[\|/?{INNER}\|\]"
    r"|\[/?[A-Za-z][A-Z_]{2,30}(?:\d+)?\]|</?[A-Za-z][\w.:-]{0,40}>|\]~!?[a-z]\[|\]~[a-z]\]|\[[a-z]~\["
)
_TAG = re.compile(r"(\{\{[-+]?|\{%[-+]?|\{#|[-+]?\}\}|[-+]?%\}|#\})")
_PART = re.compile(
    r"(?P<role>(?<![\w.])(?:[\w.]{1,64}\[\s*['\"]role['\"]\s*\]|(?:[\w.]{1,64}\.)?role\b)"
    r"(?:\s*\|\s*\w+|\.\w+\(\))?)"
    r"|'(?P<one>(?:[^'\\]|\\.)*)'|\"(?P<two>(?:[^\"\\]|\\.)*)\"|(?P<glue>[+~\s()]+)|(?P<other>\w+|.)",
    re.DOTALL,
)
_ROLE, _BREAK = "\ue000", "\ue001"
_ROLES = ("system", "user", "assistant", "tool", "developer", "model", "human", "bot", "observation")
_LONGEST = 64
_COLONS = (":", "：")
_MOST = 512
"""Headings of one template."""


@dataclass(frozen=True, slots=True)
class Heading:
    """Words that begin a turn."""

    words: str
    inline: bool = False
    """The template writes it in the middle of a line, too, behind a blank."""
    alone: bool = False
    """It is one only where nothing else is on its line."""


def signs(text: str) -> tuple[str, ...]:
    """What in a text looks like a mark."""
    return tuple(dict.fromkeys(_SIGN.findall(text)))


def around(written: str, said: Sequence[str]) -> list[str]:
    """What a template has written before, between and behind these words."""
    return re.split("|".join(map(re.escape, said)), written)


def headings(gaps: Iterable[str], known: Collection[str] = (), *, sure: bool = False) -> set[Heading]:
    """The headings in what a template writes; `known` are the marks that its tokenizer has.

    `sure`: the gaps are just what stands between people's words. Then what has no mark at all in it tells
    turns whatever it looks like.
    """
    cut = re.compile("|".join(map(re.escape, sorted(known, key=len, reverse=True))) or r"(?!)")
    found: set[Heading] = set()
    for gap in gaps:
        parts = cut.split(gap)
        for part in parts:
            bare = sure and len(parts) == 1 and not _SIGN.search(part)
            found.update(_headings(part, bare=bare))
    return set(sorted(found, key=lambda one: one.words)[:_MOST])


def _headings(part: str, *, bare: bool) -> Iterator[Heading]:
    lines = _SIGN.sub("\n", part).split("\n")
    for at, line in enumerate(lines):
        words = line.strip()
        if not 1 < len(words) <= _LONGEST or not any(sign.isalpha() for sign in words):
            continue
        if words.endswith(_COLONS) or words.startswith("#"):
            yield Heading(words, inline=at == 0 and line[:1] == " ")
        elif bare:
            yield Heading(words, inline=at == 0 and line[:1] == " ", alone=at + 1 < len(lines))


def pieces(template: str) -> list[str]:
    """What the source of a template writes in one go, with the names of roles in their places.

    It is a program of somebody else's, so it is read here and not run.
    """
    stream: list[str] = []
    inside = ""
    for at, part in enumerate(_TAG.split(template)):
        if at % 2:
            stream += [_BREAK] if "%" in part else []
            inside = part[:2] if part[0] == "{" else ""
        elif not inside:
            stream.append(part)
        elif inside != "{#":
            stream += _expression(part)
    found: list[str] = []
    for piece in "".join(stream).split(_BREAK):
        named = {change(role) for role in _ROLES for change in (str.lower, str.title, str.upper)}
        found += [piece.replace(_ROLE, role) for role in sorted(named)] if _ROLE in piece else [piece]
    return [piece for piece in found if piece.strip()]


def _expression(text: str) -> Iterator[str]:
    for part in _PART.finditer(text):
        if part["role"]:
            yield _ROLE
        elif (said := part["one"] if part["one"] is not None else part["two"]) is not None:
            yield re.sub(r"\\(.)", lambda sign: {"n": "\n", "t": "\t"}.get(sign[1], sign[1]), said)
        elif part["other"]:
            yield _BREAK
