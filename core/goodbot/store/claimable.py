"""What a run may claim: rated, consented answers that it has not learnt from yet.

Those of its own base model once; those of other models when they are replayed on it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

import aiosqlite

from goodbot.store import turns
from goodbot.store.query import fetch, first
from goodbot.turns import Turn

# Private words train what others talk to only with their speaker's consent; where nobody else
# talks there is nobody to leak to. `:owners` is a JSON list of the people whom the config names.
_PERSON = "t.connector || ':' || t.talker"
_OWNERS = (
    "(SELECT value FROM json_each(:owners) UNION SELECT person FROM grants WHERE role = 'owner')"
)
_CONSENT = (
    f"(t.channel_kind = 'shared' OR {_PERSON} IN (SELECT person FROM shares)"  # noqa: S608
    f" OR ({_PERSON} IN {_OWNERS} AND NOT EXISTS"
    f" (SELECT 1 FROM talkers WHERE scope = :scope AND person NOT IN {_OWNERS})))"
)
_LABELLED = "t.scope = :scope AND t.trainable AND t.rated > 0"
# Answers of another base model are no on-policy rollouts of this one.
_OWN = f"{_LABELLED} AND t.model = :model AND t.spent IS NULL"
_LEARNT = (
    "SELECT 1 FROM run_items i JOIN runs r ON r.id = i.run"
    " WHERE i.turn = t.id AND r.model = :model AND r.state IN ('running', 'activated')"
)
# They are replayed once, at the switch to this one (`model_switch.py`) …
_FOREIGN = f"{_LABELLED} AND t.model <> :model AND NOT EXISTS ({_LEARNT})"
# … and again when an undo has released the run that did it.
_OWED = (
    f"{_FOREIGN} AND t.id IN (SELECT i.turn FROM runs r JOIN run_items i ON i.run = r.id"  # noqa: S608
    " WHERE r.replay = 1 AND (r.scope, r.model) = (:scope, :model) AND r.state = 'released')"
)
_WHO = "SELECT t.id, t.connector, t.talker, t.channel_kind FROM turns t"
# What is counted leaves ties out (`rated` 2); what is claimed, the reward policy decides.
_COUNTED = " AND t.rated = 1"
_AVAILABLE = [
    f"SELECT 1 FROM turns t WHERE {which}{_COUNTED} AND {_CONSENT}"  # noqa: S608
    for which in (_OWN, _OWED)
]
COUNT = f"SELECT count(*) FROM ({' UNION ALL '.join(_AVAILABLE)} LIMIT :limit)"  # noqa: S608
"""How many turns a run could claim now, counted up to `:limit`; the others are `Pool.values`."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Candidate:
    """A turn that a run may claim: its labels, and whether it has been held out before."""

    turn: Turn
    labels: Mapping[str, float]
    held_out_before: bool
    seq: int
    """The newest event behind its labels; candidates are ordered by it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Standing:
    """Where the next training stands."""

    available: int
    """Rated turns that no run has used."""
    waiting_for_consent: int
    """Rated turns of private chats whose speaker has not shared them."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Pool:
    """Where ratings may be claimed from: a scope, a base model, and who the owners are."""

    scope: str
    model: str
    owners: tuple[str, ...]

    def values(self) -> dict[str, str]:
        """The parameters of the queries here."""
        return {"scope": self.scope, "model": self.model, "owners": json.dumps(self.owners)}


async def standing(db: aiosqlite.Connection, pool: Pool) -> Standing:
    """Count what a run could claim now."""
    parts = [
        f"SELECT {_CONSENT} AS consent FROM turns t WHERE {which}{_COUNTED}"  # noqa: S608
        for which in (_OWN, _OWED)
    ]
    rows = await fetch(
        db,
        f"SELECT coalesce(sum(consent), 0), count(*) FROM ({' UNION ALL '.join(parts)})",  # noqa: S608
        pool.values(),
    )
    available, rated = first(rows) or (0, 0)
    return Standing(available=available, waiting_for_consent=rated - available)


async def candidates(
    db: aiosqlite.Connection, pool: Pool, *, replay: bool = False
) -> list[Candidate]:
    """All that a run may claim now, in the order of their rating events.

    With `replay` also the answers of other base models that this one has not learnt from.
    """
    others = _FOREIGN if replay else _OWED
    rows = await fetch(
        db,
        "SELECT t.id, json_group_object(l.rater, l.value), max(l.event_seq),"  # noqa: S608
        " EXISTS (SELECT 1 FROM run_items i JOIN runs r ON r.id = i.run WHERE i.turn = t.id"
        " AND i.split = 'held_out' AND r.model = :model AND r.state IN ('activated', 'refused'))"
        f" FROM ({_WHO} WHERE {_OWN} UNION ALL {_WHO} WHERE {others}) t"
        f" JOIN labels l ON l.turn = t.id WHERE {_CONSENT}"
        " GROUP BY t.id ORDER BY max(l.event_seq)",
        pool.values(),
    )
    found = [tuple(row) for row in rows]
    result: list[Candidate] = []
    for turn_id, labels, seq, held in found:
        turn = await turns.get(db, turn_id)
        assert turn is not None  # noqa: S101  same transaction
        result.append(
            Candidate(turn=turn, labels=json.loads(labels), held_out_before=bool(held), seq=seq)
        )
    return result


async def replayable(db: aiosqlite.Connection, pool: Pool) -> int:
    """How many rated answers of other base models could be replayed on this one."""
    rows = await fetch(
        db,
        f"SELECT count(*) FROM turns t WHERE {_FOREIGN}{_COUNTED} AND {_CONSENT}",  # noqa: S608
        pool.values(),
    )
    (count,) = first(rows) or (0,)
    return count
