# SPDX-License-Identifier: Apache-2.0
"""Answers of every connector as an inbox shows them, and who may see which.

An owner sees what was said in shared channels, their own chats, and the private chats of those who
share theirs; a rater the first two; nobody else anything. What a plugin has kept out of training is
nobody's to rate, and nothing is kept of an encrypted room.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import aiosqlite

from goodbot.api.events import ChannelKind, Waiting
from goodbot.api.labels import is_stars
from goodbot.api.turns import CHOICE
from goodbot.store import codec, people, predictions
from goodbot.store.prompts import QUESTION, STANDING
from goodbot.store.query import Row, fetch, value

_WHO = "t.connector || ':' || t.talker"
SEEN = (
    f"t.trainable AND t.kind <> '{CHOICE}' AND t.response <> '' AND t.channel_kind <> 'encrypted' AND ("  # noqa: S608
    f"t.channel_kind = 'shared' OR {_WHO} IN (SELECT value FROM json_each(:accounts))"
    f" OR (:owner AND {_WHO} IN (SELECT person FROM shares)))"
)
OPINION = f"JOIN labels l ON l.turn = t.id AND l.rater = {people.IDENTITY}"
_LINES = (
    f"SELECT t.seq, t.id, t.connector, t.channel_kind, {QUESTION} AS question, t.response,"  # noqa: S608
    " t.created_at, t.version, l.value, l.stars,"
    " (SELECT e.source FROM events e WHERE e.seq = l.event_seq) AS source, {sureness} AS sureness"
    " FROM {source} {opinion} LEFT JOIN retries r ON r.turn = t.id"
    f" WHERE {{rated}} AND {SEEN} AND {STANDING} AND {{below}}"
    " AND :connector IN ('', t.connector) AND t.created_at >= :since ORDER BY {order} LIMIT :searched"
)
_NEWEST = {"sureness": "0", "below": "t.seq < :below", "order": "t.seq DESC"}
_UNSURE = {
    "sureness": predictions.SURENESS,
    "below": f"({predictions.SURENESS}, -t.seq) > (:surer, -:below)",
    "order": f"{predictions.SURENESS}, t.seq DESC",
}
_RATINGS = {False: (f"LEFT {OPINION}", "l.value IS NULL"), True: (OPINION, "l.value IS NOT NULL")}
QUEUED = "(SELECT turn FROM queue_answers WHERE queue = :queue) q CROSS JOIN turns t ON t.id = q.turn"
"""SQL: the answers of one queue, found by their ids, however old they are."""
_PLACE = f"SELECT t.seq, {predictions.SURENESS} FROM turns t LEFT {predictions.ALSO_PREDICTED} WHERE t.id = ?"  # noqa: S608
"""SQL: where a page ends."""
_NO_END = 1 << 62
_SEARCHED = 5000
"""So many of the newest answers are looked through for words: whoever reads beside it waits."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Viewer:
    """Who looks. `accounts` are those whose own chats they are (`connector:id`)."""

    person: str
    """Whose ratings are theirs, `connector:id`."""
    accounts: tuple[str, ...]
    owner: bool

    def values(self) -> dict[str, object]:
        """The parameters of the queries here."""
        return {"person": self.person, "owner": self.owner, "accounts": codec.dump_json(self.accounts)}


@dataclass(frozen=True, kw_only=True, slots=True)
class Filter:
    """What somebody looks for; see `goodbot.api.host.ConnectorHost.inbox`."""

    connector: str = ""
    since: float | None = None
    text: str = ""
    rated: bool = False
    before: str = ""
    queue: int = 0
    """Only answers of this queue; that it is theirs is the caller's affair. 0: of all."""
    unsure: str = ""
    """A base model: what nobody has rated and it predicts, the least sure first; empty: the newest first."""


async def page(db: aiosqlite.Connection, viewer: Viewer, wanted: Filter, limit: int) -> Sequence[Waiting]:
    """The newest `limit` of them, or the least sure; of an answer and its retries the one that stands.

    Words are looked for in the newest 5000 only.
    """
    found = await fetch(db, _PLACE, (wanted.before,))
    if wanted.before and not found:  # it has expired, and so have those after it
        return ()
    below, surer = found[0] if found else (_NO_END, None)
    if wanted.unsure and found and surer is None:  # what is predicted was forgotten meanwhile
        return ()
    rows = await fetch(
        db,
        f"SELECT * FROM ({_lines(wanted)}) WHERE :text = ''"  # noqa: S608
        " OR instr(folded(question || char(10) || response), :text)"
        " ORDER BY sureness, seq DESC LIMIT :limit",
        {
            **viewer.values(),
            "connector": wanted.connector,
            "queue": wanted.queue,
            "since": wanted.since or 0.0,
            "below": below,
            "surer": -1.0 if surer is None else surer,
            "predicting": wanted.unsure,
            "text": wanted.text.casefold(),
            "limit": limit,
            "searched": _SEARCHED if wanted.text else limit,
        },
    )
    return [_waiting(row) for row in rows]


def _lines(wanted: Filter) -> str:
    opinion, rated = _RATINGS[wanted.rated]
    source = QUEUED if wanted.queue else "turns t"
    if not wanted.unsure:
        return _LINES.format(source=source, opinion=opinion, rated=rated, **_NEWEST)
    source = f"{QUEUED} {predictions.ALSO_PREDICTED}" if wanted.queue else predictions.PREDICTED
    rated = f"{rated} AND {predictions.UNRATED}"
    return _LINES.format(source=source, opinion=opinion, rated=rated, **_UNSURE)


async def connectors(db: aiosqlite.Connection, viewer: Viewer) -> list[str]:
    """Of which there are answers that they may see, rated or not; their names are looked up one by one."""
    rows = await fetch(
        db,
        "WITH RECURSIVE names (name) AS (SELECT min(connector) FROM turns UNION ALL"  # noqa: S608
        " SELECT (SELECT min(connector) FROM turns WHERE connector > name) FROM names"
        " WHERE name IS NOT NULL)"
        " SELECT name FROM names WHERE name IS NOT NULL AND EXISTS (SELECT 1 FROM turns t"
        f" LEFT JOIN retries r ON r.turn = t.id WHERE t.connector = name AND {SEEN} AND {STANDING})",
        viewer.values(),
    )
    return [name for (name,) in rows]


def _waiting(row: Row) -> Waiting:
    _, turn, connector, kind, question, answer, created_at, version, label, stars, source, _ = row
    if label is not None and stars is None and is_stars(source):
        label, stars = None, label  # the stars are the label where there is no thumb
    return Waiting(
        turn=turn,
        connector=connector,
        kind=ChannelKind(kind),
        question=question,
        answer=answer,
        created_at=created_at,
        version=version,
        label=label,
        stars=stars,
    )


async def visible(db: aiosqlite.Connection, viewer: Viewer, turn: str) -> bool:
    """Whether this answer is one that they may see."""
    return bool(
        await value(
            db,
            f"SELECT EXISTS (SELECT 1 FROM turns t WHERE t.id = :turn AND {SEEN})",  # noqa: S608
            {**viewer.values(), "turn": turn},
        )
    )
