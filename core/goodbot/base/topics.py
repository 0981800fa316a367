# SPDX-License-Identifier: Apache-2.0
"""What many questions are about: the words that tell some of them apart from the rest.

It knows no language and no list of words. A word of a question is a topic where the answers take it up: an
answer holds it far oftener than answers to other questions do. “what” and “the” are in as many of both.

Chinese and Japanese put no spaces between words: there two Chinese characters side by side stand for a word,
and so does what is written in katakana. Hiragana are mostly endings, and stand for none.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence, Set
from math import log

MOST = 8
"""Topics."""
_WORD = re.compile(r"[^\W\d_]{3,40}")
_CHINESE = "\u3005\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_KATAKANA = "\u30a1-\u30fa\u30fc-\u30ff"
_TOGETHER = re.compile(f"[{_CHINESE}{_KATAKANA}\u3041-\u309f]+")
"""What stands between no spaces."""
_PIECE = re.compile(
    rf"[{_CHINESE}]{{2,1000}}|[{_KATAKANA}]{{2,40}}|[^\W\d_{_CHINESE}{_KATAKANA}\u3041-\u309f]{{3,40}}"
)
_LONGEST = 12
"""Signs of a topic that is put together of pairs."""
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
    asked = [_pieces(text) for text in questions]
    count = Counter(_each(asked))
    least = max(_LEAST, _SHARE * len(asked))
    usual = {word for word, n in count.items() if least <= n <= _COMMON * len(asked)}
    answered = [usual & _pieces(text) for text in answers]  # no more of them: answers have many
    told = Counter(_each(answered))
    both = Counter(_each(one & other for one, other in zip(asked, answered, strict=True)))
    weights = {
        word: log(len(asked) / count[word])
        for word in usual
        if both[word] * len(asked) >= _LIFT * count[word] * told[word] > 0
    }
    left, found = asked, dict[str, list[int]]()
    while len(found) < MOST:
        here = Counter(word for word in _each(left) if word in weights)
        best = min(here, key=lambda word: (-here[word] * weights[word], word), default="")
        if here[best] < least:
            break
        held = [number for number, of_one in enumerate(asked) if best in of_one]
        found[_whole(best, [_begin(questions[number]) for number in held], weights)] = held
        left = [of_one for of_one in left if best not in of_one]
    for word in filter(_TOGETHER.fullmatch, found):
        found[word] = [number for number, text in enumerate(questions) if holds(text, word)]
    return dict(sorted(found.items(), key=lambda one: (-len(one[1]), one[0])))


def holds(text: str, word: str) -> bool:
    """Whether a text is of a topic: it has the word, and not as a part of another where spaces tell that."""
    return word in (_begin(text) if _TOGETHER.fullmatch(word) else _pieces(text))


def words(text: str) -> frozenset[str]:
    """Those of the beginning of a text, in small letters."""
    return frozenset(_WORD.findall(_begin(text)))


def _begin(text: str) -> str:
    return text[:READ].casefold()


def _pieces(text: str) -> frozenset[str]:
    """What may be a topic: words, and pairs of Chinese characters."""
    return frozenset(piece for run in _PIECE.findall(_begin(text)) for piece in _apart(run))


def _apart(run: str) -> Iterable[str]:
    if "\u30a1" <= run[0] <= "\u30ff" or not _TOGETHER.match(run):
        return (run,)
    return (run[at : at + 2] for at in range(len(run) - 1))


def _whole(word: str, texts: Sequence[str], known: Collection[str]) -> str:
    """With the signs beside it that each of these texts has there: of a longer word only pairs are known."""
    while _TOGETHER.fullmatch(word) and len(word) < _LONGEST:
        pairs = [pair for pair in known if len(pair) == 2]
        longer = [word + pair[1] for pair in pairs if pair[0] == word[-1]]
        longer += [pair[0] + word for pair in pairs if pair[1] == word[0]]
        fits = min((one for one in longer if all(one in text for text in texts)), default="")
        if not fits:
            break
        word = fits
    return word


def _each(sets: Iterable[Set[str]]) -> Iterator[str]:
    return (word for one in sets for word in one)
