# SPDX-License-Identifier: Apache-2.0
"""What people want of answers, a line each, with the ratings that each line rests on.

Nothing follows an undo by hand: a line counts while one of its ratings stands. Which of the lines goes
into a prompt is decided by `goodbot.conversation.note_rules`.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import aiosqlite

from goodbot.api.events import ChannelRef
from goodbot.store import codec, rollback_window
from goodbot.store.consent import CONSENT
from goodbot.store.query import fetch, value
from goodbot.store.training_pool import Pool

Scope = Literal["person", "channel", "everybody"]
EVERYBODY = ("everybody", "")

_NEWEST = 100
"""Ratings of a line that are looked at: in a busy channel it costs an answer no more."""
STILL_BAD = (
    "JOIN labels l ON (l.turn, l.rater) ="  # noqa: S608
    " (e.turn, coalesce((SELECT identity FROM links WHERE person = e.rater), e.rater))"
    f" WHERE l.value < 0 AND (e.kind = 'rate' OR {rollback_window.STANDS})"
)
"""SQL: of the ledger `e`, what stands, of an answer that is still a bad one to whoever said it."""
_RATINGS = (
    "SELECT json_group_array(seq) FROM (SELECT max(b.event) AS seq"  # noqa: S608
    f" FROM (SELECT event FROM note_ratings WHERE note = n.id ORDER BY event DESC LIMIT {_NEWEST}) b"
    f" JOIN events e ON e.seq = b.event {STILL_BAD} GROUP BY l.turn, l.rater)"
)
"""SQL: the ratings of a note `n` that stand: the answer is still a bad one to whoever said it."""
_MAY_SHOW = (
    "NOT n.edited AND EXISTS (SELECT 1 FROM json_each(n.ratings) b"  # noqa: S608
    " JOIN events e ON e.seq = CAST(b.value AS INTEGER) JOIN turns t ON t.id = e.turn"
    f" WHERE t.channel_kind = 'shared' OR n.rule <> '' AND {CONSENT})"
)
"""SQL: a person's line may be met by others: words typed at an answer that they have read, or those of a
chip, by the rules by which private chats train."""
WITH_RATINGS = (
    f"SELECT n.id, n.scope, n.key, n.rule, n.text, n.used, n.edited, n.created_at, ({_RATINGS}) AS ratings"
)
"""SQL: all that a note `n` is."""
# A version that started from the base knows nothing of those before it. What was asked for after a run had
# claimed its ratings is asked for again.
RETIRED_BY = (
    "(WITH RECURSIVE line (version) AS ("
    "SELECT version FROM pointers WHERE (scope, model) = (:scope, :model)"
    " UNION SELECT a.parent FROM adapters a JOIN line ON a.version = line.version"
    " WHERE coalesce(CAST(json_extract(a.metrics, '$.gate.start_over') AS INTEGER), 0) = 0)"
    " SELECT max(r.id) FROM run_notes d JOIN runs r ON r.id = d.run JOIN adapters a ON a.run = r.id"
    " WHERE d.note = n.id AND d.state = 'retired' AND a.version IN (SELECT version FROM line)"
    " AND r.last_event_seq >= (SELECT max(CAST(value AS INTEGER)) FROM json_each(n.ratings)))"
)
"""SQL: of a note `n` with its ratings, the newest run whose version answers without it; NULL: none."""
REFUTED = f"(SELECT d.ratings = '[]' FROM run_notes d WHERE (d.run, d.note) = ({RETIRED_BY}, n.id))"  # noqa: S608
"""SQL: whether that run has refuted it, and not learnt it; NULL: none."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Note:
    """One line. `created_at` is seconds since the epoch."""

    id: int
    scope: Scope
    key: str
    """Whose: a person (`connector:id`), a channel (`channel_key`), or empty."""
    rule: str
    """The chip (of `goodbot.api.actions.HINTS`) whose wording it is; empty for somebody's own words."""
    text: str
    used: bool
    """False: somebody has switched it off."""
    edited: bool
    """Its person has changed the words."""
    created_at: float
    ratings: tuple[int, ...]
    """Numbers in the ledger of the ratings that it rests on and that stand, oldest first; one for each
    answer and person."""
    may_show: bool
    """Whether it may be used where others read the answer."""
    retired: bool = False
    """The version in use goes without it; see `goodbot.store.distilled`."""
    refuted: bool = False
    """And that since ratings speak against it, not since it is learnt."""

    @property
    def in_use(self) -> bool:
        """Whether prompts may have it."""
        return self.used and not self.retired

    @property
    def said_last(self) -> int:
        """The number of the newest rating behind it."""
        return self.ratings[-1]


def channel_key(channel: ChannelRef) -> str:
    """The key of what a shared channel's lines are kept under; threads are not told apart."""
    return codec.dump_json([channel.connector, channel.account, channel.id])


async def follows(db: aiosqlite.Connection, model: str) -> bool | None:
    """Whether that base model follows notes; None where it was not tried yet."""
    found = await value(db, "SELECT follows FROM note_trials WHERE model = ?", (model,))
    return None if found is None else bool(found)


async def tried(db: aiosqlite.Connection, model: str, does: bool, now: float) -> None:
    """Keep what a trial of that base model has shown."""
    await db.execute("INSERT OR REPLACE INTO note_trials VALUES (?, ?, ?)", (model, does, now))


async def standing(db: aiosqlite.Connection, pool: Pool, owners: Sequence[tuple[Scope, str]]) -> list[Note]:
    """The lines that count, switched off or not, of these scopes with their keys; oldest first."""
    rows = await fetch(
        db,
        f"SELECT n.*, {_MAY_SHOW}, {REFUTED} FROM ({WITH_RATINGS}"  # noqa: S608
        " FROM json_each(:of) o JOIN notes n ON (n.scope, n.key) ="
        " (json_extract(o.value, '$[0]'), json_extract(o.value, '$[1]'))"
        ") n WHERE n.ratings <> '[]' ORDER BY n.id",
        {**pool.values(), "of": codec.dump_json([list(one) for one in owners])},
    )
    return [
        Note(
            id=row[0],
            scope=row[1],
            key=row[2],
            rule=row[3],
            text=row[4],
            used=bool(row[5]),
            edited=bool(row[6]),
            created_at=row[7],
            ratings=tuple(sorted(json.loads(row[8]))),
            may_show=bool(row[9]),
            retired=row[10] is not None,
            refuted=bool(row[10]),
        )
        for row in rows
    ]


async def add(
    db: aiosqlite.Connection, of: tuple[Scope, str], rule: str, text: str, rating: int, now: float
) -> None:
    """A line of that scope and key rests on one more rating (a number in the ledger).

    A person's is switched on by that; what others share stays off until an owner switches it on.
    """
    id_ = await value(
        db,
        "INSERT INTO notes (scope, key, rule, text, created_at) VALUES (?, ?, ?, ?, ?)"
        " ON CONFLICT (scope, key, text) DO UPDATE SET used = notes.used OR notes.scope = 'person'"
        " RETURNING id",
        (*of, rule, text, now),
    )
    await db.execute("INSERT OR IGNORE INTO note_ratings VALUES (?, ?)", (id_, rating))


async def supersede(db: aiosqlite.Connection, rating: int) -> None:
    """Nothing rests on better answers that were typed before this one, by its person for that answer."""
    await db.execute(
        "DELETE FROM note_ratings WHERE event IN (SELECT o.seq FROM events e JOIN events o"
        " ON (o.turn, o.rater, o.kind) = (e.turn, e.rater, 'better') AND o.seq < e.seq WHERE e.seq = ?)",
        (rating,),
    )


async def bad_rating(db: aiosqlite.Connection, turn: str, identity: str) -> int:
    """The number in the ledger of the rating by which a turn is a bad one to somebody; 0: it is not."""
    query = "SELECT event_seq FROM labels WHERE (turn, rater) = (?, ?) AND value < 0"
    return await value(db, query, (turn, identity), default=0)


async def ratings_of(db: aiosqlite.Connection, turn: str) -> set[int]:
    """The numbers in the ledger of what was said of an answer and is behind a line."""
    query = "SELECT e.seq FROM events e WHERE e.turn = ? AND e.seq IN (SELECT event FROM note_ratings)"
    return {seq for (seq,) in await fetch(db, query, (turn,))}


async def event(db: aiosqlite.Connection, connector: str, account: str, event_id: str) -> int:
    """The number in the ledger of a rating event that is stored there."""
    query = "SELECT seq FROM events WHERE (connector, account, event_id) = (?, ?, ?)"
    return await value(db, query, (connector, account, event_id), default=0)


async def switch(db: aiosqlite.Connection, id_: int, used: bool) -> None:
    """Whether a line is used from now on."""
    await db.execute("UPDATE notes SET used = ? WHERE id = ?", (used, id_))


async def edit(db: aiosqlite.Connection, note: Note, text: str) -> None:
    """Give a line other words, by its person; one that says the same already gives way."""
    await db.execute(
        "DELETE FROM notes WHERE (scope, key, text) = (?, ?, ?) AND id <> ?",
        (note.scope, note.key, text, note.id),
    )
    await db.execute(
        "UPDATE notes SET text = ?, rule = '', edited = 1, used = 1 WHERE id = ?", (text, note.id)
    )


async def move(db: aiosqlite.Connection, note: Note, scope: Scope, key: str) -> None:
    """Make it another one's line; one that says the same there gives way."""
    await db.execute(
        "DELETE FROM notes WHERE (scope, key, text) = (?, ?, ?) AND id <> ?", (scope, key, note.text, note.id)
    )
    await db.execute("UPDATE notes SET scope = ?, key = ? WHERE id = ?", (scope, key, note.id))


async def delete(db: aiosqlite.Connection, ids: Sequence[int]) -> None:
    """These lines are gone."""
    await db.executemany("DELETE FROM notes WHERE id = ?", [(id_,) for id_ in ids])
