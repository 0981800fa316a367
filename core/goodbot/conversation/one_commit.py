# SPDX-License-Identifier: Apache-2.0
"""Several events in one commit: of one request all or none, and nothing counts that was not stored."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace

import aiosqlite

from goodbot.access.limits import Undo
from goodbot.api.events import Event, Outcome, PressEvent, Receipt
from goodbot.store import Store, placing
from goodbot.store.commit_queue import Operation

_REFUSALS = (Outcome.CONFLICT, Outcome.DENIED, Outcome.FAILED)


async def each(
    db: aiosqlite.Connection,
    events: list[Event],
    refused: Sequence[Receipt | None],
    take: Callable[[aiosqlite.Connection, Event], Awaitable[Receipt]],
) -> list[Receipt]:
    """Take each event in that is not refused already.

    Args:
        db: Within the transaction.
        events: Presses among them are numbered here.
        refused: The receipts of those that cannot be stored as they are.
        take: Decides about one.

    Returns:
        Their receipts.
    """
    receipts = list[Receipt]()
    of_one = dict[str, Receipt]()  # what was refused of a request; the rest goes with it
    for n, wrong in enumerate(refused):
        if isinstance(event := events[n], PressEvent):
            events[n] = event = await placing.numbered(db, event)
        if (before := of_one.get(event.digest)) is not None:
            receipts.append(replace(before, event_id=event.event_id))
            continue
        receipt = wrong or await take(db, event)
        receipts.append(receipt)
        if event.digest and receipt.outcome in _REFUSALS:
            of_one[event.digest] = receipt
    return receipts


async def stored(
    store: Store, operation: Operation[list[Receipt]], counted: Sequence[Undo], *, quick: bool
) -> list[Receipt]:
    """The receipts, once they are committed. Raises StoreError; then what was `counted` is taken back.

    `quick` as in `Store.write`.
    """
    try:
        return await store.write(operation, quick=quick)
    except Exception:
        for undo in counted:
            undo()
        raise
