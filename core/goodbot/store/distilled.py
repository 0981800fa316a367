# SPDX-License-Identifier: Apache-2.0
"""Notes that runs taught: on what each rested then, and which are not needed any more.

A version can have learnt what a note asks for. Then the note is *retired*: it is out of use while that
version is in the line of descent of the one that answers, and back by itself after a rollback, a reset, a
withdrawal, a start from the base, and once somebody asks for the same again. So nothing follows any of these
by hand. A run remembers which ratings its notes rested on: one that is taken back ends what was learnt by it.

A note that the ratings of a run have *refuted* is out of use likewise. Nothing of it is learnt: it rests on
nothing there.

A note that is deleted, switched off or worded otherwise while a run teaches it waits for the next one, as a
changed rating does: the run goes on without it, and keeps of it an entry that rests on nothing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

import aiosqlite

from goodbot.store import codec, notes
from goodbot.store.consent import CONSENT
from goodbot.store.notes import REFUTED, RETIRED_BY, Note
from goodbot.store.query import fetch, value
from goodbot.store.training_pool import Pool

_WHOSE = "coalesce((SELECT identity FROM links WHERE person = e.rater), e.rater)"
_LOST = (
    "SELECT DISTINCT n.run FROM run_notes n JOIN runs r ON r.id = n.run, json_each(n.ratings) b"  # noqa: S608
    f" WHERE {{which}} AND NOT EXISTS (SELECT 1 FROM events e {notes.STILL_BAD} AND e.seq ="
    " CAST(b.value AS INTEGER))"
)
_OTHER = (
    "ratings <> '[]' AND (state = 'kept' OR NOT EXISTS"
    " (SELECT 1 FROM notes WHERE notes.id = run_notes.note AND notes.used))"
)
"""SQL: a note of a run under way is not any more what it was when that claimed it."""
# By the words and the weight that a rating has in training: what is outvoted, set aside or held out, and what
# was said in private without consent, teaches by no note either.
_TRAINED = (
    f"SELECT DISTINCT e.seq, {_WHOSE} FROM events e JOIN turns t ON t.id = e.turn"  # noqa: S608
    " JOIN run_items i ON i.turn = e.turn JOIN runs r ON r.id = i.run"
    " WHERE e.seq IN (SELECT CAST(value AS INTEGER) FROM json_each(:events)) AND (r.scope, r.model)"
    " = (:scope, :model)"
    " AND r.state IN ('running', 'activated') AND i.split = 'train' AND i.weight > 0"
    f" AND EXISTS (SELECT 1 FROM json_each(i.labels) c WHERE c.key = {_WHOSE}) AND {CONSENT}"
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Retired:
    """A note that the version in use goes without. `person` is empty where it holds for others, too."""

    run: int
    note: int
    text: str
    person: str
    refuted: bool


async def taught(db: aiosqlite.Connection, note: int) -> bool:
    """Whether a version that went live has learnt this note, needed or not."""
    state = (
        "SELECT EXISTS (SELECT 1 FROM run_notes n JOIN runs r ON r.id = n.run"
        " WHERE n.note = ? AND n.ratings <> '[]' AND r.state = 'activated')"
    )
    return bool(await value(db, state, (note,)))


async def rests(
    db: aiosqlite.Connection, pool: Pool, run: int, notes: Iterable[Note]
) -> dict[int, dict[int, str]]:
    """Note → the ratings that it rests on and that train, each with whose it is; no note without any.

    The run that is to teach them has claimed its items. Without what it has let go.
    """
    gone = {note for (note,) in await fetch(db, "SELECT note FROM run_notes WHERE run = ?", (run,))}
    found = {note.id: note.ratings for note in notes if note.id not in gone}
    events = codec.dump_json(sorted({event for ratings in found.values() for event in ratings}))
    trained = dict(await fetch(db, _TRAINED, {**pool.values(), "events": events}))
    rests = {id_: {one: trained[one] for one in ratings if one in trained} for id_, ratings in found.items()}
    return {id_: ratings for id_, ratings in rests.items() if ratings}


async def made_of(
    db: aiosqlite.Connection, ratings: Mapping[int, Collection[int]], turns: Iterable[str]
) -> set[int]:
    """Of these notes with the ratings that each rests on, those that rest on one of one of these turns."""
    rows = await fetch(
        db,
        "SELECT seq FROM events WHERE seq IN (SELECT value FROM json_each(?))"
        " AND turn IN (SELECT value FROM json_each(?))",
        (
            codec.dump_json(sorted({event for rests in ratings.values() for event in rests})),
            codec.dump_json(sorted(set(turns))),
        ),
    )
    known = {event for (event,) in rows}
    return {note for note, rests in ratings.items() if known & {*rests}}


async def claim(db: aiosqlite.Connection, run: int, rests: Mapping[int, Collection[int]]) -> None:
    """A run teaches these notes, which rest on these ratings."""
    await db.executemany(
        "INSERT INTO run_notes (run, note, ratings) VALUES (?, ?, ?)",
        [(run, id_, codec.dump_json(sorted(ratings))) for id_, ratings in rests.items()],
    )


async def let_go(db: aiosqlite.Connection, run: int) -> None:
    """A run that starts over teaches none of what it was to teach; what is not as it was stays let go."""
    gone = f"UPDATE run_notes SET ratings = '[]', state = 'kept' WHERE run = ? AND {_OTHER}"  # noqa: S608
    await db.execute(gone, (run,))
    await db.execute("DELETE FROM run_notes WHERE run = ? AND (ratings <> '[]' OR state = 'retired')", (run,))


async def texts(db: aiosqlite.Connection, ids: Iterable[int]) -> dict[int, str]:
    """Of the notes that are there still."""
    rows = await fetch(
        db,
        "SELECT id, text FROM notes WHERE id IN (SELECT CAST(value AS INTEGER) FROM json_each(?))",
        (codec.dump_json(sorted(set(ids))),),
    )
    return dict(rows)


async def lost(db: aiosqlite.Connection, run: int) -> bool:
    """Whether a note of a run under way, or a rating that it rested on, is not any more what it was."""
    other = f"SELECT 1 FROM run_notes WHERE run = ? AND {_OTHER}"  # noqa: S608
    return bool(await fetch(db, other, (run,)) or await fetch(db, _LOST.format(which="n.run = ?"), (run,)))


async def stale(db: aiosqlite.Connection, turn: str) -> set[int]:
    """The runs that went live of which a note rested on a rating of that turn that does not stand."""
    which = "r.state = 'activated' AND CAST(b.value AS INTEGER) IN (SELECT seq FROM events WHERE turn = ?)"
    return {row[0] for row in await fetch(db, _LOST.format(which=which), (turn,))}


async def rated(db: aiosqlite.Connection) -> list[str]:
    """The turns of all ratings on which such notes rested."""
    rows = await fetch(
        db,
        "SELECT DISTINCT e.turn FROM run_notes n, json_each(n.ratings) b"
        " JOIN events e ON e.seq = CAST(b.value AS INTEGER)",
    )
    return [row[0] for row in rows]


async def learnt_from(
    db: aiosqlite.Connection, persons: Collection[str], turns: Collection[str]
) -> list[tuple[int, str]]:
    """The runs of which a note rested on a rating by these persons or of these turns, with their states."""
    rows = await fetch(
        db,
        "SELECT DISTINCT n.run, r.state FROM run_notes n JOIN runs r ON r.id = n.run, json_each(n.ratings) b"
        " JOIN events e ON e.seq = CAST(b.value AS INTEGER) WHERE e.rater IN (SELECT value FROM json_each(?))"
        " OR e.turn IN (SELECT value FROM json_each(?))",
        (codec.dump_json(sorted(persons)), codec.dump_json(sorted(turns))),
    )
    return [(row[0], row[1]) for row in rows]


async def retire(db: aiosqlite.Connection, run: int, ids: Iterable[int]) -> None:
    """The version that a run makes does not need these; not those whose person wants them all the same."""
    await db.executemany(
        "UPDATE run_notes SET state = 'retired' WHERE (run, note, state) = (?, ?, 'taught')",
        [(run, id_) for id_ in ids],
    )


async def refute(db: aiosqlite.Connection, run: int, ids: Iterable[int]) -> None:
    """The ratings of a run speak against these: its version goes without them.

    Not those that it teaches, and only those that may be compared with its ratings: people's own words for
    answers of this run, as they were asked for. A child that says anything silences no other note.
    """
    await db.execute(
        "INSERT OR IGNORE INTO run_notes (run, note, ratings, state)"
        " SELECT :run, n.id, '[]', 'retired' FROM notes n WHERE n.id IN (SELECT value FROM json_each(:ids))"
        " AND n.scope = 'person' AND NOT n.edited AND EXISTS (SELECT 1 FROM note_ratings r"
        " JOIN events e ON e.seq = r.event JOIN run_items i ON i.turn = e.turn"
        " WHERE (r.note, i.run) = (n.id, :run))",
        {"run": run, "ids": codec.dump_json(sorted(set(ids)))},
    )


async def keep(db: aiosqlite.Connection, note: int) -> None:
    """Its person wants a note in the prompt, whatever is found of it so far, and by a run under way."""
    await db.execute(
        "INSERT OR IGNORE INTO run_notes (run, note, ratings, state)"
        " SELECT id, ?, '[]', 'kept' FROM runs WHERE state = 'running'",
        (note,),
    )
    await db.execute("UPDATE run_notes SET state = 'kept' WHERE note = ?", (note,))


async def retired(db: aiosqlite.Connection, pool: Pool) -> list[Retired]:
    """The notes that the version in use goes without, each with the newest run that says so."""
    rows = await fetch(
        db,
        f"SELECT n.id, n.text, iif(n.scope = 'person', n.key, ''), {RETIRED_BY}, {REFUTED}"  # noqa: S608
        f" FROM ({notes.WITH_RATINGS}"
        " FROM notes n WHERE n.id IN (SELECT note FROM run_notes WHERE state = 'retired')) n"
        " WHERE n.used ORDER BY n.id",
        pool.values(),
    )
    return [
        Retired(run=run, note=id_, text=text, person=person, refuted=bool(refuted))
        for id_, text, person, run, refuted in rows
        if run
    ]


async def asked_by(
    db: aiosqlite.Connection, pool: Pool, run: int, persons: Collection[str], limit: int
) -> dict[str, list[str]]:
    """Person → the last turns that answer them and that `run` does not train on, newest first.

    By this model, of chats that may train.
    """
    rows = await fetch(
        db,
        "SELECT t.connector || ':' || t.talker, t.id FROM turns t"  # noqa: S608
        " WHERE t.connector || ':' || t.talker IN (SELECT value FROM json_each(:persons))"
        " AND (t.scope, t.model, t.origin) = (:scope, :model, 'goodbot') AND t.answered_by = ''"
        " AND t.trainable AND t.id NOT IN"
        " (SELECT turn FROM run_items WHERE run = :run AND split = 'train' AND weight > 0)"
        f" AND {CONSENT} ORDER BY t.seq DESC LIMIT :limit",
        {**pool.values(), "run": run, "persons": codec.dump_json(sorted(persons)), "limit": limit},
    )
    found: defaultdict[str, list[str]] = defaultdict(list)
    for person, turn in rows:
        found[person].append(turn)
    return found


async def answers(db: aiosqlite.Connection, runs: Sequence[int]) -> int:
    """On how many answers these runs have taught notes."""
    return await value(
        db,
        "SELECT count(DISTINCT turn) FROM run_items WHERE run IN (SELECT CAST(value AS INTEGER)"
        " FROM json_each(?))"
        " AND note_weight > 0",
        (codec.dump_json(list(runs)),),
        default=0,
    )
