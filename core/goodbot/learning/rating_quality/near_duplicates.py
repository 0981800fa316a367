# SPDX-License-Identifier: Apache-2.0
"""Ratings of nearly the same question that say the same count together as few.

Whoever has a phrase answered and rated thirty times would else teach it thirty times over.
"""

from __future__ import annotations

import hashlib
import heapq
import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Hashable, Sequence

from goodbot.api.turns import Turn

Exchange = tuple[str, str]
"""A question and its answer."""
Sketches = dict[Exchange, frozenset[int]]

_CHARACTERS = 2000
"""Of the question, and of the answer, so many are read: the rest costs time and tells little."""
_SHINGLE = 3
"""Words in a row."""
_TELLING = 5
"""Words of a question that tell what it is about, without what was said before or after."""
_SKETCH = 64
"""The smallest hashes of a text that stand for all of it (a bottom-k MinHash)."""
_KEYS = 8
"""Of those, the ones under which it is found again."""
_COMPARED = 8
"""A text is compared with so many others at most, however alike they all are: time stays linear."""
_ALIKE = 0.8
"""The share of shingles in common (Jaccard) from which two texts are nearly the same."""

# Words of ASCII as they stand; any other letter by itself, since not every script has spaces.
_WORDS = re.compile(r"[a-z0-9]+|[^\W_]")


def duplicate_weights(groups: Sequence[Hashable], most: int) -> list[float]:
    """The weight in (0, 1] of each turn under which a group of n weighs min(n, most) in all.

    `groups` names the group of each turn. With `most` 0 every turn weighs 1.
    """
    sizes = Counter(groups)
    return [min(1.0, most / sizes[name]) if most else 1.0 for name in groups]


def exchange(turn: Turn) -> Exchange:
    """What is compared of a turn."""
    return (str(turn.messages[-1].get("content", "") if turn.messages else ""), turn.response)


def sketched(exchanges: Sequence[Exchange], known: Sketches | None = None) -> Sketches:
    """What `group` compares of each: nearly all of its time. What is not `known` is put there."""
    sketches: Sketches = {} if known is None else known
    for one in exchanges:
        if one not in sketches:
            sketches[one] = _sketch(*one)
    return sketches


def group(exchanges: Sequence[Exchange], known: Sketches | None = None) -> list[int]:
    """The number of the group that each exchange belongs to; most are on their own. `known`: see `sketched`.

    A question of five words or more is a group with those that are nearly the same, whatever was
    answered: who repeats a phrase gets another answer each time. Of a shorter one (`go on`, `yes`)
    the answer must be nearly the same too.

    A text joins the group whose first member it is most alike: Jaccard similarity of the shingles,
    estimated from their 64 smallest hashes (standard error below 0.06), 0.8 or more. Short texts
    have few shingles, so they must agree in every word. Linear in the number of texts and in their
    length up to 4,000 characters.
    """
    first: list[frozenset[int]] = []
    found: defaultdict[int, list[int]] = defaultdict(list)
    numbers: list[int] = []
    sketches = sketched(exchanges, known)
    for one in exchanges:
        sketch = sketches[one]
        keys = heapq.nsmallest(_KEYS, sketch)
        shared = Counter(number for key in keys for number in found[key])
        near = {n: similarity(sketch, first[n]) for n, _ in shared.most_common(_COMPARED)}
        alike = max(near, key=near.__getitem__, default=None)
        if alike is None or near[alike] < _ALIKE:
            alike = len(first)
            first.append(sketch)
            for key in keys:
                if len(found[key]) < _COMPARED:
                    found[key].append(alike)
        numbers.append(alike)
    return numbers


def similarity(one: frozenset[int], other: frozenset[int]) -> float:
    """Of two sketches: the share of the smallest hashes of both together that both have."""
    smallest = heapq.nsmallest(_SKETCH, one | other)
    return sum(h in one and h in other for h in smallest) / len(smallest) if smallest else 1.0


def _sketch(question: str, answer: str) -> frozenset[int]:
    asked = words(question)
    shingles = _shingles("q", asked)
    if len(asked) < _TELLING:
        shingles |= _shingles("a", words(answer))
    hashes = (int.from_bytes(hashlib.blake2b(s.encode(), digest_size=8).digest()) for s in shingles)
    return frozenset(heapq.nsmallest(_SKETCH, hashes))


def words(text: str) -> list[str]:
    """The words of a text's beginning, in small letters."""
    plain = unicodedata.normalize("NFKC", text[:_CHARACTERS]).casefold()[: 2 * _CHARACTERS]
    return _WORDS.findall(plain)


def _shingles(side: str, words: Sequence[str]) -> set[str]:
    """Each three words in a row, marked with the side that they are on."""
    last = max(1, len(words) - _SHINGLE + 1)
    return {" ".join((side, *words[i : i + _SHINGLE])) for i in range(last)}
