# SPDX-License-Identifier: Apache-2.0
"""How much one person may have goodbot do at once: who teaches may ask as often as they like, one by one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable

from goodbot.access.authorization import Authorization, person
from goodbot.api.events import Event

MOST = 100
"""Questions and commands of one person; of owners there may be more, and nobody keeps theirs waiting."""


class UnderWay:
    """Counts them, by who asked."""

    def __init__(self, authorization: Authorization) -> None:
        self._authorization = authorization
        self._count: Counter[str] = Counter()

    def begins(self, event: Event) -> None:
        """One more."""
        self._count[person(event.user)] += 1

    def ends(self, event: Event) -> None:
        """It is done, or given up."""
        who = person(event.user)
        self._count[who] -= 1
        if not self._count[who]:
            del self._count[who]

    async def until_done(self, event: Event, work: Awaitable[None]) -> None:
        """Do what was begun."""
        try:
            await work
        finally:
            self.ends(event)

    def is_full(self, event: Event) -> bool:
        """Whether this person has to wait until something of theirs is done."""
        who = person(event.user)
        return self._count[who] >= MOST and not self._authorization.is_owner(who)
