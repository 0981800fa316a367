# SPDX-License-Identifier: Apache-2.0
"""A reaction can be faster than our own record of the message that it is on; so can its undo."""

from __future__ import annotations

from pathlib import Path

import pytest
from goodbot.api.events import (
    ChannelKind,
    ChannelRef,
    MessageRef,
    OrderKey,
    Outcome,
    RatingEvent,
    RatingKind,
    Receipt,
    UserRef,
)
from goodbot.api.turns import Turn
from goodbot.store import Store, ledger, messages, turns

CHANNEL = ChannelRef(connector="x", account="me", id="room", kind=ChannelKind.PRIVATE)
ADA = UserRef(connector="x", account="me", id="ada")
TURN = Turn(
    id="t1",
    channel=CHANNEL,
    talker=ADA,
    messages=[{"role": "user", "content": "?"}],
    response="!",
    version=0,
    model="m",
    temperature=1.0,
    created_at=1.0,
)


def rating(event_id: str, time: int, kind: RatingKind, **fields: object) -> RatingEvent:
    return RatingEvent(
        event_id=event_id,
        order=OrderKey(time),
        user=ADA,
        channel=CHANNEL,
        kind=kind,
        **fields,  # type: ignore[arg-type]
    )


GOOD = rating("e1", 1, RatingKind.RATE, message_id="m1", source="reaction:👍", value=1.0)
BACK = rating("e2", 2, RatingKind.RETRACT, retracts="e1")


@pytest.mark.parametrize("order", [(GOOD, BACK), (BACK, GOOD)])
async def test_an_undo_that_names_only_its_event_may_overtake_too(
    tmp_path: Path, order: tuple[RatingEvent, ...]
) -> None:
    store = await Store.open(tmp_path / "goodbot.db")
    try:
        await store.write(lambda db: turns.insert(db, TURN, trainable=True))
        for event in order:
            found = await store.read(lambda db, e=event: ledger.find(db, e))
            assert found.turn is None
            receipt = Receipt(event_id=event.event_id, outcome=Outcome.UNKNOWN_TARGET)
            await store.write(lambda db, e=event, r=receipt: ledger.insert(db, e, None, "x:ada", r, 0.0))
        sent = [MessageRef(channel=CHANNEL, id="m1")]
        await store.write(lambda db: messages.attach(db, TURN.id, sent))
        assert await store.read(lambda db: ledger.labels(db, TURN.id)) == {}
    finally:
        await store.close()
