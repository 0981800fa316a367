# SPDX-License-Identifier: Apache-2.0
"""Forgetting a person: their words, their ratings, and what was learnt from either.

Everything happens in one transaction: the runs and adapters that learnt from them are marked
first, while the rows that prove it are there, then the rows go. Erasing the marked adapters'
files, and the free space of the database, comes after (`goodbot.learning.adapters.erasure`).
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

import aiosqlite

from goodbot.api.turns import Turn
from goodbot.store import (
    adapters,
    codec,
    distilled,
    inbox,
    judgements,
    messages,
    news,
    people,
    queues,
    refusals,
    retries,
    runs,
    scopes,
    settings,
    shifts,
    teaching,
    turns,
)
from goodbot.store.query import fetch, value

ERASE = "erase"
"""The switch that is set while deleted words may still lie in the database's free space."""
_TELL = "forget "
"""How the switches begin that name who a connector has not forgotten yet."""
_CHANGES = "SELECT total_changes()"
_NOBODY = "forgotten"
_RUN = 4
"""So many words in a row in an answer to somebody else are a quotation."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Forgotten:
    """What went. `versions` are the adapters that learnt from it and were in good standing."""

    people: tuple[str, ...]
    answers: int
    ratings: int
    quoted: int
    """Answers to others that repeated their words, and went too."""
    versions: tuple[int, ...]
    ended_run: bool
    """A training that had claimed something of it was ended."""


async def forget(
    db: aiosqlite.Connection,
    scope: str,
    model: str,
    person: str,
    *,
    keep_grants: Collection[str],
    keep_silent: Collection[str] = (),
) -> Forgotten:
    """Delete all that is stored of a person, of all their linked accounts.

    Grants of the accounts in `keep_grants` stay, and `share off` of those in `keep_silent`. The active
    adapter of `scope` and `model` is the scheduler's; other pointers go to one in good standing here.
    """
    persons = await people.accounts(db, person)
    mine = await _answers_to(db, persons)
    scrubbed, quoting = await _in_prompts(db, persons, mine)
    touched = {*mine, *quoting, *await judgements.credited_by(db, persons), *(t.id for t in scrubbed)}
    stale, ended = await _learnt_from(db, persons, touched)
    versions = await scopes.forget(db, scope, model, persons, stale)
    await refusals.forget(db, persons)
    before = await value(db, _CHANGES)
    ratings = await _delete_ratings(db, persons)
    await db.executemany("DELETE FROM turns WHERE id = ?", [(id_,) for id_ in {*mine, *quoting}])
    for turn in scrubbed:
        await turns.set_prompt(db, turn)
        await db.execute("DELETE FROM pairs WHERE turn = ?", (turn.id,))
    await inbox.forget(db, persons)
    await _delete_person(db, persons, keep_grants, keep_silent)
    if deleted := await value(db, _CHANGES) != before:  # else anybody could have it done again and again
        await inbox.forget_receipts(db)
        await messages.forget_gone(db)
        await shifts.forget(db)
        await erase(db)
    for who in persons:
        await db.execute("DELETE FROM aliases WHERE person = ?", (who,))  # this very command made one
        if deleted or not await settings.switch(db, f"{_TELL}{who}"):
            await settings.set_switch(db, f"{_TELL}{who}", str(int(deleted)))
    return Forgotten(
        people=tuple(persons),
        answers=len(mine),
        ratings=ratings,
        quoted=len(quoting),
        versions=tuple(versions),
        ended_run=ended,
    )


async def erase(db: aiosqlite.Connection) -> None:
    """What was deleted is to be wiped from the disk, too; each time the switch says another number."""
    before = await settings.switch(db, ERASE)
    await settings.set_switch(db, ERASE, str(int(before or 0) + 1))


async def wiped(db: aiosqlite.Connection, seen: str) -> None:
    """What was deleted when the switch said `seen` is wiped; what went since is not."""
    if await settings.switch(db, ERASE) == seen:
        await settings.set_switch(db, ERASE, "")


async def to_tell(db: aiosqlite.Connection) -> list[str]:
    """Who was forgotten here, and not yet by their connector: `connector:id`."""
    query = "SELECT substr(name, ?) FROM switches WHERE substr(name, 1, ?) = ?"
    return [row[0] for row in await fetch(db, query, (len(_TELL) + 1, len(_TELL), _TELL))]


async def told(db: aiosqlite.Connection, who: str, *, deleted: bool) -> None:
    """Their connector has forgotten them, too; what it `deleted` may still lie in the free space."""
    named = await settings.switch(db, f"{_TELL}{who}") == "1"  # the note, which names them, goes as well
    await settings.set_switch(db, f"{_TELL}{who}", "")
    if deleted or named:
        await erase(db)


async def knows(db: aiosqlite.Connection, person: str) -> bool:
    """Whether there is anything of this account to forget: words, ratings, a consent, a link."""
    connector, _, id_ = person.partition(":")
    return bool(
        await value(
            db,
            "SELECT EXISTS (SELECT 1 FROM turns WHERE (connector, talker) = (:connector, :id))"  # noqa: S608
            " OR EXISTS (SELECT 1 FROM traces WHERE (connector, talker) = (:connector, :id))"
            " OR EXISTS (SELECT 1 FROM events WHERE rater = :person)"
            " OR EXISTS (SELECT 1 FROM shares WHERE person = :person)"
            " OR EXISTS (SELECT 1 FROM withheld WHERE person = :person)"
            " OR EXISTS (SELECT 1 FROM links WHERE person = :person)"
            " OR EXISTS (SELECT 1 FROM pairs WHERE chosen_by = :person)"
            f" OR :person IN ({queues.NAMED})"
            " OR EXISTS (SELECT 1 FROM notes WHERE scope = 'person' AND key = :person)",
            {"connector": connector, "id": id_, "person": person},
        )
    )


async def _answers_to(db: aiosqlite.Connection, persons: Sequence[str]) -> set[str]:
    found: set[str] = set()
    for who in persons:
        connector, _, id_ = who.partition(":")
        query = (
            "SELECT id FROM turns WHERE (connector, talker) = (:connector, :id)"
            # The other calls of the same run of an agent hold their words, whoever reported them.
            " UNION SELECT o.turn FROM traces s JOIN traces o ON o.trace = s.trace"
            " WHERE (s.connector, s.talker) = (:connector, :id)"
        )
        found.update([row[0] for row in await fetch(db, query, {"connector": connector, "id": id_})])
    return found


async def _in_prompts(
    db: aiosqlite.Connection, persons: Sequence[str], mine: set[str]
) -> tuple[list[Turn], set[str]]:
    """Answers to others that were shown the persons' words: scrubbed ones, and ids of quoting ones.

    A turn that does not say whose words its prompt holds loses all of its history: one from before
    that was recorded, and another program's of a channel that the persons were seen in.
    """
    rows = await fetch(
        db,
        "SELECT id FROM turns WHERE EXISTS (SELECT 1 FROM json_each(context) c"
        " WHERE json_extract(c.value, '$[1]') IN (SELECT value FROM json_each(:persons))"
        " OR json_extract(c.value, '$[0]') IN (SELECT value FROM json_each(:mine)))"
        " OR (context = '[]' AND channel_kind = 'shared' AND json_array_length(messages) > 2"
        " AND connector IN (SELECT substr(value, 1, instr(value, ':') - 1) FROM json_each(:persons))"
        " AND (origin <> 'captured' OR (connector, channel) IN"
        " (SELECT connector, channel FROM turns WHERE id IN (SELECT value FROM json_each(:mine))"
        " UNION SELECT connector, channel FROM traces"
        " WHERE turn IN (SELECT value FROM json_each(:mine)))))"
        " ORDER BY seq",
        {"persons": codec.dump_json(persons), "mine": codec.dump_json(sorted(mine))},
    )
    shown = [await turns.get(db, row[0]) for row in rows if row[0] not in mine]
    theirs = [turn for turn in shown if turn is not None]
    said = [text for turn in theirs for text in turn.said(lambda _, who: who in persons)]
    said += [str(turn.question["content"]) for turn in (await turns.some(db, sorted(mine))).values()]
    quoting: set[str] = set()
    lost: set[str] = set()
    """Retries of what goes: without the earlier answer, their prompts say nothing."""
    scrubbed: list[Turn] = []
    words = {run for text in said for run in _runs(text)}
    for turn in theirs:  # oldest first: what quotes a quotation comes later
        if words.intersection(_runs(turn.response)) or turn.id in lost:
            quoting.add(turn.id)
            lost |= await retries.later(db, {turn.id})
        else:
            gone = {*mine, *quoting}
            scrubbed.append(
                turn.without(lambda id_, who, gone=gone: who in persons or id_ in gone)
                if turn.context
                else turn.without_history()
            )
    return scrubbed, quoting


def quotes(answer: str, said: Iterable[str]) -> bool:
    """Whether an answer repeats what was said."""
    return not {run for text in said for run in _runs(text)}.isdisjoint(_runs(answer))


def _runs(text: str) -> Iterable[str]:
    words = text.casefold().split()
    for start in range(len(words) - _RUN + 1):
        yield " ".join(words[start : start + _RUN])


async def _learnt_from(
    db: aiosqlite.Connection, persons: Sequence[str], touched: set[str]
) -> tuple[set[int], bool]:
    """Runs that trained on these turns or on a label of these persons; whether one was under way.

    A run under way that has claimed any of it, to train or to judge by, is ended.
    """
    rows = await fetch(
        db,
        "SELECT DISTINCT i.run, i.split, r.state FROM run_items i JOIN runs r ON r.id = i.run"
        " WHERE i.turn IN (SELECT value FROM json_each(?)) OR EXISTS"
        " (SELECT 1 FROM json_each(i.labels) WHERE key IN (SELECT value FROM json_each(?)))",
        (codec.dump_json(sorted(touched)), codec.dump_json(persons)),
    )
    rows += [(run, "train", state) for run, state in await distilled.learnt_from(db, persons, touched)]
    running = {run for run, _, state in rows if state == "running"}
    await runs.let_go(db, running, adapters.FORGOTTEN)
    # One that was ended may have recorded its adapter already: nobody else would disown it.
    return running | {run for run, split, _ in rows if split == "train"}, bool(running)


async def _delete_ratings(db: aiosqlite.Connection, persons: Sequence[str]) -> int:
    """Their events and labels, also as runs remember them; returns how many ratings were theirs."""
    rated: list[str] = []
    for who in persons:
        rated += [t for (t,) in await fetch(db, "DELETE FROM labels WHERE rater = ? RETURNING turn", (who,))]
        marked = "UPDATE turns SET forgotten = 1 WHERE id IN (SELECT turn FROM events WHERE rater = ?)"
        for query in (marked, "DELETE FROM events WHERE rater = ?"):
            await db.execute(query, (who,))
    await teaching.count(db, *rated)
    query = (
        "SELECT run, turn, labels FROM run_items WHERE EXISTS (SELECT 1 FROM json_each(labels)"
        " WHERE key IN (SELECT value FROM json_each(?)))"
    )
    claimed = await fetch(db, query, (codec.dump_json(persons),))
    for run, turn, labels in claimed:
        left = {rater: v for rater, v in json.loads(labels).items() if rater not in persons}
        await db.execute(
            "UPDATE run_items SET labels = ?, words = '[]' WHERE (run, turn) = (?, ?)",
            (codec.dump_json(left), run, turn),
        )
    return len(rated)


async def _delete_person(
    db: aiosqlite.Connection, persons: Sequence[str], keep: Collection[str], silent: Collection[str]
) -> None:
    for who in persons:
        await db.execute("DELETE FROM codes WHERE subject = ?", (who,))
        await db.execute("DELETE FROM quarantines WHERE rater = ?", (who,))
        await db.execute("DELETE FROM notes WHERE scope = 'person' AND key = ?", (who,))
        for table in ("shares", "talkers", "links", "join_requests"):
            await db.execute(f"DELETE FROM {table} WHERE person = ?", (who,))  # noqa: S608
        if who not in silent:
            await db.execute("DELETE FROM withheld WHERE person = ?", (who,))
        # What somebody was told is kept under words one of which is their key.
        notes = "DELETE FROM told WHERE instr(' ' || person || ' ', ' ' || ? || ' ') > 0 AND person <> ?"
        await db.execute(notes, (who, settings.own_note(who, "off") if who in silent else ""))
        if who not in keep:
            await people.revoke(db, who)
        for table, column in (
            ("channels", "enabled_by"),
            ("grants", "given_by"),
            ("quarantines", "made_by"),
            ("retries", "asked_by"),
            ("pairs", "chosen_by"),
            ("pairs", "owner"),
        ):
            await db.execute(
                f"UPDATE {table} SET {column} = ? WHERE {column} = ?",  # noqa: S608
                (_NOBODY, who),
            )
        await queues.forget(db, who)
        await news.forget_asked(db, who, _NOBODY)
