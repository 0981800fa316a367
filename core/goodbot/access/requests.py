# SPDX-License-Identifier: Apache-2.0
"""A stranger who has written in private: its owners are asked, once, with a button for each answer."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import aiosqlite

from goodbot.access.authorization import Authorization, person
from goodbot.access.direct_message import Still
from goodbot.access.limits import RateLimit
from goodbot.access.readers import Readers
from goodbot.api.actions import run
from goodbot.api.events import Event, Receipt, UserRef
from goodbot.api.notice import Notice
from goodbot.api.texts import say
from goodbot.base.clock import Clock
from goodbot.base.redact import redact
from goodbot.base.text import one_way
from goodbot.store import Store, joining, news, raters

STRANGER = "private"
"""The code of what a stranger is told, once (`strangers.who_talks`)."""
_MOST = 5
_DAY = 86400.0
"""So many requests a day are told: a crowd, or who changes their account, does not fill an owner's chat."""
_NAME = 40
_QUOTES = str.maketrans(dict.fromkeys('"“”„‟«»「」『』＂', "'"))


class JoinRequests:
    """Tells owners who would like to talk. What they press is their own command."""

    def __init__(
        self,
        authorization: Authorization,
        clock: Clock,
        tell: Callable[[Notice, Still], Awaitable[None]],
        readers: Readers,
    ) -> None:
        self._authorization, self._readers = authorization, readers
        self._tell = tell
        self._clock = clock
        self._limit = RateLimit(_MOST, clock, _DAY)
        self._each = RateLimit(1, clock, _DAY)
        """Who asks, is forgotten and asks again takes no card from others."""

    async def ask(self, event: Event, receipt: Receipt) -> None:
        """Ask all owners, where `receipt` is what a stranger is told."""
        if not any(reason.code == STRANGER for reason in receipt.reasons):
            return
        if self._each.allow(person(event.user)) and self._limit.allow(""):
            for owner in self._authorization.owners():
                await self._tell(self._card(event.user, owner), self._still(event.user, owner))

    async def again(self, store: Store) -> None:
        """At start: ask whom the last process could not reach about those who have asked within a day.

        Whoever was asked is not asked again, and counts among the day's.
        """
        since = self._clock.now() - _DAY
        for request in await store.read(joining.asked):
            connector, _, id_ = request.person.partition(":")
            known = connector in self._authorization.connectors
            if request.at < since or not known or not self._limit.allow(""):
                continue
            user = UserRef(connector=connector, account="", id=id_, name=request.name)
            for owner in self._authorization.owners():
                still = self._still(user, owner)
                if (notice := await store.read(still)) is not None:
                    await self._tell(notice, still)

    def _card(self, user: UserRef, owner: str) -> Notice:
        return card(user, owner, self._readers.language(owner))

    def _still(self, user: UserRef, owner: str) -> Still:
        """The card, for as long as somebody may decide it and nobody has."""

        async def look(db: aiosqlite.Connection) -> Notice | None:
            if self._authorization.level(user) or not self._authorization.is_owner(owner):
                return None
            told = await news.told(db, f"{raters.REFUSED}{person(user)}")
            return None if told else self._card(user, owner)  # they may read another language by now

        return look


def called(user: UserRef) -> str:
    """What somebody calls themselves, in one short line without quotation marks: it cannot end its own."""
    return " ".join(redact(one_way(user.name)).translate(_QUOTES).split())[:_NAME]


def card(user: UserRef, owner: str, language: str = "") -> Notice:
    """What one owner reads. Their name is what they call themselves, so it decides nothing."""
    who, name = person(user), called(user)
    asks = say("page_wants_named" if name else "page_wants", language, name=name, who=who)
    return Notice(
        key=f"asks {who} {owner}",
        person=owner,
        text=f"{asks}\n{say('asks_in_words', language, who=who)}",
        buttons=(
            run(f"people grant talker {who}", say("page_may_talk", language)),
            run(f"people grant rater {who}", say("page_may_rate", language)),
            run(f"people refuse {who}", say("page_no", language)),
        ),
    )
