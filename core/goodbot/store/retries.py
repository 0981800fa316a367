# SPDX-License-Identifier: Apache-2.0
"""Answers that were asked for in place of another one, and which of them an event speaks of.

A message shows one answer, A, and then another one, B. What platforms tell of it overtakes what we record::

    what has happened            the message  what we know  a reaction that comes in is kept as one to
    A was sent                   A            A             A
    B is asked for               A, then B    A             A, until it is known what the message shows
    B is recorded: `adopt`       B            B             B, of those that were said after B was asked for
    later: `meant`               B            B             B, but for one that spoke of A and goes now,
                                                            and one that was said before B was asked for

`_follows` says for both whether something was said after B was asked for: by the platform's one clock, else
by the order in which it came in.
"""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass
from typing import Any

import aiosqlite

from goodbot.api.events import MessageRef, OrderKey, PressEvent, RatingEvent, RatingKind
from goodbot.store import codec, placing, turns
from goodbot.store.query import fetch, first

COMING = (
    "EXISTS (SELECT 1 FROM messages m JOIN retries r ON r.instead_of = m.turn WHERE r.turn = :turn AND"
    " (m.connector, m.account, m.channel, m.message) = (:connector, :account, :channel, :message))"
)
"""Whether `:turn` is being put in the place of what the message carries, and is not recorded there yet.

Other messages of it may be: each new one is recorded as soon as it is there.
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class Retry:
    """One answer that took the place of another one."""

    turn: str
    instead_of: str
    depth: int
    """How many answers to the same question came before it: 1 for the first retry."""
    hint: str
    """A key of `goodbot.api.actions.HINTS`."""
    asked_by: str
    """The person who asked for it, `connector:id`."""
    asked: OrderKey
    """As it is stored: with the last event before it (`placing.asked`)."""


async def insert(db: aiosqlite.Connection, retry: Retry) -> None:
    """Join two stored answers."""
    asked = placing.marked(retry.asked)
    await db.execute(
        "INSERT INTO retries VALUES (?, ?, ?, ?, ?, ?, ?)",
        (
            retry.turn,
            retry.instead_of,
            retry.depth,
            retry.hint,
            retry.asked_by,
            asked.time_ms,
            asked.tiebreak,
        ),
    )


async def line(db: aiosqlite.Connection, turn: str) -> list[Retry]:
    """How an answer came about: the retry that it is, the one whose place it took, and so on."""
    rows = await fetch(
        db,
        "WITH RECURSIVE line AS (SELECT * FROM retries WHERE turn = ?"
        " UNION SELECT r.* FROM retries r JOIN line ON r.turn = line.instead_of)"
        " SELECT turn, instead_of, depth, hint, asked_by, time_ms, tiebreak FROM line"
        " ORDER BY depth DESC",
        (turn,),
    )
    return [
        Retry(
            turn=row[0],
            instead_of=row[1],
            depth=row[2],
            hint=row[3],
            asked_by=row[4],
            asked=OrderKey(row[5], row[6]),
        )
        for row in rows
    ]


async def later(db: aiosqlite.Connection, earlier: set[str]) -> set[str]:
    """All answers that came, directly or not, in place of one of these."""
    rows = await fetch(
        db,
        "WITH RECURSIVE line (turn) AS (SELECT turn FROM retries WHERE instead_of IN"
        " (SELECT value FROM json_each(?)) UNION SELECT r.turn FROM retries r"
        " JOIN line ON r.instead_of = line.turn) SELECT turn FROM line",
        (codec.dump_json(sorted(earlier)),),
    )
    return {row[0] for row in rows}


async def replaced(db: aiosqlite.Connection, turn: str) -> bool:
    """Whether another answer stands in its place."""
    rows = await fetch(
        db,
        "SELECT 1 FROM retries r JOIN messages m ON m.turn = r.turn WHERE r.instead_of = ? LIMIT 1",
        (turn,),
    )
    return first(rows) is not None


async def standing(db: aiosqlite.Connection, turn: str) -> tuple[MessageRef, ...]:
    """The messages that carry an answer now, as they were sent; none when it was replaced."""
    stored = await turns.get(db, turn)
    if stored is None:
        return ()
    rows = await fetch(db, "SELECT message FROM messages WHERE turn = ? ORDER BY position", (turn,))
    return tuple(MessageRef(channel=stored.channel, id=row[0]) for row in rows)


async def pressed(db: aiosqlite.Connection, event: PressEvent) -> str | None:
    """The answer under which a button was pressed, as we know it; None for one that is not there."""
    ((carried, named, coming),) = await fetch(
        db,
        "SELECT (SELECT turn FROM messages"  # noqa: S608
        " WHERE (connector, account, channel, message) = (:connector, :account, :channel, :message)),"
        " (SELECT id FROM turns"
        f" WHERE (connector, account, channel, id) = (:connector, :account, :channel, :turn)), {COMING}",
        {
            "connector": event.user.connector,
            "account": event.user.account,
            "channel": event.channel.id,
            "message": event.message_id,
            "turn": event.turn,
        },
    )
    if not event.turn:
        return carried
    if carried is None or carried == named or coming:
        return named
    shown = [retry.instead_of for retry in await line(db, carried)]
    return named if named in shown else None


async def adopt(db: aiosqlite.Connection, turn: str) -> list[tuple[str, str]]:
    """Give a retry the reactions that overtook the record of its messages.

    They came in while it was being shown, and were taken for reactions to the answer before; which
    of them are of which is decided as in `meant`. Returns `(turn, rater)` of the labels that are to
    be folded again.
    """
    retry = next(iter(await line(db, turn)), None)
    if retry is None:
        return []
    rows = await fetch(
        db,
        "SELECT seq, connector || ' ' || account, event_id, rater, message, source, kind, retracts,"
        " time_ms, tiebreak, connector, account FROM events WHERE turn = ? AND kind IN ('rate', 'retract')"
        " AND (source LIKE 'reaction:%' OR retracts <> '') ORDER BY seq",
        (retry.instead_of,),
    )
    by_rater: defaultdict[str, list[Any]] = defaultdict(list)
    for row in rows:
        by_rater[row[3]].append(row)
    taken: dict[int, tuple[str, str, str]] = {}
    for said in by_rater.values():
        taken |= _overtook(retry, said)
    ids = {(account, id_) for account, id_, _ in taken.values()}
    for seq, account, id_, rater, *_, named, _, _, _, _ in rows:
        if (account, named) in ids:
            taken[seq] = (account, id_, rater)
    await db.execute(
        "UPDATE events SET turn = ? WHERE seq IN (SELECT CAST(value AS INTEGER) FROM json_each(?))",
        (turn, codec.dump_json(list(taken))),
    )
    return [(id_, rater) for rater in {who for *_, who in taken.values()} for id_ in (retry.instead_of, turn)]


def _overtook(retry: Retry, rows: list[Any]) -> dict[int, tuple[str, str, str]]:
    """Of what one rater's reactions said, as it came in, what speaks of the retry: `(account, id, rater)`."""
    keys = placing.in_order(row[8:] for row in rows)
    owns = {row[0]: placing.own(OrderKey(row[8], row[9])) for row in rows}
    changed = {(row[4], own.time_ms) for row in rows if row[6] == RatingKind.RATE and (own := owns[row[0]])}
    stands: dict[tuple[str, ...], bool] = {}
    """By reaction that is there: whether it is the retry's."""
    taken: dict[int, tuple[str, str, str]] = {}
    for _, row in sorted(zip(keys, rows, strict=True), key=lambda one: (one[0], one[1][0])):
        seq, account, id_, rater, message, source, kind, named = row[:8]
        own = owns[seq]
        after = _follows(retry, own, seq)
        stood = stands.pop((account, message, source), None)
        if kind == RatingKind.RATE:
            mine = stands[account, message, source] = after if stood is None else stood
        else:  # or it makes room for another one, in the same moment
            mine = after if own and (message, own.time_ms) in changed else bool(stood)
        if mine and not named:
            taken[seq] = (account, id_, rater)
    return taken


def _follows(retry: Retry, own: OrderKey | None, seq: float) -> bool:
    """Whether it was said after the retry was asked for: by their one clock, else as it came in."""
    asked, heard = placing.asked(retry.asked)
    return seq > heard if asked is None or own is None or own == asked else own > asked


async def meant(db: aiosqlite.Connection, event: RatingEvent, carried: str, *, moved: bool) -> str | None:
    """Which of the answers that its message has carried a rating event speaks of.

    `carried` is the one that it carries now. What was said of an earlier answer stays with it: a
    reaction that stands since then is no opinion of the later one, and removing it takes back what
    it said where it said it. `moved`: the same person put another reaction in its place in the same
    moment, which is a word on the answer that is there now, and takes nothing back of the earlier.
    """
    past = await line(db, carried)
    shown = [carried, *(retry.instead_of for retry in past)]
    if event.turn:
        return event.turn if event.turn in shown else None
    if event.source.startswith("reaction") and not moved:
        said = await _last_said(db, event, shown)
        if said is not None and (event.kind is RatingKind.RETRACT or said[1] == RatingKind.RATE):
            return said[0]
    own = None if event.order.ours else event.order
    for turn, retry in zip(shown, past, strict=False):
        if _follows(retry, own, math.inf):
            return turn
    return shown[-1]


async def _last_said(
    db: aiosqlite.Connection, event: RatingEvent, shown: list[str]
) -> tuple[str, str] | None:
    """`(turn, kind)` of the last that this reaction of this person said before the event."""
    user = event.user
    rows = await fetch(
        db,
        "SELECT time_ms, tiebreak, connector, account, turn, kind FROM events"
        " WHERE turn IN (SELECT value FROM json_each(?))"
        " AND (connector, account, message, source, rater) = (?, ?, ?, ?, ?)"
        " AND kind IN ('rate', 'retract') ORDER BY seq",
        (
            codec.dump_json(shown),
            user.connector,
            user.account,
            event.message_id,
            event.source,
            f"{user.connector}:{user.id}",
        ),
    )
    now = placing.marked(event.order)
    *keys, at = placing.in_order(
        [*(row[:4] for row in rows), (now.time_ms, now.tiebreak, user.connector, user.account)]
    )
    before = [(key, n) for n, key in enumerate(keys) if key <= at]
    return tuple(rows[max(before)[1]][4:]) if before else None
