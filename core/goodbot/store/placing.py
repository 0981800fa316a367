# SPDX-License-Identifier: Apache-2.0
"""Where a rating stands among those that its rater gave by other clocks: they are never compared.

Times of one connector account are its platform's, and a late one is put where it belongs. Between
two clocks the order in which they came in decides.
"""

from __future__ import annotations

from dataclasses import replace

import aiosqlite

from goodbot.api.events import OrderKey, RatingEvent
from goodbot.store import people
from goodbot.store.query import fetch

_OURS, _AFTER = "~", "+"
"""Marks in a stored tiebreak: of our own time; and of what comes after that, with its own time."""

_KNOWN = (
    "SELECT e.time_ms, e.tiebreak, (e.connector, e.account) = (:connector, :account) FROM events e"  # noqa: S608
    f" WHERE e.rater IN (SELECT {people.IDENTITY} UNION ALL"
    f" SELECT person FROM links WHERE identity = {people.IDENTITY}) AND "
)
_OF_TURN = f"{_KNOWN} e.turn = :turn"
_OF_MESSAGE = (
    f"{_KNOWN} e.turn IS NULL AND (e.connector, e.account, e.channel, e.message)"
    " = (:connector, :account, :channel, :message)"
)


async def placed(
    db: aiosqlite.Connection, event: RatingEvent, turn: str | None, rater: str, *, heard: bool = True
) -> RatingEvent:
    """The event, after all that its person has said of the answer by another clock.

    Of an answer that is not recorded yet, its message tells what was said of it. Where nobody was
    `heard`, nothing is looked for.
    """
    values = {
        "turn": turn,
        "person": rater,
        "connector": event.user.connector,
        "account": event.user.account,
        "channel": event.channel.id,
        "message": event.message_id,
    }
    order = event.order
    rows = await fetch(db, _OF_TURN if turn else _OF_MESSAGE, values) if heard else []
    if order.ours:
        newest = max((time_ms for time_ms, *_ in rows), default=-1)
        tiebreak = _OURS + order.tiebreak.replace(_AFTER, "")
        return replace(event, order=OrderKey(max(order.time_ms, newest + 1), tiebreak))
    others = [
        (time_ms, tiebreak)
        for time_ms, tiebreak, here in rows
        if not here or (tiebreak.startswith(_OURS) and _AFTER not in tiebreak)
    ]
    last = max(others, default=(-1, ""))
    if last < (order.time_ms, order.tiebreak):
        return event
    own = f"{order.time_ms:015d} {order.tiebreak}"
    return replace(event, order=OrderKey(last[0], f"{last[1] or _OURS}{_AFTER}{own}"))
