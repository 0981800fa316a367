# SPDX-License-Identifier: Apache-2.0
"""How much waits at once, of one person, in one channel and in all: teaching is never too much."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable

from goodbot.access.authorization import Authorization, person
from goodbot.access.limits import AT_WORK, BUSY, Undo
from goodbot.api.events import ChannelKind, Event
from goodbot.api.sentences import Reason, because
from goodbot.conversation import sanitize

MOST = 100
"""Questions and commands of one person; of owners there may be more, and nobody keeps theirs waiting."""
MOST_HERE = 40
"""Questions in one shared channel, in whichever threads: what waits longer answers nobody any more."""
MOST_IN_ALL = 400
"""Questions and commands of everybody."""


class UnderWay:
    """Counts them, by who asked and where."""

    def __init__(self, authorization: Authorization, note: Callable[[Undo], None]) -> None:
        """`note` is given what takes back that somebody was told: nothing may be stored of it."""
        self._authorization, self._note = authorization, note
        self._count: Counter[str] = Counter()
        self._told: set[str] = set()
        """Who knows that they have to wait."""
        self._here: Counter[tuple[str, ...]] = Counter()
        self._all = 0
        self._told_here: set[tuple[str, ...]] = set()
        """Where it is known that there is too much."""

    def takes(self, event: Event) -> None:
        """One more, within the transaction that takes it in: many may come in one."""
        self.begins(event)
        self._note(lambda: self.ends(event))

    def begins(self, event: Event) -> None:
        """One more."""
        self._count[person(event.user)] += 1
        self._all += 1
        if _asks_here(event):
            self._here[_place(event)] += 1

    def ends(self, event: Event) -> None:
        """It is done, or given up."""
        who = person(event.user)
        self._all -= 1
        if _asks_here(event):
            self._ends_here(_place(event))
        if self._all <= MOST_IN_ALL // 2:
            self._told_here = {place for place in self._told_here if self._here[place] > MOST_HERE // 2}
        self._count[who] -= 1
        if self._count[who] <= MOST // 2:  # whoever asks on and on is not told with each that is done
            self._told.discard(who)
        if not self._count[who]:
            del self._count[who]

    def _ends_here(self, place: tuple[str, ...]) -> None:
        self._here[place] -= 1
        if not self._here[place]:
            del self._here[place]

    async def until_done(self, event: Event, work: Awaitable[None]) -> None:
        """Do what was begun."""
        try:
            await work
        finally:
            self.ends(event)

    def is_full(self, event: Event) -> bool:
        """Whether it has to wait until something of theirs is done, or of others: owners never do."""
        who = person(event.user)
        if self._authorization.is_owner(who):
            return False
        return self._count[who] >= MOST or self._is_crowded(event)

    def _is_crowded(self, event: Event) -> bool:
        """Whether there is too much of others'. What teaches is never too much: it is no question."""
        if _asks_here(event) and self._here[_place(event)] >= MOST_HERE:
            return True
        teaches = sanitize.is_command(event) and self._authorization.may_rate(event.user)
        return self._all >= MOST_IN_ALL and not teaches

    def told_once(self, event: Event) -> Reason | None:
        """Why nothing is begun of this; None once they know, or others in the same place, for a crowd's."""
        who, place = person(event.user), _place(event)
        if self._count[who] < MOST:
            if place in self._told_here:
                return None
            self._told_here.add(place)
            self._note(lambda: self._told_here.discard(place))
            return because(BUSY)
        if who in self._told:
            return None
        self._told.add(who)
        self._note(lambda: self._told.discard(who))
        return because(AT_WORK, most=MOST)


def _place(event: Event) -> tuple[str, ...]:
    return (event.channel.connector, event.channel.account, event.channel.id)


def _asks_here(event: Event) -> bool:
    return event.channel.kind is ChannelKind.SHARED and not sanitize.is_command(event)
