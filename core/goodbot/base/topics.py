# SPDX-License-Identifier: Apache-2.0
"""What many questions are about: the words that tell some of them apart from the rest.

It knows no language and no list of words; where no spaces stand between words, it finds none. A word of a
question is a topic where the answers take it up: an answer holds it far oftener than answers to other
questions do. “what” and “the” are in as many of both.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from math import log

MOST = 8
"""Topics."""
_WORD = re.compile(r"[^\W\d_]{3,40}")
_LEAST, _SHARE = 5, 0.01
"""So many questions are of a topic at least, and this share of all of them."""
_COMMON = 0.5
"""A word in more of them tells nothing apart."""
_LIFT = 2.0
"""So much oftener an answer holds the word where the question does."""
READ = 1000
"""Characters of each text."""


def topics(questions: Sequence[str], answers: Sequence[str]) -> dict[str, list[int]]:
    """A word of each topic, those of most questions first, and which questions hold it; always the same
    for the same texts.

    One after another the word is taken that most of the questions hold that are of no topic yet, the rarer
    words weighing more (as TF-IDF has it).
    """
    asked = [words(text) for text in questions]
    answered = [words(text) for text in answers]
    count, told = Counter(_each(asked)), Counter(_each(answered))
    both = Counter(_each(one & other for one, other in zip(asked, answered, strict=True)))
    least = max(_LEAST, _SHARE * len(asked))
    weights = {
        word: log(len(asked) / n)
        for word, n in count.items()
        if least <= n <= _COMMON * len(asked) and both[word] * len(asked) >= _LIFT * n * told[word] > 0
    }
    left, found = asked, list[str]()
    while len(found) < MOST:
        here = Counter(word for word in _each(left) if word in weights)
        best = min(here, key=lambda word: (-here[word] * weights[word], word), default="")
        if here[best] < least:
            break
        found.append(best)
        left = [of_one for of_one in left if best not in of_one]
    found.sort(key=lambda word: (-count[word], word))
    return {word: [number for number, of_one in enumerate(asked) if word in of_one] for word in found}


def words(text: str) -> frozenset[str]:
    """Those of the beginning of a text, in small letters."""
    return frozenset(_WORD.findall(text[:READ].casefold()))


def _each(sets: Iterable[frozenset[str]]) -> Iterator[str]:
    return (word for one in sets for word in one)
