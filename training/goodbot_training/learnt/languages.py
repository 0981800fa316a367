# SPDX-License-Identifier: Apache-2.0
"""In which language an answer is, by its letters and a few small words; linear in the length of the text.

It is a guess that is rather not made than made wrong: short answers stay unknown. Most of a
language without a list here do, too, but its small words may be another's ("die" and "was" are Dutch, too).
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter

from goodbot.api.learnt import MARKS

_STARTS = (
    (0x0041, "latin"),
    (0x0370, "greek"),
    (0x0400, "cyrillic"),
    (0x0530, ""),
    (0x0590, "hebrew"),
    (0x0600, "arabic"),
    (0x0780, ""),
    (0x0900, "devanagari"),
    (0x0980, ""),
    (0x0E00, "thai"),
    (0x0E80, ""),
    (0x1100, "hangul"),
    (0x1200, ""),
    (0x1E00, "latin"),
    (0x1F00, "greek"),
    (0x2000, ""),
    (0x3040, "kana"),
    (0x3100, ""),
    (0x4E00, "han"),
    (0xA000, ""),
    (0xAC00, "hangul"),
    (0xD7B0, ""),
)
"""From which code point on which script; empty: another one."""
_FROM = [start for start, _ in _STARTS]
_WORDS = {
    "en": "the and is are of to you with that for it be was not",
    "de": "der die das und ist nicht ein eine mit zu sie ich den auch",
    "es": "el y es para del más está",
    "fr": "le les et est une vous pour dans des pas qui sur avec je",
    "it": "il gli è non di della sono che ci anche lo",
    "pt": "os uma não com você é em são mais ao seu",
}
"""Without those that another language often has, too: "as", "per", "los" in names, "con", "por", "que"."""
_SMALL = {name: frozenset(words.split()) for name, words in _WORDS.items()}
_LEAST = 2
"""Of its small words an answer must hold so many different ones, and more than of any other language's."""
_LETTERS = 4
"""Fewer of a script are a sign (π) or a name."""
_KANA = 4
"""A Japanese text has one kana for so many han at least; a Chinese one may quote some."""


def language(text: str) -> str:
    """A language or a script that has but one here; empty where that cannot be told."""
    prose = "".join(text.split("```")[::2])  # code is English anywhere
    letters = Counter(_script(sign) for sign in prose if sign.isalpha())
    if 0 < letters["han"] <= _KANA * letters["kana"]:
        letters["kana"] += letters.pop("han")
    if not letters:
        return ""
    [(script, most)] = letters.most_common(1)
    if most < _LETTERS or 2 * most <= letters.total():
        return ""
    return _of_latin(prose) if script == "latin" else script


def _script(sign: str) -> str:
    return _STARTS[at - 1][1] if (at := bisect_right(_FROM, ord(sign))) else ""


def _of_latin(text: str) -> str:
    words = {word.strip(MARKS) for word in text.casefold().split()}
    found = Counter({name: len(words & small) for name, small in _SMALL.items()})
    (best, most), (_, next_) = found.most_common(2)
    return best if most >= _LEAST and most > next_ else ""
