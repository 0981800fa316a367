# SPDX-License-Identifier: Apache-2.0
"""Words and phrases that an owner has listed: whole words, in any case and any script."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from goodbot.api.content_filter import ContentFilter, FilterCase
from goodbot.base.errors import ConfigError
from goodbot.features.filters.plain import words

if TYPE_CHECKING:
    from goodbot.features.filters.plugin import BlockedSettings


class WordList:
    """Words and phrases that a setting lists."""

    def __init__(self, phrases: Sequence[str], setting: str) -> None:
        """Raises ConfigError for what is no word; `setting` names it: `[filters.words] block`."""
        self._begin: defaultdict[str, set[tuple[str, ...]]] = defaultdict(set)
        """By the first word of a phrase: those that follow."""
        for phrase in phrases:
            if not (apart := words(phrase)):
                raise ConfigError(f"{setting} holds {phrase!r}, which is no word")
            self._begin[apart[0]].add(tuple(apart[1:]))

    def stands_in(self, text: str) -> bool:
        """Whether one of them does, as a whole."""
        return bool(self._begin) and any(self._looks(text))

    def _looks(self, text: str) -> Iterator[bool]:
        """One at each phrase that may begin at a word: as many as the owner has listed."""
        said = words(text)
        for at, word in enumerate(said, start=1):
            for rest in self._begin.get(word, ()):
                yield tuple(said[at : at + len(rest)]) == rest


class BlockedWords(ContentFilter):
    """`[filters.words]`."""

    settings: BlockedSettings

    def __init__(self, settings: BlockedSettings) -> None:
        """Raises ConfigError for what is no word."""
        super().__init__(settings)
        self._blocked = WordList(settings.block, "[filters.words] block")

    def reasons(self, case: FilterCase) -> Sequence[str]:
        return ["word"] if any(map(self._blocked.stands_in, case.texts)) else []
