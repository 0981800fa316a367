# SPDX-License-Identifier: Apache-2.0
"""The KV caches of conversations that have ended an answer, for the question that may follow.

A cache holds what one version of the model made of one conversation, so it serves no other version and
no other conversation, even where the words are the same: that somebody else has asked something before
could be told by the time that an answer takes.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from itertools import takewhile
from typing import Generic, Protocol, TypeVar

_TOKENS = 8_192
"""That are kept at most: 1.2 GB for a model of 8 billion weights."""
_WORTH = 16
"""Tokens from which on reading them again is worth a look-up."""
Key = tuple[int, str]
"""The version and the conversation."""


class Crops(Protocol):
    """The cache of one row."""

    def crop(self, tokens: int) -> bool:
        """Forget the newest tokens; False where that cannot be, and then it is of no more use."""
        ...


Kept = TypeVar("Kept", bound=Crops)


class PrefixCache(Generic[Kept]):
    """One row a conversation and version; what was not used for longest goes first."""

    def __init__(self, tokens: int = _TOKENS) -> None:
        self._most, self._held = tokens, 0
        self._rows: OrderedDict[Key, tuple[tuple[int, ...], Kept]] = OrderedDict()

    def __len__(self) -> int:
        """The tokens that are kept."""
        return self._held

    def put(self, version: int, conversation: str, tokens: Sequence[int], steps: Kept) -> None:
        """Keep a row that has read `tokens`; it is not used otherwise any more."""
        if not conversation or not _WORTH <= len(tokens) <= self._most:
            return
        self._pop((version, conversation))
        self._rows[version, conversation] = tuple(tokens), steps
        self._held += len(tokens)
        while self._held > self._most:
            self._pop(next(iter(self._rows)))

    def knows(self, version: int, conversation: str) -> bool:
        """Whether there is a row to look at."""
        return bool(conversation) and (version, conversation) in self._rows

    def take(self, version: int, conversation: str, prompt: Sequence[int]) -> tuple[int, Kept] | None:
        """The row whose cache holds the first so many tokens of a prompt, never all; None: no use."""
        found = self._pop((version, conversation))
        if found is None:
            return None
        tokens, steps = found
        pairs = zip(tokens, prompt[:-1], strict=False)
        common = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
        if common < _WORTH or (common < len(tokens) and not steps.crop(len(tokens) - common)):
            return None
        return common, steps

    def forget(self, version: int | None = None) -> None:
        """Drop what a version has made, or everything."""
        for key in [key for key in self._rows if version in (None, key[0])]:
            self._pop(key)

    def _pop(self, key: Key) -> tuple[tuple[int, ...], Kept] | None:
        found = self._rows.pop(key, None)
        if found is not None:
            self._held -= len(found[0])
        return found
