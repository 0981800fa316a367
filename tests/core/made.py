# SPDX-License-Identifier: Apache-2.0
"""Events and turns for tests; light, since processes that tests kill import it again and again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from goodbot.api.events import ChannelKind, ChannelRef, MessageRef, OrderKey, RatingEvent, RatingKind, UserRef
from goodbot.api.turns import Turn
from goodbot.config import Grants
from goodbot.store import Store, ledger, messages, turns
from goodbot.store.query import fetch

GRANTS = Grants(owners=("owner",), raters=("rater",), talkers=("talker",))
CHANNEL = ChannelRef(connector="loopback", account="loopback", id="owner", kind=ChannelKind.PRIVATE)
OWNER = UserRef(connector="loopback", account="loopback", id="owner")


# -- events and turns


def turn(id_: str, **fields: Any) -> Turn:
    """A turn in the owner's private chat; its one message has the id `m-ID`."""
    given: dict[str, Any] = {
        "channel": CHANNEL,
        "talker": OWNER,
        "messages": [{"role": "user", "content": "Hello?"}],
        "response": "Hello!",
        "version": 0,
        "model": "fake",
        "temperature": 1.0,
        "created_at": 1e9,
    }
    return Turn(id=id_, **{**given, **fields})


async def add_turn(store: Store, id_: str, **fields: Any) -> Turn:
    """Store a turn together with its message `m-ID`."""
    made = turn(id_, **fields)

    async def operation(db: Any) -> None:
        await turns.insert(db, made, trainable=True)
        await messages.attach(db, id_, [MessageRef(channel=made.channel, id=f"m-{id_}")])

    await store.write(operation)
    return made


async def copied(
    store: Store, like: str, first: int, last: int, *, said: Mapping[str, str] | None = None, **columns: str
) -> None:
    """So many more rated answers like that turn; of `columns` the SQL that they have instead.

    So `said` of their ratings.
    """
    rating = {**(said or {})}

    async def copy(db: Any, table: str, **values: str) -> None:
        known = [str(row[1]) for row in await fetch(db, f"PRAGMA table_info({table})")]
        names = [name for name in known if values.get(name, name)]
        await db.execute(
            "WITH RECURSIVE n (i) AS (SELECT :first UNION ALL SELECT i + 1 FROM n WHERE i < :last)"
            f" INSERT INTO {table} ({', '.join(names)})"
            f" SELECT {', '.join(values.get(name, name) for name in names)} FROM n, {table}"
            f" WHERE {'id' if table == 'turns' else 'turn'} = :like",
            {"first": first, "last": last, "like": like},
        )

    async def operation(db: Any) -> None:
        await copy(db, "turns", seq="", id="'w' || i", **columns)
        await copy(db, "events", **rating, seq="", turn="'w' || i", event_id="event_id || i")
        seq = "(SELECT seq FROM events WHERE turn = 'w' || i)"
        await copy(db, "labels", **rating, turn="'w' || i", event_id="event_id || i", event_seq=seq)

    await store.write(operation)


def rate(event_id: str, at: int, value: float | None, turn: str = "t", **fields: Any) -> RatingEvent:
    """A rating of the message `m-TURN`, by default by a reaction of the owner's."""
    source = "reaction:+" if (value or 0) > 0 else "reaction:-"
    given: dict[str, Any] = {
        "user": OWNER,
        "channel": CHANNEL,
        "kind": RatingKind.RATE,
        "message_id": f"m-{turn}",
        "source": source,
        "value": value,
    }
    return RatingEvent(event_id=event_id, order=OrderKey(at), **{**given, **fields})


def retract(event_id: str, at: int, turn: str = "t", **fields: Any) -> RatingEvent:
    """Takes back: with `source` what that said, with `retracts` one event, else all of it."""
    given = {"message_id": f"m-{turn}", "kind": RatingKind.RETRACT, "source": ""}
    return rate(event_id, at, None, **{**given, **fields})


async def rebuild(db: Any) -> int:
    """Derive every label again from the ledger; returns how many raters of a turn there are."""
    await db.execute("DELETE FROM labels")
    await db.execute("UPDATE turns SET rated = 0 WHERE rated > 0")
    rows = await fetch(
        db,
        "SELECT DISTINCT turn, coalesce(identity, rater) FROM events"
        " LEFT JOIN links ON person = rater WHERE turn IS NOT NULL",
    )
    for turn, rater in rows:
        await ledger.refold(db, turn, rater)
    return len(rows)
