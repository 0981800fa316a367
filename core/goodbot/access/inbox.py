# SPDX-License-Identifier: Apache-2.0
"""The inbox: answers of every connector, for those who may rate them."""

from __future__ import annotations

from collections.abc import Sequence

import aiosqlite

from goodbot.access import linking, queues
from goodbot.access.authorization import Authorization, origin, person
from goodbot.api.commands import Grant
from goodbot.api.events import RatingEvent, UserRef, Waiting
from goodbot.store import Store, review_queue

_MOST = 200
"""Answers on one page."""


class Inbox:
    """What one connector's people see of it."""

    def __init__(self, store: Store, authorization: Authorization, predicting: str) -> None:
        """`predicting` is the base model whose predictions of ratings are shown; empty: none."""
        self._store = store
        self._authorization = authorization
        self._predicting = predicting

    async def page(
        self,
        user: UserRef,
        *,
        connector: str,
        since: float | None,
        text: str,
        rated: bool,
        before: str,
        limit: int,
        queue: int,
        unsure: bool,
    ) -> Sequence[Waiting]:
        """As `ConnectorHost.inbox`; nothing for whoever may not rate, nor of a queue of others."""
        if unsure and not self._predicting:
            return ()
        wanted = review_queue.Filter(
            connector=connector,
            since=since,
            text=text,
            rated=rated,
            before=before,
            queue=queue,
            unsure=self._predicting if unsure else "",
        )
        most = max(1, min(limit, _MOST))

        async def operation(db: aiosqlite.Connection) -> Sequence[Waiting]:
            viewer = await viewer_of(db, self._authorization, user)
            if viewer is None:
                return ()
            if queue and all(
                one.id != queue for one in await queues.shared_with(db, self._authorization, viewer)
            ):
                return ()
            return await review_queue.page(db, viewer, wanted, most)

        return await self._store.read(operation)

    async def connectors(self, user: UserRef) -> Sequence[str]:
        """As `ConnectorHost.inbox_connectors`; nothing for whoever may not rate."""

        async def operation(db: aiosqlite.Connection) -> Sequence[str]:
            viewer = await viewer_of(db, self._authorization, user)
            return await review_queue.connectors(db, viewer) if viewer else ()

        return await self._store.read(operation)


async def viewer_of(
    db: aiosqlite.Connection, authorization: Authorization, user: UserRef
) -> review_queue.Viewer | None:
    """What the store asks to know of who looks; None for somebody who sees nothing.

    Linked accounts are one vote, but each keeps its own chats to itself: whoever takes over one must
    not read the other's. The account that a login came from is the same one; and an owner at this
    machine sees what was said in all accounts that they have here.
    """
    if not authorization.may(user, Grant.RATE):
        return None
    who, owner = person(user), authorization.may(user, Grant.ADMINISTER)
    linked = await linking.here(db, authorization, who) if owner else []
    return review_queue.Viewer(
        person=who,
        accounts=tuple({account for account in (who, origin(who), *linked) if account}),
        owner=owner,
    )


async def shown(db: aiosqlite.Connection, authorization: Authorization, event: RatingEvent) -> str | None:
    """The answer that a rating out of the inbox names; None for one that its sender may not see."""
    viewer = await viewer_of(db, authorization, event.user)
    if viewer is None or event.message_id or not event.turn:
        return None
    return event.turn if await review_queue.visible(db, viewer, event.turn) else None
