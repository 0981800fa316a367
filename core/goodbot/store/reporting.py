# SPDX-License-Identifier: Apache-2.0
"""The answers for a report, page by page from the newest on: what was said of each, and what it taught."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from typing import Any

import aiosqlite

from goodbot.api.report import ReportedAnswer
from goodbot.store import codec, judgements, review_queue
from goodbot.store.prompts import QUESTION
from goodbot.store.query import Row, fetch
from goodbot.store.review_queue import Viewer
from goodbot.store.teaching import OPINIONS
from goodbot.store.training_pool import Pool

PAGE = 2000
_SHOWN = 4000
"""Characters of a question and of an answer."""
_OURS = "t.kind = 'main' AND t.model = :model AND t.answered_by = ''"
_TAUGHT = (
    "i.split = 'train' AND i.weight > 0 AND i.run IN (SELECT CAST(value AS INTEGER) FROM json_each(:runs))"
)
_STARS = (
    "(SELECT avg(coalesce(l.stars, l.value)) FROM labels l JOIN events e ON e.seq = l.event_seq"
    " WHERE l.turn = t.id AND (l.stars IS NOT NULL OR e.source = 'stars' OR e.source GLOB 'stars:*'))"
)
_FILTERED = (
    "(SELECT s.reason FROM set_aside s WHERE (s.turn, s.model) = (t.id, :model) AND s.kind = 'filter')"
)
# An answer that several of the runs have learnt from taught once: as the last of them had it.
_ANSWERS = (
    f"SELECT t.seq, t.id, t.created_at, t.connector, t.channel, t.channel_kind,"  # noqa: S608
    f" iif({_OURS}, t.version, NULL), substr(coalesce({QUESTION}, ''), 1, {_SHOWN}),"
    f" substr(t.response, 1, {_SHOWN}), length(t.response),"
    f" (SELECT {OPINIONS} FROM labels l WHERE l.turn = t.id), {_STARS}, k.labels, k.weight,"
    f" {review_queue.SEEN}, (SELECT seconds FROM waits w WHERE w.turn = t.id),"
    f" {_FILTERED}, {judgements.FOUND}"
    " FROM turns t LEFT JOIN retries r ON r.turn = t.id LEFT JOIN run_items k ON k.turn = t.id"
    f" AND k.run = (SELECT max(i.run) FROM run_items i WHERE i.turn = t.id AND {_TAUGHT})"
    f" WHERE t.seq < :before AND t.scope = :scope AND t.response <> '' AND (({_OURS}) OR k.turn IS NOT NULL)"
    " ORDER BY t.seq DESC LIMIT :page"
)


async def newest(db: aiosqlite.Connection) -> int:
    """The place of the newest answer: there are at most so many."""
    return (await fetch(db, "SELECT coalesce(max(seq), 0) FROM turns"))[0][0]


async def page(
    db: aiosqlite.Connection, pool: Pool, viewer: Viewer, runs: Sequence[int], before: int = 1 << 62
) -> tuple[list[ReportedAnswer], int | None]:
    """The newest before a place, and the place where to go on; None: that is all.

    Of our own model all, of others what one of these runs has learnt from.
    """
    values = {
        **pool.values(),
        **viewer.values(),
        "runs": codec.dump_json(list(runs)),
        "before": before,
        "page": PAGE,
    }
    rows = await fetch(db, _ANSWERS, values)
    answers = await asyncio.to_thread(lambda: [_answer(row) for row in rows])
    return answers, rows[-1][0] if len(rows) == PAGE else None


def _answer(row: Row) -> ReportedAnswer:
    _, id_, at, connector, place, kind, version, question, answer, length, *more = row
    said, stars, labels, weight, seen, seconds, filtered, judged = more
    return ReportedAnswer(
        id=id_,
        at=at,
        connector=connector,
        place=place,
        shared=kind == "shared",
        version=version,
        question=question,
        answer=answer,
        length=length,
        ratings=json.loads(said),
        stars=None if stars is None else 3 + 2 * stars,
        taught=_parts(json.loads(labels), weight) if labels else None,
        readable=bool(seen),
        seconds=seconds,
        filtered=filtered or "",
        judged=judged,
    )


def _parts(labels: Mapping[str, Any], weight: float) -> dict[str, float]:
    """What each rater's part of an answer's weight is."""
    return {rater: weight / len(labels) for rater in labels}
