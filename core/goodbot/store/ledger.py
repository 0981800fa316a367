# SPDX-License-Identifier: Apache-2.0
"""Rating events (append-only) and the labels that they fold to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import aiosqlite

from goodbot.api.events import OrderKey, RatingEvent, RatingKind, Receipt, UserRef
from goodbot.api.labels import LedgerEvent, Opinion, fold, is_stars
from goodbot.store import codec, judgements, last_said, people, placing, retries, teaching
from goodbot.store.query import fetch, value


@dataclass(frozen=True, kw_only=True, slots=True)
class LabelChange:
    """What a rating event did to one rater's label of one turn."""

    turn: str
    rater: str
    before: float | None
    after: float | None
    claimed: bool
    """Some run has claimed the turn, or a step that it is credited to: an adapter may have learnt from it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Found:
    """What the store knows of a rating event that comes in."""

    receipt: Receipt | None
    """What the event got when it first came; None when it is new."""
    turn: str | None
    """The turn that it speaks of, or None while we do not know it."""
    overtaken: bool
    """A retraction that names it has come first."""
    known: bool
    """Its message carries an answer of ours."""
    heard: bool
    """Somebody may have said something of it before."""


_FIND = (
    "SELECT (SELECT receipt FROM events"  # noqa: S608
    " WHERE (connector, account, event_id) = (:connector, :account, :event)),"
    " (SELECT turn FROM messages"
    " WHERE (connector, account, channel, message) = (:connector, :account, :channel, :message)),"
    " (SELECT id FROM turns t WHERE id = :turn AND kind = 'main'"
    " AND ((connector, account, channel) = (:connector, :account, :channel) OR (origin = 'captured'"
    " AND EXISTS (SELECT 1 FROM traces s WHERE s.turn = t.id"
    "  AND (s.connector, s.account, s.channel) = (:connector, :account, :channel))))),"
    " (SELECT turn FROM events"
    " WHERE (connector, account, event_id) = (:connector, :account, :retracts)),"
    " EXISTS (SELECT 1 FROM events"
    " WHERE turn IS NULL AND (connector, account, retracts) = (:connector, :account, :event)),"
    " EXISTS (SELECT 1 FROM messages m JOIN retries r ON r.turn = m.turn WHERE"
    " (m.connector, m.account, m.channel, m.message) = (:connector, :account, :channel, :message)),"
    f" {retries.COMING},"
    " EXISTS (SELECT 1 FROM events WHERE turn IN (SELECT :turn UNION ALL SELECT turn FROM messages"
    "  WHERE (connector, account, channel, message) = (:connector, :account, :channel, :message)))"
    " OR EXISTS (SELECT 1 FROM events WHERE turn IS NULL"
    "  AND (connector, account, channel, message) = (:connector, :account, :channel, :message))"
)


async def find(db: aiosqlite.Connection, event: RatingEvent, *, moved: bool = False) -> Found:
    """All that is asked about an incoming rating. One trip to the database: every rating makes it.

    A client can send any turn with a button; where we know the message, its turn decides, or the one
    that is being put in its place and is not recorded there yet. `moved` as in `retries.meant`, which
    decides where a message has carried several.
    """
    values = {
        "connector": event.user.connector,
        "account": event.user.account,
        "event": event.event_id,
        "channel": event.channel.id,
        "message": event.message_id,
        "turn": event.turn,
        "retracts": event.retracts,
    }
    found = await fetch(db, _FIND, values)
    receipt, carried, named, retracted, overtaken, retried, coming, heard = found[0]
    if coming:
        turn = named
    elif retried and receipt is None and not event.retracts:
        turn = await retries.meant(db, event, carried, moved=moved)
    elif event.message_id and carried is not None and not (retried and event.retracts):
        turn = carried if event.turn in ("", carried) else None
    elif event.turn:
        turn = named
    else:
        turn = retracted if event.retracts else None
    return Found(
        receipt=codec.load_receipt(receipt) if receipt is not None else None,
        turn=turn,
        overtaken=bool(overtaken),
        known=carried is not None and not event.retracts,
        heard=bool(heard or retried or event.retracts),
    )


async def insert(
    db: aiosqlite.Connection,
    event: RatingEvent,
    turn: str | None,
    rater: str,
    answer: Receipt,
    now: float,
    *,
    overtaken: bool = True,
) -> LabelChange | None:
    """Append an event; returns what it did to a label, None if it did nothing (yet).

    `overtaken` is what `find` says: False spares the search for a retraction that came first.
    """
    user = event.user
    await db.execute(
        "INSERT INTO events (connector, account, event_id, kind, turn, rater, channel, message, source,"
        " value, retracts, text, time_ms, tiebreak, received_at, receipt)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            user.connector,
            user.account,
            event.event_id,
            event.kind,
            turn,
            rater,
            event.channel.id,
            event.message_id,
            event.source,
            event.value,
            event.retracts,
            event.text,
            event.order.time_ms,
            event.order.tiebreak,
            now,
            codec.dump_receipt(answer, event.digest),
        ),
    )
    if turn is None:
        return None
    if overtaken:
        await db.execute(
            "UPDATE events SET turn = ? WHERE turn IS NULL AND (connector, account, retracts) = (?, ?, ?)",
            (turn, user.connector, user.account, event.event_id),
        )
    return await refold(db, turn, rater)


async def said_of(db: aiosqlite.Connection, user: UserRef, event_id: str) -> str | None:
    """The answer of which an event of this account has said something already; None where it has not."""
    query = "SELECT turn FROM events WHERE (connector, account, event_id) = (?, ?, ?)"
    return await value(db, query, (user.connector, user.account, event_id))


async def set_receipt(db: aiosqlite.Connection, event: RatingEvent, answer: Receipt) -> None:
    """Complete the receipt in the transaction that inserted the event."""
    await db.execute(
        "UPDATE events SET receipt = ? WHERE (connector, account, event_id) = (?, ?, ?)",
        (codec.dump_receipt(answer, event.digest), event.user.connector, event.user.account, event.event_id),
    )


_FOLDED = (
    f"WITH RECURSIVE {last_said.BY_SOURCE} SELECT who.identity, l.value, l.stars, l.event_seq,"  # noqa: S608
    " EXISTS (SELECT 1 FROM run_items WHERE turn = :turn) OR EXISTS (SELECT 1 FROM judgements j"
    " JOIN run_items i ON i.turn = j.turn WHERE j.credit_of = :turn), last.seq,"
    " last.connector || ' ' || last.account, last.event_id, last.rater, last.time_ms, last.tiebreak,"
    f" last.kind, last.source, last.value, {last_said.KILLED}"
    f" FROM (SELECT {people.IDENTITY} AS identity) AS who"
    " LEFT JOIN labels l ON (l.turn, l.rater) = (:turn, who.identity) LEFT JOIN last"
)


async def refold(db: aiosqlite.Connection, turn: str, rater: str) -> LabelChange | None:
    """Recompute one label from the ledger; returns the change, or None if there is none.

    All accounts of a person make one label, kept under their identity. An event's id and source
    say something within its account only; to take all back means all that this person said.
    """
    rows = await fetch(db, _FOLDED, {"turn": turn, "person": rater})
    identity, value, stars, event_seq, claimed = rows[0][:5]
    before = None if event_seq is None else (value, stars, event_seq)
    events = [row[5:] for row in rows if row[5] is not None]
    found = {f"{place} {event_id}": (seq, event_id) for seq, place, event_id, *_ in events}
    label = fold(
        (
            LedgerEvent(
                event_id=f"{place} {event_id}",
                order=OrderKey(time_ms, tiebreak),
                kind=RatingKind(kind),
                source=source and f"{account} {source}",
                value=value,
                stars=is_stars(source),
            )
            for _, place, event_id, account, time_ms, tiebreak, kind, source, value, _ in events
        ),
        killed={f"{place} {event_id}" for _, place, event_id, *_, killed in events if killed},
    )
    seq, event_id = found[label.event_id] if label else (None, "")
    after = (label.value, label.stars, seq) if label else None
    if after == before:
        return None
    if label is None:
        await db.execute("DELETE FROM labels WHERE (turn, rater) = (?, ?)", (turn, identity))
    else:
        await db.execute(
            "INSERT OR REPLACE INTO labels (turn, rater, value, stars, event_id, event_seq)"
            " VALUES (?, ?, ?, ?, ?, ?)",
            (turn, identity, label.value, label.stars, event_id, seq),
        )
    await teaching.count(db, turn)
    return LabelChange(
        turn=turn,
        rater=identity,
        before=before[0] if before else None,
        after=label.value if label else None,
        claimed=bool(claimed),
    )


async def regroup(db: aiosqlite.Connection, turn: str, rater: str) -> LabelChange | None:
    """As `refold`, of events that have come together only now: where they stand is decided again."""
    await placing.anew(db, turn, rater)
    return await refold(db, turn, rater)


async def refold_people(db: aiosqlite.Connection, persons: Sequence[str]) -> list[str]:
    """Recompute all labels of these accounts, whose identities have changed; returns their turns."""
    marks = ", ".join("?" * len(persons))
    query = f"SELECT DISTINCT turn FROM events WHERE rater IN ({marks}) AND turn IS NOT NULL"  # noqa: S608
    found = [row[0] for row in await fetch(db, query, persons)]
    await db.execute(f"DELETE FROM labels WHERE rater IN ({marks})", tuple(persons))  # noqa: S608
    identities = {await people.identity(db, person) for person in persons}
    for turn in found:
        for identity in identities:
            await regroup(db, turn, identity)
        await teaching.count(db, turn)
    return found


async def labels(db: aiosqlite.Connection, turn: str) -> dict[str, Opinion]:
    """The labels of one turn by rater."""
    rows = await fetch(db, "SELECT rater, value, stars FROM labels WHERE turn = ? ORDER BY rater", (turn,))
    return {rater: value if stars is None else [value, stars] for rater, value, stars in rows}


async def lost(db: aiosqlite.Connection, turn: str, before: Mapping[str, Opinion]) -> bool:
    """Whether a label of a turn (`before`, by rater) is gone or different now.

    Accounts that were linked meanwhile speak for one person. Of what was judged the judgement is compared;
    a rating that says the same takes nothing back.
    """
    if judgements.is_judged(before):
        if now := await judgements.labels(db, turn):
            return took_back(before, now)
        return _sign(before) * _sign(await labels(db, turn)) <= 0
    now = await labels(db, turn)
    current = {rater: now.get(await people.identity(db, rater)) for rater in before}
    return took_back(before, {rater: v for rater, v in current.items() if v is not None})


def took_back(before: Mapping[str, Opinion], now: Mapping[str, Opinion]) -> bool:
    """Whether a label of `before` is gone or different in `now` (both by rater).

    Stars that were added to a thumb take nothing back.
    """
    return any(not _stands(opinion, now.get(rater)) for rater, opinion in before.items())


def _sign(labels: Mapping[str, Opinion]) -> int:
    """Above 0 where most say good."""
    said = [one[0] if isinstance(one, list) else one for one in labels.values()]
    return sum((value > 0) - (value < 0) for value in said)


def _stands(before: Opinion, now: Opinion | None) -> bool:
    if isinstance(now, list) and not isinstance(before, list):
        return now[0] == before
    return now == before


async def forget_unresolved(db: aiosqlite.Connection, before: float) -> None:
    """Drop ratings of messages that never became ours."""
    await db.execute("DELETE FROM events WHERE turn IS NULL AND received_at < ?", (before,))
