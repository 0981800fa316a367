# SPDX-License-Identifier: Apache-2.0
"""What people want of answers, in lines for the prompt: how a line comes about, and which are shown. Pure.

A line is quoted data: one line, without control signs, without brackets of any kind, of which all marks of
templates and all tool calls are made, and not longer than a sentence. Marks that are words stay readable.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from typing import NamedTuple

from goodbot.api.marks import Match, Pattern
from goodbot.api.noted import FRAME
from goodbot.api.sentences import Reason, because
from goodbot.base.text import clean
from goodbot.store.notes import Note, Scope

MOST = 8
"""Lines of one scope."""
_TOKENS = 120
"""Of a prompt, for all lines together."""
_AROUND = 8
"""Tokens that a chat template puts around a message."""
_LONGEST = 120
"""Bytes of a line."""
_DEARER = 1.3
"""What a byte of Greek, Cyrillic, Hebrew or Arabic costs, where one of English words costs 1."""
_FRAME = f"{FRAME}{{}}"
_LIKE = "Answer more like this: "
_FIRST: tuple[Scope, ...] = ("person", "channel", "everybody")
"""Whose lines come first."""
_SIGNS = str.maketrans({'"': "'", **dict.fromkeys("<>[]{}`|\\◁▷「」【】", " ")})
_JOINERS = "\u200c\u200d"
"""Format signs without which some scripts are not spelt right."""
_LATELY, _AGREED = 10, 2
"""A channel has a line by so many of the last ratings that said there what was wrong."""
_CLEARLY = 40
"""Characters by which a better answer is longer or shorter on purpose."""
_BARE = 24
"""Bytes of an answer that has room for what is said, and hardly for how: it is no example for others."""


class Rule(NamedTuple):
    """What a chip comes to: the line, what its rater is told, and the chip that says the opposite."""

    text: str
    told: Reason
    opposite: str = ""


class Line(NamedTuple):
    """A line that somebody's words come to. `rule`: as that chip; empty: their own words."""

    rule: str
    text: str
    told: Reason


RULES = {
    "long": Rule("Answer briefly, in fewer words.", because("noted_long"), "short"),
    "short": Rule("Answer in more detail.", because("noted_short"), "long"),
    "wrong": Rule("Check every fact before you answer.", because("noted_wrong")),
    "tone": Rule("Use another tone than in your last answers.", because("noted_tone")),
    "better": Rule("Say it more clearly.", because("noted_better")),
}
"""By chip (`goodbot.api.actions.HINTS`)."""


def of_chip(chip: str) -> Line:
    """The line of a chip."""
    return Line(chip, RULES[chip].text, RULES[chip].told)


def of_reason(text: str, marks: Pattern) -> Line | None:
    """A reason, in its author's words; None where nothing is left of it."""
    words = one_line(text, marks)
    return Line("", words, because("noted_words")) if words else None


def of_better(text: str, answer: str, marks: Pattern) -> Line | None:
    """A better answer: one of quite another length says that, a word nothing, any other is an example."""
    own = text.strip()
    wanted, had = len(own), len(answer.strip())
    bare = len(own.encode()) < _BARE
    if (abs(wanted - had) >= _CLEARLY or (bare and wanted < had)) and not had < 2 * wanted < 4 * had:
        return of_chip("long" if wanted < had else "short")
    if bare and len(own.split()) == 1:
        return None
    words = one_line(text, marks, room=_LONGEST - len(_LIKE.encode()))
    return Line("", _LIKE + words, because("noted_example")) if words else None


def told(note: Note) -> Reason:
    """What the rater is told of a line."""
    if note.rule:
        return RULES[note.rule].told
    return because("noted_example" if is_example(note.text) else "noted_words")


def is_example(text: str) -> bool:
    """Whether a line shows a better answer: nothing says so but its beginning."""
    return text.startswith(_LIKE)


def one_line(text: str, marks: Pattern, *, room: int = _LONGEST) -> str:
    """Somebody's words as one line of data of at most `room` bytes; `marks` are the model's own."""
    folded = unicodedata.normalize("NFKC", clean(text)).translate(_SIGNS)
    words = " ".join("".join(map(_harmless, folded)).split())
    while (safe := " ".join(marks.sub(_unmarked, words).split())) != words:
        words = safe
    return _cut(words.lstrip("#-*•/ "), room)


def _unmarked(beginning: Match) -> str:
    """Without the sign that a mark begins with. A heading (`User:`) is words, which prompts break."""
    return beginning[0] if beginning[0][-1].isalpha() else " "


def _harmless(sign: str) -> str:
    kind = unicodedata.category(sign)
    return " " if kind[0] in "CZ" and sign not in _JOINERS else sign


def _cut(text: str, room: int) -> str:
    """The beginning of a text in so many bytes, up to the end of a word where one is near."""
    if len(text.encode()) <= room:
        return text
    begin = text.encode()[: max(0, room - 3)].decode(errors="ignore")
    head, _, rest = begin.rpartition(" ")
    return f"{(head if len(head) > len(rest) else begin).strip()}…" if begin else ""


def effective(notes: Sequence[Note]) -> list[Note]:
    """Those that are in use, the most important first: a person's own before a channel's, edited before
    others, then the newest. Of two that contradict each other, or say the same, that one is left which
    comes first."""
    found: list[Note] = []
    for note in sorted(agreed(notes), key=_rank):
        opposite = RULES[note.rule].opposite if note.rule in RULES else ""
        said = any(one.text == note.text or (opposite and one.rule == opposite) for one in found)
        full = sum(one.scope == note.scope for one in found) >= MOST
        if note.in_use and not said and not full:
            found.append(note)
    return found


def agreed(notes: Sequence[Note]) -> list[Note]:
    """Without a channel's lines that too few of the last ratings there have asked for."""
    asked = {rating for note in notes if note.scope == "channel" for rating in note.ratings}
    last = set(sorted(asked)[-_LATELY:])
    return [note for note in notes if note.scope != "channel" or len(last & {*note.ratings}) >= _AGREED]


def surplus(notes: Sequence[Note]) -> list[int]:
    """Which of the lines of one scope give way, so that there are not too many: the oldest first.

    Those that are learnt leave their places to others, and there are not too many of them either.
    """
    ranked = sorted(notes, key=_rank)
    return [one.id for so in (False, True) for one in [n for n in ranked if n.retired is so][MOST:]]


def _rank(note: Note) -> tuple[int, bool, int, int]:
    return (_FIRST.index(note.scope), not note.edited, -note.said_last, -note.id)


def system_line(texts: Sequence[str], tokens_a_byte: float) -> str:
    """What the system says of these lines, the most important first, in at most 120 tokens; empty: nothing.

    `tokens_a_byte`: of English words, at most, with the model's vocabulary.
    """
    room = _TOKENS - _AROUND - _most(_FRAME.format(""), tokens_a_byte)
    shown: list[str] = []
    for text in texts:
        left = room - _most("; ".join([*shown, '""']), tokens_a_byte)
        one = text if shown or _most(text, tokens_a_byte) <= left else _cut(text, int(left))
        if one and _most(one, tokens_a_byte) <= left:
            shown.append(f'"{one}"')
    return _FRAME.format("; ".join(shown)) if shown else ""


def _most(text: str, tokens_a_byte: float) -> float:
    """Tokens of a text, at most: of what is rare in vocabularies one a byte."""
    words = sum("a" <= sign <= "z" or sign == " " for sign in text)
    near = 2 * sum("\u00a0" <= sign <= "\u06ff" for sign in text)
    rest = len(text.encode()) - words - near
    return rest + words * tokens_a_byte + near * min(1.0, _DEARER * tokens_a_byte)
