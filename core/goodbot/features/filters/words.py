# SPDX-License-Identifier: Apache-2.0
"""Words and phrases that an owner has blocked: whole words, in any case and any script."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from goodbot.api.content_filter import ContentFilter, FilterCase
from goodbot.base.errors import ConfigError
from goodbot.features.filters.plain import words

if TYPE_CHECKING:
    from goodbot.features.filters.plugin import BlockedSettings


class BlockedWords(ContentFilter):
    """`[filters.words]`."""

    settings: BlockedSettings

    def __init__(self, settings: BlockedSettings) -> None:
        """Raises ConfigError for what is no word."""
        super().__init__(settings)
        self._begin: defaultdict[str, set[tuple[str, ...]]] = defaultdict(set)
        """By the first word of a phrase: those that follow."""
        for phrase in settings.block:
            if not (apart := words(phrase)):
                raise ConfigError(f"[filters.words] block holds {phrase!r}, which is no word")
            self._begin[apart[0]].add(tuple(apart[1:]))

    def reasons(self, case: FilterCase) -> Sequence[str]:
        return ["word"] if any(any(self._found(text)) for text in case.texts) else []

    def _found(self, text: str) -> Iterator[bool]:
        """A look at each phrase that may begin at a word: as many as the owner has blocked."""
        said = words(text)
        for at, word in enumerate(said, start=1):
            for rest in self._begin.get(word, ()):
                yield tuple(said[at : at + len(rest)]) == rest
