# SPDX-License-Identifier: Apache-2.0
"""The rated answers for a page of them: from the newest on, a bounded look at a time, and who may see what.

An owner sees of what the inbox shows them all that was said; a rater what they have rated, with their own
ratings and words alone.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import aiosqlite

from goodbot.api.labels import is_stars
from goodbot.api.rated import RatedAnswer, RatedBy, RatedWords
from goodbot.api.sentences import clause, ended, findings
from goodbot.api.texts import explained, say
from goodbot.api.turns import CHOICE
from goodbot.base.topics import READ
from goodbot.store import (
    codec,
    feedback,
    judgements,
    people,
    quarantined,
    review_queue,
    rollback_window,
    selection,
)
from goodbot.store import words as words_said
from goodbot.store.feedback import Remark
from goodbot.store.prompts import QUESTION
from goodbot.store.query import Row, fetch
from goodbot.store.review_queue import Viewer
from goodbot.store.selection import Selection
from goodbot.store.training_pool import UNUSED, Pool

PAGE = 30
_SEARCHED = 5000
"""So many of them are looked through at a time: whoever reads beside it waits."""
NO_END = (1e18, 1 << 62)
_HERE = "(created_at, seq) < (:at, :seq) AND created_at >= :since AND created_at < :until"
_KEYS = (
    f"SELECT created_at, seq FROM turns{{}} AND {_HERE}"  # noqa: S608
    " ORDER BY created_at DESC, seq DESC LIMIT :searched"
)
_RATED = " INDEXED BY turns_rated WHERE rated > 0"
_PICKED = "id IN (SELECT turn FROM quarantines WHERE turn IS NOT NULL)"
_NAMED = " WHERE id IN (SELECT value FROM json_each(:turns))"
_OUT = f"EXISTS (SELECT 1 FROM events e WHERE e.turn = t.id AND {rollback_window.LEFT_OUT})"  # noqa: S608
_MINE = "EXISTS (SELECT 1 FROM labels m WHERE m.turn = t.id AND m.rater = :me{0})"
_SIGN = "CASE :rating WHEN 'good' THEN m.value > 0 WHEN 'bad' THEN m.value < 0 ELSE m.value = 0 END"
_WORDS = (
    "EXISTS (SELECT 1 FROM events e WHERE e.turn = t.id AND e.kind IN ('comment', 'better')"  # noqa: S608
    f" AND {rollback_window.KEPT} AND iif(:owner, 1, NOT {rollback_window.WITHIN}"
    f" AND {people.IDENTITY_OF.format('e.rater')} = :me))"
)
_KEYED = "FROM json_each(:keys) k CROSS JOIN turns t ON t.seq = CAST(k.value AS INTEGER)"
_ANSWERS = (
    f"SELECT t.id, t.connector, t.channel, t.channel_kind, t.connector || ':' || t.talker,"
    f" coalesce({QUESTION}, ''), t.response, t.created_at, t.version, t.answered_by, t.seq"
    f" {_KEYED} LEFT JOIN retries r ON r.turn = t.id"
    f" WHERE t.kind <> '{CHOICE}' AND {review_queue.SEEN}{{0}} ORDER BY k.key LIMIT :limit"
)
_LABELS = (
    "SELECT l.turn, l.rater, l.value, l.stars, e.source, e.received_at FROM labels l"
    " JOIN events e ON e.seq = l.event_seq WHERE l.turn IN (SELECT value FROM json_each(?)) ORDER BY e.seq"
)
# Of what is left out, the last that each of them said.
_GONE = (
    f"SELECT e.turn, {people.IDENTITY_OF.format('e.rater')}, e.value, NULL, e.source, e.received_at"  # noqa: S608
    " FROM events e WHERE e.seq IN (SELECT max(e.seq) FROM events e"
    " WHERE e.turn IN (SELECT value FROM json_each(?)) AND e.kind = 'rate'"
    f" AND {rollback_window.LEFT_OUT} GROUP BY e.turn, {people.IDENTITY_OF.format('e.rater')}) ORDER BY 1, 2"
)
_TAUGHT = (
    "SELECT DISTINCT i.turn, a.version FROM run_items i JOIN runs r ON r.id = i.run"
    " JOIN adapters a ON a.run = r.id WHERE i.turn IN (SELECT value FROM json_each(?))"
    " AND i.split = 'train' AND i.weight > 0 AND r.state = 'activated' AND a.tainted = '' ORDER BY 2"
)
_ASKED = (
    f"SELECT substr(coalesce({QUESTION}, ''), 1, {READ}), substr(t.response, 1, {READ}),"  # noqa: S608
    " (SELECT avg(value) FROM labels WHERE turn = t.id)"
    f" {_KEYED} LEFT JOIN retries r ON r.turn = t.id"
    f" WHERE {review_queue.SEEN} ORDER BY k.key"
)
_LESSONS = (
    "SELECT a.version, a.parent, a.created_at, i.split, i.reward, i.weight, i.words, a.tainted,"
    " (SELECT count(*) FROM run_items o WHERE o.run = i.run AND o.split = 'train' AND o.weight > 0)"
    " FROM run_items i JOIN adapters a ON a.run = i.run WHERE i.turn = ? ORDER BY a.version DESC"
)


async def page(
    db: aiosqlite.Connection,
    viewer: Viewer,
    pool: Pool,
    wanted: Selection,
    *,
    words: bool = False,
    left_out: bool = False,
    after: tuple[float, int] = NO_END,
) -> tuple[Sequence[RatedAnswer], tuple[float, int] | None]:
    """The newest of them after a place, and the place where to go on; None: that is all."""
    at, seq = after
    me = await people.identity(db, viewer.person)
    bounds: dict[str, Any] = {
        "at": at,
        "seq": seq,
        "since": -1e18 if wanted.since is None else wanted.since,
        "until": 1e18 if wanted.until is None else wanted.until,
        "searched": _SEARCHED,
        "turns": codec.dump_json(list(wanted.turns or ())),
    }
    keys = await _keys(db, bounds, owner=viewer.owner, left_out=left_out, named=bool(wanted.turns))
    but = ("since", "until") if viewer.owner else _FOREIGN
    terms, values = await selection.terms(db, wanted, but=but, left_out=viewer.owner)
    if left_out:
        terms.append(_OUT)
    elif viewer.owner:
        judged = f" OR {judgements.FOUND} < 0" if wanted.turns else ""  # a report names those, too
        terms.append(f"(t.rated > 0 OR {_OUT}{judged})")
    else:
        terms.append(_MINE.format(f" AND {_SIGN}" if wanted.rating else ""))
    if words:
        terms.append(_WORDS)
    found = await fetch(
        db,
        _ANSWERS.format("".join(f" AND {term}" for term in terms)),
        {
            **viewer.values(),
            **values,
            "me": me,
            "rating": wanted.rating,
            "keys": codec.dump_json([key for _, key in keys]),
            "limit": PAGE,
        },
    )
    last = (found[-1][7], found[-1][10]) if len(found) == PAGE else None
    if last is None and len(keys) == _SEARCHED:
        last = keys[-1]
    return await _drawn(db, viewer, pool, found, me), last


_FOREIGN = ("since", "until", "rating")


async def _keys(
    db: aiosqlite.Connection, bounds: dict[str, Any], *, owner: bool, left_out: bool, named: bool
) -> list[tuple[float, int]]:
    """Where to look, the newest first: all of what is wanted there, and little else.

    Of a time that is left out, any answer may have had ratings in it.
    """
    if named:  # however old they are
        where = [_NAMED]
    elif owner and await fetch(db, "SELECT 1 FROM quarantines WHERE turn IS NULL LIMIT 1"):
        where = [" WHERE 1"]
    elif left_out:
        where = [f" WHERE {_PICKED}"]
    else:  # what nobody else has rated since stands with the others
        where = [_RATED, *([f" WHERE rated = 0 AND {_PICKED}"] if owner else [])]
    found = [key for one in where for key in await fetch(db, _KEYS.format(one), bounds)]
    return sorted(((at, seq) for at, seq in found), reverse=True)[:_SEARCHED]


async def _drawn(
    db: aiosqlite.Connection, viewer: Viewer, pool: Pool, found: Sequence[Row], me: str
) -> list[RatedAnswer]:
    ids = [row[0] for row in found]
    ratings, words = await _ratings(db, viewer, ids, me), await _words(db, viewer, ids, me)
    taught: Mapping[str, Sequence[int]] = await _versions(db, ids) if viewer.owner else {}
    made: list[RatedAnswer] = []
    for turn, connector, place, kind, asked_by, question, answer, at, version, other, _ in found:
        one = RatedAnswer(
            turn=turn,
            connector=connector,
            place="",
            kind=kind,
            asked_by="",
            question=question,
            answer=answer,
            at=at,
            version=version,
            answered_by=other,
            ratings=ratings[turn],
            words=words[turn],
            left_out=not all(said.counts for said in (*ratings[turn], *words[turn])),
        )
        if viewer.owner:
            why = "" if turn in taught else await why_not(db, pool, turn)
            versions = taught.get(turn, ())
            one = replace(one, place=place, asked_by=asked_by, taught=versions, why_not=why)
        made.append(one)
    return made


async def _ratings(
    db: aiosqlite.Connection, viewer: Viewer, ids: Sequence[str], me: str
) -> Mapping[str, list[RatedBy]]:
    """Of answers what stands, and for an owner what is left out of it; for others their own alone."""
    turns = (codec.dump_json(ids),)
    said = [(row, True) for row in await fetch(db, _LABELS, turns)]
    if viewer.owner:
        said += [(row, False) for row in await fetch(db, _GONE, turns)]
    found: defaultdict[str, list[RatedBy]] = defaultdict(list)
    for row, counts in said:
        if viewer.owner or row[1] == me:
            found[row[0]].append(_by(row, counts, me))
    return found


async def _words(
    db: aiosqlite.Connection, viewer: Viewer, ids: Sequence[str], me: str
) -> Mapping[str, list[RatedWords]]:
    """What was written of answers, as `_ratings`."""
    found: defaultdict[str, list[RatedWords]] = defaultdict(list)
    for one in await feedback.remarks(db, ids, left_out=viewer.owner):
        mine = await people.identity(db, one.rater) == me
        if viewer.owner or mine:
            found[one.turn].append(_wrote(one, "" if mine else one.rater))
    return found


async def _versions(db: aiosqlite.Connection, ids: Sequence[str]) -> Mapping[str, Sequence[int]]:
    """The versions that learnt from answers; those that taught none are missing."""
    found: defaultdict[str, list[int]] = defaultdict(list)
    for turn, version in await fetch(db, _TAUGHT, (codec.dump_json(ids),)):
        found[turn].append(version)
    return found


def _by(row: Row, counts: bool, me: str) -> RatedBy:
    _, rater, value, stars, source, at, *_ = row
    thumb = value
    if stars is None and is_stars(source):
        thumb, stars = None, value  # the stars are the label where there is no thumb
    return RatedBy(who="" if rater == me else rater, thumb=thumb, stars=stars, at=at, counts=counts)


def _wrote(one: Remark, who: str) -> RatedWords:
    return RatedWords(who=who, kind=one.kind.value, text=one.text, at=one.at, counts=one.counts)


async def asked(db: aiosqlite.Connection, viewer: Viewer) -> list[tuple[str, str, float]]:
    """Question, answer and mean rating of the newest rated answers that somebody may see."""
    bounds = {"at": NO_END[0], "seq": NO_END[1], "since": -1e18, "until": 1e18, "searched": _SEARCHED}
    keys = await fetch(db, _KEYS.format(_RATED), bounds)
    values = {**viewer.values(), "keys": codec.dump_json([key for _, key in keys])}
    return [(question, answer, mean) for question, answer, mean in await fetch(db, _ASKED, values)]


@dataclass(frozen=True, kw_only=True, slots=True)
class TaughtThere:
    """What a training made of one answer. `at`: when its version was made, seconds since the epoch."""

    version: int
    parent: int
    at: float
    trained: bool
    """Else it was kept aside, for the checks."""
    reward: float
    weight: float
    words: tuple[words_said.Word, ...]
    tainted: str
    answers: int
    """So many have taught that version."""


async def lessons(db: aiosqlite.Connection, turn: str) -> list[TaughtThere]:
    """Of the trainings that took an answer and have made a version; the newest first."""
    rows = await fetch(db, _LESSONS, (turn,))
    return [
        TaughtThere(
            version=version,
            parent=parent,
            at=at,
            trained=split == "train",
            reward=reward,
            weight=weight,
            words=words_said.load(said),
            tainted=tainted,
            answers=answers,
        )
        for version, parent, at, split, reward, weight, said, tainted, answers in rows
    ]


async def why_not(db: aiosqlite.Connection, pool: Pool, turn: str, language: str = "") -> str:
    """A sentence on why no training takes an answer; empty: nothing is against it."""
    rows = await fetch(db, UNUSED, {**pool.values(), "turn": turn})
    code = rows[0][0] if rows else ""
    if code == "filtered":
        found = findings(await quarantined.reason(db, pool.model, turn), language)
        return ended(explained(clause(say(code, language)), found, language), language)
    return say(code, language) if code else ""
