# SPDX-License-Identifier: Apache-2.0
"""How much one person may have goodbot do at once: who teaches may ask as often as they like, one by one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable

from goodbot.access.authorization import Authorization, person
from goodbot.access.limits import Undo
from goodbot.api.events import Event
from goodbot.api.sentences import Reason, because

MOST = 100
"""Questions and commands of one person; of owners there may be more, and nobody keeps theirs waiting."""


class UnderWay:
    """Counts them, by who asked."""

    def __init__(self, authorization: Authorization, note: Callable[[Undo], None]) -> None:
        """`note` is given what takes back that somebody was told: nothing may be stored of it."""
        self._authorization, self._note = authorization, note
        self._count: Counter[str] = Counter()
        self._told: set[str] = set()
        """Who knows that they have to wait."""

    def begins(self, event: Event) -> None:
        """One more."""
        self._count[person(event.user)] += 1

    def ends(self, event: Event) -> None:
        """It is done, or given up."""
        who = person(event.user)
        self._count[who] -= 1
        if self._count[who] <= MOST // 2:  # whoever asks on and on is not told with each that is done
            self._told.discard(who)
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

    def told_once(self, event: Event) -> Reason | None:
        """Why nothing is begun of this person's; None once they know."""
        who = person(event.user)
        if who in self._told:
            return None
        self._told.add(who)
        self._note(lambda: self._told.discard(who))
        return because("at_work", most=MOST)
