# SPDX-License-Identifier: Apache-2.0
"""A stranger who has written in private: its owners are asked, once, with a button for each answer."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import aiosqlite

from goodbot.access.authorization import Authorization, person
from goodbot.access.direct_message import Still
from goodbot.access.limits import RateLimit
from goodbot.api.actions import run
from goodbot.api.events import Event, Receipt, UserRef
from goodbot.api.notice import Notice
from goodbot.base.clock import Clock
from goodbot.base.text import one_way
from goodbot.store import news, raters

STRANGER = "private"
"""The code of what a stranger is told, once (`strangers.who_talks`)."""
_MOST = 5
_DAY = 86400.0
"""So many requests a day are told: a crowd, or who changes their account, does not fill an owner's chat."""
_NAME = 40
_KEPT = 200


class JoinRequests:
    """Tells owners who would like to talk. What they press is their own command."""

    def __init__(
        self, authorization: Authorization, clock: Clock, tell: Callable[[Notice, Still], Awaitable[None]]
    ) -> None:
        self._authorization = authorization
        self._tell = tell
        self._limit = RateLimit(_MOST, clock, _DAY)
        self.names: dict[str, str] = {}
        """What the newest of those who asked call themselves, the newest last; in memory alone."""

    async def ask(self, event: Event, receipt: Receipt) -> None:
        """Ask all owners, where `receipt` is what a stranger is told."""
        if not any(reason.code == STRANGER for reason in receipt.reasons):
            return
        self._note(event.user)
        if not self._limit.allow(""):
            return
        for owner in self._authorization.owners():
            notice = card(event.user, owner)
            await self._tell(notice, self._still(notice, event.user))

    def _still(self, notice: Notice, user: UserRef) -> Still:
        """The same, for as long as somebody may decide it and nobody has."""

        async def look(db: aiosqlite.Connection) -> Notice | None:
            if self._authorization.level(user) or not self._authorization.is_owner(notice.person):
                return None
            return None if await news.told(db, f"{raters.REFUSED}{person(user)}") else notice

        return look

    def _note(self, user: UserRef) -> None:
        self.names.pop(person(user), None)
        self.names[person(user)] = called(user)
        if len(self.names) > _KEPT:
            del self.names[next(iter(self.names))]


def called(user: UserRef) -> str:
    """What somebody calls themselves, in one short line."""
    return " ".join(one_way(user.name).split())[:_NAME]


def card(user: UserRef, owner: str) -> Notice:
    """What one owner reads. Their name is what they call themselves, so it decides nothing."""
    who = person(user)
    name = called(user)
    named = f"“{name}” ({who})" if name else who
    return Notice(
        key=f"asks {who} {owner}",
        person=owner,
        text=f"{named} wants to talk to me, and may not. Who may rate also teaches me.\n"
        f"In words: `/rl people grant talker {who}`, or `rater` in place of `talker`.",
        buttons=(
            run(f"people grant talker {who}", "May talk"),
            run(f"people grant rater {who}", "May rate"),
            run(f"people refuse {who}", "No"),
        ),
    )
