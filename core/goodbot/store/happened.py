# SPDX-License-Identifier: Apache-2.0
"""What has happened since a mark, one thing after the other: ratings, trainings, versions.

A mark holds, by kind, the last number that was passed, and behind it those that were passed over: ratings of
an answer that is not known yet may still get it. Of those it holds the newest, for a crowd can rate what
never becomes known. What is forgotten meanwhile is not there any more. Neither
is what was said of answers that nobody may rate, of blind choices, and of imported answers.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any, NamedTuple

import aiosqlite

from goodbot.api.feature import Happened, HappenedWanted
from goodbot.api.sentences import words
from goodbot.api.turns import CHOICE
from goodbot.base.redact import redact_beginning
from goodbot.store import codec, importing, people
from goodbot.store.consent import SHARED
from goodbot.store.prompts import QUESTION
from goodbot.store.query import fetch, first, value
from goodbot.store.training_pool import Pool

Mark = dict[str, list[int]]
OPEN = 1000
"""Ratings of unknown answers that a mark keeps open."""
_LONGEST = 32_000
"""Characters of one text that are told."""


class _Kind(NamedTuple):
    """Where one kind of thing is."""

    newest: str
    """Its newest number."""
    columns: str
    """Number, time, and what is told of it."""
    rows: str
    """Of those since the mark all that may be told."""
    names: tuple[str, ...]
    """Of what is told."""


_RATING, _TRAINING, _WORDS = "rating", "training", ("text", "question", "answer")
_CLICKS = ("reaction", "stars")
"""Sources whose second part is no program's own text."""
_WHO = people.IDENTITY_OF.format("e.rater")
# From the oldest that is open on, in order: a long queue is not read whole for each.
_SINCE = (
    "e.seq > :low AND e.seq <= :until AND (+e.seq > :after"
    " OR +e.seq IN (SELECT CAST(value AS INTEGER) FROM json_each(:open)))"
)
_UNKNOWN = f"SELECT e.seq FROM events e WHERE e.turn IS NULL AND {_SINCE} ORDER BY e.seq DESC LIMIT :most"  # noqa: S608
# A version is told once its training has ended; what was made after it waits, too.
_UNDECIDED = (
    "(SELECT min(x.version) FROM adapters x JOIN runs y ON y.id = x.run"
    " WHERE (y.scope, y.state) = (:scope, 'running'))"
)
_VERSIONS = f"a.scope = :scope AND a.version < coalesce({_UNDECIDED}, 1 << 62)"
_COUNT = "SELECT count(*) FROM (SELECT 1{})"
_ENDED = "r.scope = :scope AND r.state <> 'running'"
_KINDS = {
    _RATING: _Kind(
        newest="SELECT coalesce(max(seq), 0) FROM events",
        columns=f"e.seq, e.received_at, e.kind, e.value, e.source, e.turn, t.connector, {_WHO},"  # noqa: S608
        f" (SELECT l.value FROM labels l WHERE (l.turn, l.rater) = (e.turn, {_WHO})),"
        " iif(t.answered_by = '' AND t.model = :model, t.version, NULL),"
        f" e.text, coalesce({QUESTION}, ''), t.response",
        rows=" FROM events e CROSS JOIN turns t ON t.id = e.turn LEFT JOIN retries r ON r.turn = t.id"
        f" WHERE {_SINCE} AND t.scope = :scope AND t.trainable AND t.kind <> '{CHOICE}'"
        f" AND t.account <> '{importing.ACCOUNT}' AND (t.channel_kind = 'shared'"
        f" OR (:private AND t.channel_kind = 'private' AND {SHARED})) ORDER BY e.seq",
        names=("kind", "value", "source", "turn", "platform", "person", "stands", "version", *_WORDS),
    ),
    _TRAINING: _Kind(
        newest=f"SELECT coalesce(max(r.id), 0) FROM runs r WHERE {_ENDED}",  # noqa: S608
        columns="r.id, coalesce(r.finished_at, r.started_at), r.id, r.state, iif(r.state = 'refused',"
        " r.reason, ''), r.parent, (SELECT max(a.version) FROM adapters a WHERE a.run = r.id),"
        " (SELECT count(*) FROM run_items i WHERE i.run = r.id)",
        rows=f" FROM runs r WHERE r.id > :after AND {_ENDED} ORDER BY r.id",
        names=("training", "state", "reason", "parent", "version", "answers"),
    ),
    "version": _Kind(
        newest=f"SELECT coalesce(max(a.version), 0) FROM adapters a WHERE {_VERSIONS}",  # noqa: S608
        columns="a.version, a.created_at, a.version, a.parent, a.run",
        rows=f" FROM adapters a WHERE a.version > :after AND a.tainted = '' AND {_VERSIONS}"
        " ORDER BY a.version",
        names=("version", "parent", "training"),
    ),
}


async def after(
    db: aiosqlite.Connection, pool: Pool, wanted: HappenedWanted, mark: str
) -> tuple[Happened | None, str]:
    """The next thing after a mark, the oldest first, and the mark behind it; None: there is none yet.

    What a mark does not know begins now.
    """
    marks: Mark = json.loads(mark or "{}")
    behind: Mark = {}
    found: list[tuple[Happened, str, list[int]]] = []
    for kind in wanted.kinds:
        newest = await value(db, _KINDS[kind].newest, pool.values())
        behind[kind] = passed = marks.get(kind) or [newest]
        values = _values(pool, wanted, passed, newest)
        # Before the rows: what gets its answer in between is among them, and no unknown one is missed.
        unknown = [seq for (seq,) in await fetch(db, _UNKNOWN, values)] if kind == _RATING else []
        row = first(await fetch(db, f"SELECT {_KINDS[kind].columns}{_KINDS[kind].rows} LIMIT 1", values))
        if row:
            found.append((_told(kind, row, wanted), kind, _behind(row[0], passed, unknown)))
        elif kind == _RATING:
            behind[kind] = [max(newest, passed[0]), *sorted(unknown)]
    if not found:
        return None, json.dumps(behind)
    happened, kind, then = min(found, key=lambda one: one[0].at)
    return happened, json.dumps({**behind, kind: then})


def _behind(number: int, passed: list[int], unknown: list[int]) -> list[int]:
    """The mark of a kind once this number is told: what was passed over and is not told yet stays open."""
    newest = max(number, passed[0])
    open_ = {one for one in passed[1:] if one > number} | {one for one in unknown if one != number}
    return [newest, *sorted(one for one in open_ if one < newest)[-OPEN:]]


async def waiting(db: aiosqlite.Connection, pool: Pool, wanted: HappenedWanted, mark: str) -> int:
    """How many there are after a mark."""
    marks: Mark = json.loads(mark or "{}")
    counts = [
        await value(db, _COUNT.format(_KINDS[kind].rows), _values(pool, wanted, marks[kind]))
        for kind in wanted.kinds
        if kind in marks
    ]
    return sum(counts)


def _values(pool: Pool, wanted: HappenedWanted, passed: list[int], until: int = 1 << 62) -> dict[str, Any]:
    low = min([passed[0], *(one - 1 for one in passed[1:])])
    since = {"after": passed[0], "open": json.dumps(passed[1:]), "low": low, "until": until}
    return {**pool.values(), **since, "private": wanted.private_chats, "most": OPEN}


def _told(kind: str, row: Any, wanted: HappenedWanted) -> Happened:
    number, at, *told = row
    data: Mapping[str, Any] = dict(zip(_KINDS[kind].names, told, strict=True))
    if kind == _RATING and not wanted.words:
        source, _, _ = data["source"].partition(":")
        data = {name: one for name, one in data.items() if name not in _WORDS}
        data = data if source in _CLICKS else {**data, "source": source}
    if kind == _TRAINING:
        data = {**data, "reason": words(*codec.load_reasons(data["reason"]))}
    # Others wait while it is looked through, at each try anew.
    said = (*_WORDS, "source")
    data = {name: redact_beginning(one, _LONGEST) if name in said else one for name, one in data.items()}
    # Of a number alone it would be that of something else, after a backup is back.
    id_ = hashlib.sha256(f"{kind} {number} {at!r}".encode()).hexdigest()[:32]
    return Happened(id=id_, kind=kind, at=at, data=data)
