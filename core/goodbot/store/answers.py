# SPDX-License-Identifier: Apache-2.0
"""Storing an answer that has just been written, unless those whose words it has were forgotten."""

from __future__ import annotations

import aiosqlite

from goodbot.api.events import Event
from goodbot.api.turns import Turn
from goodbot.store import forgetting, inbox, retries, turns
from goodbot.store.retries import Retry


async def insert(
    db: aiosqlite.Connection, event: Event, turn: Turn, retry: Retry | None, *, trainable: bool
) -> Turn | None:
    """Store the answer to `event`; returns it without the words of those who were forgotten meanwhile.

    None when that is the person who asked, when the answer repeats them, or when it was to take the
    place of an answer that is gone.
    """
    if not await inbox.is_open(db, event):
        return None
    gone = await turns.missing(db, [id_ for id_, _ in turn.context])
    lost = retry is not None and retry.instead_of in gone
    if lost or forgetting.quotes(turn.response, turn.said(lambda id_, _: id_ in gone)):
        await inbox.close(db, event)
        await forgetting.erase(db)  # the question may repeat them too
        return None
    turn = turn.without(lambda id_, _: id_ in gone)
    await turns.insert(db, turn, trainable=trainable and not gone)
    await inbox.waited(db, event, turn.id, turn.created_at)
    if retry is not None:
        await retries.insert(db, retry)
    return turn
