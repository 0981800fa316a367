# SPDX-License-Identifier: Apache-2.0
"""Groups of answers that need no model to tell: by language, length, hour and place, and by topic."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime
from functools import cache

from goodbot.api.report import ReportedAnswer
from goodbot.api.texts import reworded, say
from goodbot.base import topics

_READ = 400
"""Characters of a text that its language is told from."""
_MOST = 0.7
"""Of the letters, for a text to be of one script."""
_JAPANESE = ("HIRAGANA", "KATAKANA")
_CHINESE = "CJK"
_LATIN = "Latin letters"
NO_LETTERS = "no letters"
_MIXED = "several scripts"
_SCRIPTS = {
    _CHINESE: "Chinese",
    "LATIN": _LATIN,
    "HANGUL": "Korean",
    "CYRILLIC": "Cyrillic",
    "GREEK": "Greek",
    "ARABIC": "Arabic",
    "HEBREW": "Hebrew",
    "DEVANAGARI": "Devanagari",
    "THAI": "Thai",
}
"""By Unicode's names, what the catalogue has a word for; others are called as there."""
_USUAL = {
    "English": "the and is are what how of to you i it this that for with my can do does please why not"
    " a an as at be by was were me no or so if but on in we he she they about there have has write tell give",
    "German": "der die das und ist wie was ein eine nicht ich du mir bitte für mit auf wer warum kann von",
    "French": "le la les et est un une des que qui quel quelle comment pourquoi je tu vous dans avec pas",
    "Spanish": "el la los las y es un una qué que cómo por para con no me mi cuál dónde está puedes del se",
    "Portuguese": "o a os as e é um uma que como por para com não me meu qual onde está pode do da você",
    "Italian": "il lo la gli e è un una che come per con non mi qual dove puoi della perché sono di",
    "Dutch": "de het een en is wat hoe niet ik je van voor met op dat kan waarom mijn zijn",
}
"""Frequent words; one that several have speaks for none of them alone."""
_OF: dict[str, list[str]] = {}
for _language, _usual in _USUAL.items():
    for _word in _usual.split():
        _OF.setdefault(_word, []).append(_language)
_LENGTHS = ((100, "up to 100 characters"), (400, "101 to 400"), (1500, "401 to 1,500"))
_HOURS = 6
_TO = " to "
_PRIVATE = ", in private"


def script(text: str) -> str:
    """Of which letters a text is: `Latin letters`, `Cyrillic`, `Japanese`, …"""
    text = text[:_READ]
    if text.isascii():
        return _LATIN if any(map(str.isalpha, text)) else NO_LETTERS
    found: Counter[str] = Counter()
    for character, count in Counter(text).items():
        if name := _script(character):
            found[name] += count
    letters = found.total()
    if not letters:
        return NO_LETTERS
    kana = sum(found.pop(name, 0) for name in _JAPANESE)
    if kana * 10 > letters:
        kana += found.pop(_CHINESE, 0)
    found["Japanese"] += kana
    [(name, count)] = found.most_common(1)
    if count < _MOST * letters:
        return _MIXED
    return _SCRIPTS.get(name, name.capitalize())


@cache
def _script(character: str) -> str:
    """As Unicode names it; empty for what is no letter."""
    return unicodedata.name(character, "").partition(" ")[0] if character.isalpha() else ""


def language(text: str) -> str:
    """The language, where its letters or its frequent words tell it; else the letters."""
    letters = script(text)
    if letters != _LATIN:
        return letters
    found: Counter[str] = Counter()
    for word in text[:_READ].casefold().split():
        found.update(_OF.get(word.strip("¿¡?!.,;:\"'()“”«»"), ()))
    best = found.most_common(2)
    alone = len(best) == 1 or (len(best) == 2 and best[0][1] > best[1][1])
    return best[0][0] if alone else _LATIN


def _length(characters: int) -> str:
    return next((name for most, name in _LENGTHS if characters <= most), "longer")


def _hour(at: float) -> str:
    begin = datetime.fromtimestamp(at).hour // _HOURS * _HOURS  # noqa: DTZ006  the owner's clock
    return f"{begin:02}:00{_TO}{begin + _HOURS:02}:00"


def _place(answer: ReportedAnswer) -> str:
    return f"{answer.connector}:{answer.place}" if answer.shared else f"{answer.connector}{_PRIVATE}"


TOPIC = "topic"
NO_TOPIC = "none of these"
DIMENSIONS = {
    "language": "page_by_language",
    TOPIC: "page_by_topic",
    "length": "page_by_length",
    "hour": "page_by_hour",
    "place": "page_place",
}
"""With the keys of their titles."""


def named(groups: Iterable[str], read: str, dimension: str = "language") -> dict[str, str]:
    """How the reader says these groups of one dimension, where that is not as programs are told them."""
    told = {one: _named(one, read, dimension) for one in groups}
    return {one: name for one, name in told.items() if name != one}


def _named(group: str, read: str, dimension: str) -> str:
    if dimension == "hour":
        begin, _, end = group.partition(_TO)
        return say("group_hours", read, begin=begin, end=end)
    if dimension == "place" and group.endswith(_PRIVATE):
        return say("group_private", read, place=group.removesuffix(_PRIVATE))
    ours = dimension in ("language", "length") or group == NO_TOPIC
    return reworded(group, read) if ours else group


def groups(answer: ReportedAnswer) -> tuple[tuple[str, str], ...]:
    """Of each of `DIMENSIONS` but the topic, which one answer does not tell, the group that it belongs to."""
    return (
        ("language", language(answer.question)),
        ("length", _length(answer.length)),
        ("hour", _hour(answer.at)),
        ("place", _place(answer)),
    )


def by_topic(questions: Sequence[str], answers: Sequence[str]) -> list[str]:
    """Of each question the most frequent of its topics; empty where the questions have none."""
    found = topics.topics(questions, answers)
    of = [NO_TOPIC] * len(questions)
    for word, asked in reversed(found.items()):
        for number in asked:
            of[number] = word
    return of if found else []
