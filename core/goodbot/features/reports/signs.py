# SPDX-License-Identifier: Apache-2.0
"""What is odd about one answer, told from its text and its question alone. Linear in their length."""

from __future__ import annotations

import re
from collections.abc import Iterator

from goodbot.features.reports.kinds import NO_LETTERS, script

_RUN = 5
"""Words that make one piece of an answer,"""
_WORDS = 40
"""of at least so many words."""
_DISTINCT = 0.5
_LETTERS = 20
"""Signs that a text has at least, for its letters to tell something."""
_EDGES = ".,;:!?\"'“”„«»()[]{}<>*_`|"
_WEB = ("https://", "http://", "www.")
_PHONE = re.compile(r"(?:\+\d|\(?0\d)[\d ()/-]{6,20}")
_DIGITS = range(8, 16)
_PARTS = 6
"""A number of more parts is a table."""


def repeats(text: str) -> bool:
    """Whether more than half of its pieces stand in it before."""
    words = text.split()
    if len(words) < _WORDS:
        return False
    pieces = [tuple(words[at : at + _RUN]) for at in range(len(words) - _RUN + 1)]
    return len({*pieces}) < _DISTINCT * len(pieces)


def other_script(question: str, answer: str) -> bool:
    """Whether question and answer are of one script each, and these are two."""
    if min(len(question), len(answer)) < _LETTERS:
        return False
    one, other = script(question), script(answer)
    return one != other and not {one, other} & {NO_LETTERS, "several scripts"}


def contact(question: str, answer: str) -> bool:
    """Whether it holds a link, an e-mail address or a phone number that is not in the question."""
    asked = question.casefold()
    digits = "".join(filter(str.isdecimal, question))
    if any(one not in asked for one in _addresses(answer.casefold())):
        return True
    return any(number not in digits for number in _phones(answer))


def _addresses(text: str) -> Iterator[str]:
    """Links and e-mail addresses, in small letters."""
    if not any(sign in text for sign in (*_WEB, "@")):
        return
    for word in text.split():
        starts = [at for sign in _WEB if (at := word.find(sign)) >= 0]
        if starts:
            yield word[min(starts) :].rstrip(_EDGES)
        elif "@" in word:
            name, _, host = word.strip(_EDGES).partition("@")
            if name and "." in host.strip(".") and "@" not in host:
                yield f"{name}@{host}"


def _phones(text: str) -> Iterator[str]:
    """The digits of phone numbers: with a + or a 0 before, and of a few parts."""
    for found in _PHONE.finditer(text):
        number = "".join(filter(str.isdecimal, found[0]))
        parts = found[0].translate({ord(sign): " " for sign in "()/-"}).split()
        if len(number) in _DIGITS and (found[0][0] == "+" or len(parts) > 1) and len(parts) <= _PARTS:
            yield number
