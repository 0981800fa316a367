# SPDX-License-Identifier: Apache-2.0
"""Which language each person reads who is told something unasked."""

from __future__ import annotations

from collections.abc import Iterable

from goodbot.access.authorization import person
from goodbot.api.events import Event
from goodbot.api.texts import language_of

_MOST = 1000
"""People whose language is known at once: those who have spoken last."""


class Readers:
    """What the platform has told of each since the start, else `[serving] language`. Nothing is stored."""

    def __init__(self, language: str) -> None:
        self.default = language
        self._told: dict[str, str] = {}

    def heard(self, events: Iterable[Event]) -> None:
        """These have done something, and their platforms say what they read, or do not."""
        for user in (event.user for event in events):
            if language := language_of(user.language):
                who = person(user)
                self._told.pop(who, None)
                self._told[who] = language
                if len(self._told) > _MOST:
                    del self._told[next(iter(self._told))]

    def language(self, who: str) -> str:
        """Of `connector:id`."""
        return self._told.get(who, self.default)
