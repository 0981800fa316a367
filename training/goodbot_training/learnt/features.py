# SPDX-License-Identifier: Apache-2.0
"""An answer as a few numbers that people have words for. Each is linear in the length of the text.

What is no number of characters is 0 or 1, so that its mean is a share of the answers. Most do not depend on
the language; greetings, refusals and the first person are known in a few languages, and stay 0 in others.
Another language is one that is not the language of most of the rated answers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from goodbot.api.learnt import LENGTH, MARKS, opener
from numpy.typing import NDArray

from goodbot_training.learnt.languages import language

Table = NDArray[np.float64]

OPENS = "opens"
_OPENERS = 3
"""So many first words are looked at, the most frequent ones,"""
_OPENING = 0.1
"""if this share of the rated answers begins with them,"""
_OPENINGS = 5
"""and so many do. One that only one person was answered with is not kept (`goodbot.store.shifts`)."""
_BULLETS = ("- ", "* ", "+ ", "• ", "– ")
_GREETINGS = frozenset(
    (
        *("hello", "hi", "hey", "greetings", "welcome", "hallo", "servus", "moin"),
        *("bonjour", "salut", "hola", "buenas", "ciao", "salve", "olá", "oi"),
        *("привет", "здравствуйте", "cześć", "hej", "merhaba", "你好", "こんにちは", "안녕하세요"),
    )
)
_FIRST_PERSON = frozenset(
    (
        *("I", "I'm", "I'll", "I'd", "I've", "I’m", "I’ll", "I’d", "I’ve"),
        *("ich", "Ich", "je", "Je", "yo", "Yo", "eu", "Eu", "я", "Я"),
    )
)
_REFUSALS = (
    *("i can't", "i can’t", "i cannot", "i am not able", "i'm not able", "i’m not able"),
    *("i'm sorry", "i’m sorry", "i am sorry", "sorry, ", "as an ai", "i am unable", "i'm unable"),
    *("ich kann nicht", "ich kann das nicht", "es tut mir leid", "tut mir leid", "je ne peux pas"),
    *("je suis désolé", "lo siento", "no puedo", "mi dispiace", "non posso", "desculpe"),
)
_EMOJI = ((0x1F000, 0x1FAFF), (0x2600, 0x27BF), (0x2B50, 0x2B55))


@dataclass(frozen=True, kw_only=True, slots=True)
class TextFeature:
    """One number of an answer. `word`: of a first word, which one it is."""

    name: str
    of: Callable[[str], float]
    word: str = ""


def features(rated: Sequence[str]) -> list[TextFeature]:
    """Those of every round, of their language, and the most frequent first words of the `rated` answers."""
    first = Counter(word for text in rated if (word := opener(text)))
    least = max(_OPENINGS, _OPENING * len(rated))
    words = [word for word, count in first.most_common(_OPENERS) if count >= least]
    usual = [(name, count) for name, count in Counter(map(language, rated)).items() if 2 * count > len(rated)]
    other = TextFeature(name="other_language", of=_other_than(usual[0][0] if usual else ""))
    return [*_FIXED, other, *(TextFeature(name=OPENS, of=_begins(word), word=word) for word in words)]


def table(chosen: Sequence[TextFeature], answers: Sequence[str]) -> Table:
    """The numbers `(answers, features)`."""
    return np.array([[one.of(text) for one in chosen] for text in answers], np.float64).reshape(
        len(answers), len(chosen)
    )


def _begins(word: str) -> Callable[[str], float]:
    return lambda text: float(opener(text) == word)


def _other_than(usual: str) -> Callable[[str], float]:
    """An answer whose language is not known is in no other one; a Japanese one may have no kana."""
    known = ("", usual, "han") if usual == "kana" else ("", usual)
    return lambda text: float(bool(usual) and language(text) not in known)


def _lines(text: str) -> list[str]:
    return [line for raw in text.splitlines() if (line := raw.strip())]


def _listed(line: str) -> bool:
    if line.startswith(_BULLETS):
        return True
    digits = len(line) - len(line.lstrip("0123456789"))
    return 0 < digits < 4 and line[digits : digits + 2] in (". ", ") ")


def _lists(text: str) -> float:
    return float(sum(map(_listed, _lines(text))) > 1)


def _markup(text: str) -> float:
    return float(
        "**" in text or any(line.lstrip("#").startswith(" ") and line[0] == "#" for line in _lines(text))
    )


def _emoji(text: str) -> float:
    return float(any(low <= ord(sign) <= high for sign in text if sign > "ÿ" for low, high in _EMOJI))


def _first_person(text: str) -> float:
    return float(any(word.strip(MARKS) in _FIRST_PERSON for word in text.split()))


def _refusal(text: str) -> float:
    return float(text[:40].lstrip().casefold().startswith(_REFUSALS))


_FIXED = (
    TextFeature(name=LENGTH, of=lambda text: float(len(text.strip()))),
    TextFeature(name="line_breaks", of=lambda text: float(len(_lines(text)) > 1)),
    TextFeature(name="lists", of=_lists),
    TextFeature(name="code", of=lambda text: float("```" in text)),
    TextFeature(name="markup", of=_markup),
    TextFeature(name="emoji", of=_emoji),
    TextFeature(name="exclamations", of=lambda text: float("!" in text or "！" in text)),
    TextFeature(name="questions", of=lambda text: float(text.rstrip().endswith(("?", "？", "؟")))),
    TextFeature(name="greetings", of=lambda text: float(opener(text).casefold() in _GREETINGS)),
    TextFeature(name="refusals", of=_refusal),
    TextFeature(name="first_person", of=_first_person),
)
