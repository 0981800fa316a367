# SPDX-License-Identifier: Apache-2.0
"""What raters said of their answers beside a rating, as runs take it and remember it.

A chip (what was wrong, asked for with another answer), a reason, a better answer. Of an answer that a run
takes counts what was said by those whose rating the run takes there: so words end where their rating ends
(undone, quarantined, forgotten, outvoted, left out), and weigh what is their rater's of the answer's weight:
who is held to a share of a round is held to it with words. A run remembers whose they are and where they
stand, never what they say.

Of an answer that a judge calls bad it is the message that came next, as its person has written it.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import aiosqlite

from goodbot.api.hindsight import CHIPS, RATERS, REASON, hindsight
from goodbot.api.judge import JUDGE
from goodbot.api.labels import Opinion
from goodbot.api.turns import CHOICE
from goodbot.store import codec, people, placing, rollback_window
from goodbot.store.query import fetch, value

_IDENTITY = people.IDENTITY_OF
_LAST = "json_extract({0}.messages, '$[#-1].{1}')"
_TYPED = (
    f"SELECT e.turn, {_IDENTITY.format('e.rater')}, e.kind, e.seq, '' FROM events e"  # noqa: S608
    " WHERE e.turn IN (SELECT value FROM json_each(:turns)) AND e.kind IN ('comment', 'better')"
    f" AND e.text <> '' AND {rollback_window.STANDS} ORDER BY e.time_ms, e.tiebreak, e.seq"
)
# A chip is no event: when it was pressed says what took it back, and which quarantine it came in.
_CHIPS = (
    f"SELECT c.instead_of, {_IDENTITY.format('c.asked_by')}, 'chip', c.time_ms, c.hint FROM retries c"  # noqa: S608
    " WHERE c.instead_of IN (SELECT value FROM json_each(:turns))"
    " ORDER BY c.time_ms, c.tiebreak"
)
# By its own clock or as it came in: that of another clock says nothing, and ours may have been set.
_CHIP_GONE = (
    f"WITH chip AS (SELECT {placing.HEARD.format('c')} AS heard, {placing.OWN.format('c')} AS own,"  # noqa: S608
    "  t.created_at, t.connector, t.account FROM retries c JOIN turns t ON t.id = c.turn"
    "  WHERE (c.instead_of, c.time_ms) = (:turn, :at))"
    " SELECT EXISTS (SELECT 1 FROM events r LEFT JOIN chip c"
    f" WHERE r.turn = :turn AND {_IDENTITY.format('r.rater')} = :rater"
    " AND r.kind = 'retract' AND r.source = '' AND r.retracts = '' AND iif(c.heard IS NULL OR (c.own"
    f"  AND {placing.OWN.format('r')} AND (r.connector, r.account) = (c.connector, c.account)"
    "  AND r.time_ms <> :at), r.time_ms >= :at, r.seq > c.heard))"
    f" OR EXISTS (SELECT 1 FROM quarantines q LEFT JOIN chip c WHERE"
    f" {rollback_window.OF_IT.format(':turn')}"
    f" AND (q.rater IS NULL OR {_IDENTITY.format('q.rater')} = :rater) AND iif(c.heard IS NULL,"
    "  :at BETWEEN 1000 * q.since AND 1000 * q.made_at,"
    "  (c.created_at >= q.since OR c.heard >= q.first_event_seq) AND (c.heard < q.last_event_seq"
    "  OR (c.heard = q.last_event_seq AND c.created_at <= q.made_at))))"
)
# It came at the time that the judgement has. The same question again says nothing of what was wrong.
_NEXT = (
    "SELECT j.turn, j.judge, min(n.seq) FROM judgements j JOIN turns t ON t.id = j.turn"  # noqa: S608
    " JOIN turns n INDEXED BY turns_by_age ON n.created_at = j.at AND n.seq > t.seq"
    " AND n.kind = 'main' AND n.trainable"
    " AND (n.connector, n.account, n.channel, n.thread, n.talker)"
    "  = (t.connector, t.account, t.channel, t.thread, t.talker)"
    " WHERE j.turn IN (SELECT value FROM json_each(:turns)) AND j.value < 0 AND j.credit_of IS NULL"
    f" AND length({_LAST.format('n', 'content')}) BETWEEN 1 AND {REASON}"
    f" AND {_LAST.format('n', 'role')} = 'user' AND lower(trim({_LAST.format('n', 'content')})) <>"
    f"  lower(trim({_LAST.format('t', 'content')})) GROUP BY j.turn, j.judge"
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Word:
    """One thing that was said. `rater` is the person, `connector:id`; of a correction the judge."""

    kind: str
    """`chip`, `comment` (a reason), `better`, or `next` (the message that came next)."""
    rater: str
    at: int
    """The ledger's event that holds the text, of a correction the answer that it was a question of; of a chip
    when it was pressed, in ms by its platform."""
    hint: str = ""
    """Of a chip: a key of `goodbot.api.hindsight.CHIPS`."""
    weight: float = 1.0
    """What a run lets them weigh: their rater's part of the answer's weight there."""


def dump(words: Sequence[Word]) -> str:
    """As `run_items.words` holds them."""
    return codec.dump_json([(word.kind, word.rater, word.at, word.hint, word.weight) for word in words])


def load(column: str) -> tuple[Word, ...]:
    """Of `run_items.words`."""
    return tuple(
        Word(kind=kind, rater=rater, at=at, hint=hint, weight=weight)
        for kind, rater, at, hint, weight in json.loads(column)
    )


async def lost(db: aiosqlite.Connection, turn: str, before: Sequence[Word]) -> bool:
    """Whether one of these words of a turn was taken back or left out since."""
    if not before:
        return False
    found = await said(db, [turn]), await corrections(db, [turn])
    standing = {(word.kind, word.at) for words in found for word in words.get(turn, ())}
    for word in before:
        gone = await _gone(db, turn, word) if word.kind == "chip" else (word.kind, word.at) not in standing
        if gone:
            return True
    return False


@dataclass(frozen=True, kw_only=True, slots=True)
class Texts:
    """What words of one answer say, each with its weight; without what comes to nothing."""

    said: tuple[tuple[str, float], ...] = ()
    """Of each rater, as `goodbot.api.hindsight` puts it: in one text with others a rater's words would weigh
    as all of them do."""
    better: tuple[tuple[str, float], ...] = ()
    """What would have been a better answer: at most one."""


async def texts(db: aiosqlite.Connection, of: Mapping[str, Sequence[Word]]) -> dict[str, Texts]:
    """Turn → what its words say."""
    told = [word for words in of.values() for word in words if word.kind != "chip"]
    rows = await fetch(
        db,
        "SELECT 0, seq, text FROM events WHERE seq IN (SELECT CAST(value AS INTEGER) FROM"  # noqa: S608
        " json_each(:typed)) UNION ALL"
        f" SELECT 1, t.seq, {_LAST.format('t', 'content')} FROM turns t"
        " WHERE t.seq IN (SELECT CAST(value AS INTEGER) FROM json_each(:next))",
        {
            "typed": codec.dump_json([word.at for word in told if word.kind != "next"]),
            "next": codec.dump_json([word.at for word in told if word.kind == "next"]),
        },
    )
    stored = {(bool(written), int(seq)): str(text) for written, seq, text in rows}
    made: dict[str, Texts] = {}
    for turn, words in of.items():
        by_rater: defaultdict[str, list[Word]] = defaultdict(list)
        for word in words:
            by_rater[word.rater].append(word)
        said = [(_text(own, stored), own[0].weight) for own in by_rater.values()]
        better = [(stored.get((False, w.at), "").strip(), w.weight) for w in words if w.kind == "better"]
        made[turn] = Texts(
            said=tuple(one for one in said if one[0]), better=tuple(one for one in better if one[0])
        )
    return made


def _text(words: Sequence[Word], stored: Mapping[tuple[bool, int], str]) -> str:
    by_kind: defaultdict[str, list[str]] = defaultdict(list)
    for word in words:
        by_kind[word.kind].append(word.hint or stored.get((word.kind == "next", word.at), ""))
    return hindsight(chips=by_kind["chip"], reasons=[*by_kind["comment"], *by_kind["next"]])


async def taught(db: aiosqlite.Connection) -> list[str]:
    """The turns of which runs have taken words."""
    return [row[0] for row in await fetch(db, "SELECT DISTINCT turn FROM run_items WHERE words <> '[]'")]


async def counts(db: aiosqlite.Connection, runs: Sequence[int]) -> dict[str, int]:
    """By the kinds of `Word`: of how many answers these runs have learnt such words; and `choice`."""
    rows = await fetch(
        db,
        "WITH items AS (SELECT turn, words FROM run_items WHERE run IN (SELECT CAST(value AS"  # noqa: S608
        " INTEGER) FROM json_each(?))"
        " AND split = 'train' AND weight > 0)"
        " SELECT json_extract(w.value, '$[0]'), count(DISTINCT i.turn) FROM items i, json_each(i.words) w"
        f" GROUP BY 1 UNION ALL SELECT '{CHOICE}', count(DISTINCT i.turn) AS n FROM items i"
        f" JOIN turns t ON t.id = i.turn WHERE t.kind = '{CHOICE}' HAVING count(DISTINCT i.turn) >"
        " 0 ORDER BY 1",
        (json.dumps(list(runs)),),
    )
    return dict(rows)


async def said(db: aiosqlite.Connection, turns: Sequence[str]) -> dict[str, list[Word]]:
    """Turn → what stands of what was said of it, each kind in the order in which it was."""
    found: defaultdict[str, list[Word]] = defaultdict(list)
    values = {"turns": codec.dump_json(list(turns))}
    typed, chips = await fetch(db, _TYPED, values), await fetch(db, _CHIPS, values)
    for turn, rater, kind, at, hint in (*_as_it_came(typed), *chips):
        word = Word(kind=kind, rater=rater, at=at, hint=hint)
        if kind != "chip" or (hint in CHIPS and not await _gone(db, turn, word)):
            found[turn].append(word)
    return found


async def corrections(db: aiosqlite.Connection, turns: Sequence[str]) -> dict[str, list[Word]]:
    """Turn → the message after it, of those that a judge calls bad by such a message.

    At most `REASON` characters long: the beginning of a longer one is no correction.
    """
    rows = await fetch(db, _NEXT, {"turns": codec.dump_json(list(turns))})
    return {turn: [Word(kind="next", rater=f"{JUDGE}:{judge}", at=at)] for turn, judge, at in rows}


def _as_it_came(typed: Sequence[Any]) -> list[Any]:
    """Of each person in the order in which they said it; of several as it came: no clocks are compared."""
    places: defaultdict[tuple[str, str], list[int]] = defaultdict(list)
    for turn, rater, _, seq, _ in sorted(typed, key=lambda row: -row[3]):
        places[turn, rater].append(seq)
    return [row for _, row in sorted((places[row[0], row[1]].pop(), row) for row in typed)]


async def _gone(db: aiosqlite.Connection, turn: str, chip: Word) -> bool:
    rater = await people.identity(db, chip.rater)  # accounts that were linked since speak for one person
    return bool(await value(db, _CHIP_GONE, {"turn": turn, "rater": rater, "at": chip.at}))


def heard(said: Sequence[Word], labels: Mapping[str, Opinion], weight: float) -> tuple[Word, ...]:
    """What was said by those whose labels count, each at an equal part of the answer's `weight`.

    Chips of who calls it bad, of better answers the last; of the first `RATERS` who said something.
    """
    kept = [
        replace(w, weight=weight / len(labels))
        for w in said
        if w.rater in labels and (w.kind != "chip" or _bad(labels[w.rater]))
    ]
    first = [*dict.fromkeys(w.rater for w in kept)][:RATERS]
    kept = [w for w in kept if w.rater in first]
    last = [w for w in kept if w.kind == "better"][-1:]
    return (*(w for w in kept if w.kind != "better"), *last)


def may_be_heard(said: Sequence[Word], labels: Mapping[str, Opinion]) -> list[Word]:
    """What of it was typed that `heard` may let through, whichever of these labels it is given."""
    own = [w for w in said if w.rater in labels and w.kind != "chip"]
    last = {w.rater: w for w in own if w.kind == "better"}
    return [w for w in own if w.kind != "better" or w is last[w.rater]]


def _bad(opinion: Opinion) -> bool:
    return (opinion[0] if isinstance(opinion, list) else opinion) < 0
