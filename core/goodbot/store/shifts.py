# SPDX-License-Identifier: Apache-2.0
"""What runs have changed in answers: the child's figures, and questions with the answers before and after.

The answers go with their question, and all of them when somebody is forgotten (`forget`): the version that
gave them may have read words of theirs in the prompt, or learnt them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import aiosqlite

from goodbot.api.events import ChannelRef
from goodbot.api.learnt import AnsweredTwice, Learnt, Shift, opener
from goodbot.store import codec, fixed, predictions
from goodbot.store.prompts import QUESTION
from goodbot.store.query import fetch, records

_FIGURES = "feature, word, old, new, change, low, high, named"


async def keep(db: aiosqlite.Connection, run: int, event: Mapping[str, Any]) -> None:
    """What the child of a run that is still running has measured, in place of what an earlier child did.

    Raises as `Learnt.parse` does. Of its questions only those that the run has claimed are kept, and of first
    words those of answers to two people at least: what one is told may be read by others.
    """
    found = Learnt.parse(event)
    if not await fetch(db, "SELECT 1 FROM runs WHERE id = ? AND state = 'running'", (run,)):
        return
    await drop(db, run)
    common = await _common_words(db, run)
    await db.executemany(
        f"INSERT OR IGNORE INTO shifts (run, answers, questions, trained, {_FIGURES})"  # noqa: S608
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        [
            (
                *(run, found.answers, found.questions, found.trained, one.feature, one.word, one.before),
                *(one.after, one.change, one.low, one.high, one.named),
            )
            for one in found.shifts
            if not one.word or one.word in common
        ],
    )
    await db.executemany(
        "INSERT OR IGNORE INTO shift_examples (run, turn, position, old_answer, new_answer)"
        " SELECT run, turn, ?, ?, ? FROM run_items WHERE (run, turn) = (?, ?)",
        [(n, one.before, one.after, run, one.id) for n, one in enumerate(found.examples)],
    )


async def _common_words(db: aiosqlite.Connection, run: int) -> set[str]:
    """The first words of a run's answers to two people or more."""
    rows = await fetch(
        db,
        "SELECT t.response, coalesce(k.identity, t.connector || ':' || t.talker) FROM run_items i"
        " JOIN turns t ON t.id = i.turn LEFT JOIN links k ON k.person = t.connector || ':' || t.talker"
        " WHERE i.run = ?",
        (run,),
    )
    people: dict[str, set[str]] = {}
    for response, person in rows:
        people.setdefault(opener(response), set()).add(person)
    return {word for word, answered in people.items() if len(answered) > 1}


async def drop(db: aiosqlite.Connection, run: int | None) -> None:
    """Nobody is to use what a run has made: an answer of it may repeat what is taken back."""
    await db.execute("DELETE FROM shifts WHERE run = ?", (run,))
    await db.execute("DELETE FROM shift_examples WHERE run = ?", (run,))


async def of(db: aiosqlite.Connection, run: int | None) -> Learnt | None:
    """What a run has measured; None: nothing."""
    rows = await fetch(
        db,
        f"SELECT answers, questions, trained, {_FIGURES} FROM shifts WHERE run = ?",  # noqa: S608
        (run,),
    )
    if not rows:
        return None
    answers, questions, trained = rows[0][:3]
    shifts = records(Shift, [(*row[3:-1], bool(row[-1])) for row in rows])
    return Learnt(answers=answers, questions=questions, trained=bool(trained), shifts=shifts)


async def examples(
    db: aiosqlite.Connection,
    run: int | None,
    accounts: Sequence[str],
    limit: int,
    *,
    place: ChannelRef | None = None,
) -> list[AnsweredTwice]:
    """Of a person's own questions (`connector:id`), those of which the answers have changed most.

    With a `place` what was said there, in a shared channel, or in private.
    """
    rows = await fetch(
        db,
        f"SELECT {QUESTION}, e.old_answer, e.new_answer FROM shift_examples e"  # noqa: S608
        " JOIN turns t ON t.id = e.turn LEFT JOIN retries r ON r.turn = t.id WHERE e.run = :run"
        " AND t.connector || ':' || t.talker IN (SELECT value FROM json_each(:accounts))"
        " AND t.channel_kind <> 'encrypted' AND (:kind IS NULL OR (t.channel_kind = :kind"
        " AND (t.connector, t.account) = (:connector, :account)"
        " AND (:kind <> 'shared' OR t.channel = :channel))) ORDER BY e.position LIMIT :limit",
        {
            "run": run,
            "accounts": codec.dump_json(accounts),
            "kind": place.kind if place else None,
            "connector": place.connector if place else "",
            "account": place.account if place else "",
            "channel": place.id if place else "",
            "limit": limit,
        },
    )
    return records(AnsweredTwice, rows)


async def forget(db: aiosqlite.Connection) -> None:
    """Part of forgetting a person: no answer stays, no word of one, and nothing that is predicted."""
    await db.execute("DELETE FROM shift_examples")
    await db.execute("DELETE FROM shifts WHERE word <> ''")
    await fixed.forget(db)
    await predictions.forget(db)
