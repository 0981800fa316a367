# SPDX-License-Identifier: Apache-2.0
"""Blind comparisons of a new version with the one before, their pairs of answers, and the choices."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass, replace

import aiosqlite

from goodbot.api.server import Generated
from goodbot.api.turns import Turn
from goodbot.base.sampling import Filters
from goodbot.store import adapters, codec, runs, turns
from goodbot.store.pools import PERSON
from goodbot.store.prompts import ASKABLE
from goodbot.store.query import Row, fetch, records
from goodbot.store.training_pool import Pool

CHOICES = ("old", "new", "same", "skip")
COMPARED = "kept_compared"
"""Why a held version is not live (`AdapterRow.waits`)."""
_NEWEST = 300
"""Answers that are looked through for questions: whoever reads beside it waits."""
CHOSEN = "choice IN ('old', 'new', 'same')"
"""SQL: something is said of a pair."""
OPEN = ("preparing", "asking")
"""States of a comparison that has not come to anything."""
_OPEN = f"state IN {OPEN}"
_COLUMNS = "id, run, old, new, held, seed, state, opened_at"


@dataclass(frozen=True, kw_only=True, slots=True)
class Tally:
    """What was chosen of the pairs of one comparison."""

    new: int = 0
    """The new version's answer was the better one,"""
    old: int = 0
    """or that of the one before."""
    same: int = 0
    skip: int = 0
    open: int = 0
    """Nobody has said anything yet."""

    @property
    def decided(self) -> int:
        """Choices that speak for one of the two."""
        return self.new + self.old


@dataclass(frozen=True, kw_only=True, slots=True)
class Comparison:
    """One round's question."""

    id: int
    run: int
    old: int
    new: int
    held: bool
    """`new` goes live only once this is decided."""
    seed: int
    state: str
    """`preparing` or `asking`; then `passed`, `lost` or `superseded`."""
    opened_at: float
    """Since when owners can say something, of it or of the held one whose place it took; seconds since the
    epoch. While it is being prepared, when its run ended."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Pair:
    """Two answers to one prompt of an owner's."""

    id: int
    comparison: Comparison
    turn: str
    question: str
    old: str
    new: str
    choice: str
    """One of `CHOICES`, empty while nobody has chosen."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Sum:
    """What came of one comparison."""

    old: int
    new: int
    state: str
    tally: Tally


def invited(comparison: Comparison, account: str) -> str:
    """Under which it is kept that somebody was shown the first pair."""
    return f"compare {comparison.id} {account}"


async def open_(
    db: aiosqlite.Connection, pool: Pool, *, run: int, old: int, new: int, held: bool, now: float
) -> None:
    """Ask which is better, in place of what is still open; part of the transaction that ends the run.

    What waits on top of what has waited takes over its day: frequent rounds would wait for ever.
    """
    since = now
    if (before := await current(db, pool)) is not None:
        await close(db, before, "superseded", now)
        asked = before.state == "asking" or await runs.ended_after(db, before.run, before.opened_at)
        if held and before.held and asked:
            since = before.opened_at
    await db.execute(
        "INSERT INTO comparisons (scope, model, run, old, new, held, seed, state, opened_at)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, 'preparing', ?)",
        (pool.scope, pool.model, run, old, new, held, secrets.randbits(31), since),
    )


async def current(db: aiosqlite.Connection, pool: Pool) -> Comparison | None:
    """The one that is open."""
    rows = await fetch(
        db,
        f"SELECT {_COLUMNS} FROM comparisons WHERE (scope, model) = (?, ?) AND {_OPEN}",  # noqa: S608
        (pool.scope, pool.model),
    )
    return _newest(rows)


async def asks(db: aiosqlite.Connection, run: int) -> bool:
    """Whether owners are asked about what this run has made, or will be soon."""
    return bool(await fetch(db, f"SELECT 1 FROM comparisons WHERE run = ? AND {_OPEN}", (run,)))  # noqa: S608


async def last(db: aiosqlite.Connection, pool: Pool, since: float) -> Comparison | None:
    """The newest one, if it was closed after `since`."""
    rows = await fetch(
        db,
        f"SELECT {_COLUMNS} FROM (SELECT * FROM comparisons WHERE (scope, model) = (?, ?)"  # noqa: S608
        " ORDER BY id DESC LIMIT 1) WHERE closed_at > ?",
        (pool.scope, pool.model, since),
    )
    return _newest(rows)


def _newest(rows: list[Row]) -> Comparison | None:
    return next((replace(one, held=bool(one.held)) for one in records(Comparison, rows)), None)


async def ask(db: aiosqlite.Connection, comparison: int, now: float) -> None:
    """Its pairs are made: from now on they are asked, and its day begins unless it has taken one over."""
    await db.execute(
        "UPDATE comparisons SET state = 'asking', opened_at = iif(opened_at <"
        " (SELECT finished_at FROM runs WHERE id = run), opened_at, ?) WHERE id = ? AND state = 'preparing'",
        (now, comparison),
    )


async def close(db: aiosqlite.Connection, comparison: Comparison, state: str, now: float) -> bool:
    """It has come to something; False when it had before. A held version waits for it no more."""
    rows = await db.execute(
        f"UPDATE comparisons SET state = ?, closed_at = ? WHERE id = ? AND {_OPEN}",  # noqa: S608
        (state, now, comparison.id),
    )
    if rows.rowcount and comparison.held:
        await adapters.hold(db, comparison.new, "")
    return rows.rowcount == 1


async def prompts(
    db: aiosqlite.Connection, pool: Pool, accounts: Sequence[str], run: int, limit: int
) -> list[Turn]:
    """The newest different questions of a person's accounts (`connector:id`) that may be learnt from.

    Those that `run` has not learnt come first: on the others it repeats what it was taught. Of their
    last 300 answers; for a person's own version those of private chats alone, where it answers.
    """
    alone = " AND channel_kind = 'private'" if pool.scope.startswith(PERSON) else ""
    rows = await fetch(
        db,
        pool.asked(
            "SELECT id, seq, EXISTS (SELECT 1 FROM run_items i"  # noqa: S608
            " WHERE (i.run, i.turn) = (:run, id) AND i.split = 'train') AS learnt FROM turns WHERE seq IN"
            " (SELECT max(t.seq) FROM (SELECT seq, id, messages FROM turns t WHERE (connector, talker) IN"
            "  (SELECT substr(value, 1, instr(value, ':') - 1), substr(value, instr(value, ':') + 1)"
            "   FROM json_each(:accounts)) AND (t.scope, t.model) = (:scope, :model) AND trainable"
            f"  AND {ASKABLE} AND response <> ''{alone} ORDER BY seq DESC LIMIT :newest) t"
            " WHERE NOT EXISTS (SELECT 1 FROM retries r WHERE r.turn = t.id)"
            " AND NOT EXISTS (SELECT 1 FROM set_aside s WHERE (s.turn, s.model) = (t.id, :model))"
            " GROUP BY json_extract(t.messages, '$[#-1].content')) ORDER BY learnt, 2 DESC LIMIT :limit"
        ),
        {
            "run": run,
            "accounts": codec.dump_json(accounts),
            "limit": limit,
            "newest": _NEWEST,
            **pool.values(),
        },
    )
    found = await turns.some(db, [row[0] for row in rows])
    return [found[row[0]] for row in rows]


async def made(db: aiosqlite.Connection, comparison: int, owner: str) -> set[str]:
    """The turns of which this owner's pairs are made."""
    query = "SELECT turn FROM pairs WHERE (comparison, owner) = (?, ?)"
    return {row[0] for row in await fetch(db, query, (comparison, owner))}


async def add(
    db: aiosqlite.Connection,
    comparison: int,
    owner: str,
    turn: Turn,
    *,
    old: Generated,
    new: Generated,
    temperature: float,
    filters: Filters,
    seed: int,
) -> None:
    """Keep a pair, unless its prompt has lost words meanwhile because somebody was forgotten."""
    there = await turns.get(db, turn.id)
    if there is None or list(there.messages) != list(turn.messages):
        return
    await db.execute(
        "INSERT OR IGNORE INTO pairs (comparison, turn, owner, temperature, seed, prompt_tokens,"
        " old_answer, old_tokens, old_logprobs, new_answer, new_tokens, new_logprobs,"
        " filters, old_lifts, new_lifts) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            comparison,
            turn.id,
            owner,
            new.temperature or temperature,
            seed,
            codec.pack_ints(new.prompt_tokens),
            old.text,
            codec.pack_ints(old.tokens),
            codec.pack_floats(old.logprobs),
            new.text,
            codec.pack_ints(new.tokens),
            codec.pack_floats(new.logprobs),
            codec.dump_filters(filters if new.filters is None else new.filters),
            codec.pack_floats(old.lifts),
            codec.pack_floats(new.lifts),
        ),
    )


async def pairs(db: aiosqlite.Connection, comparison: Comparison, accounts: Sequence[str]) -> list[Pair]:
    """All pairs that a person with these accounts is asked about, in their order."""
    rows = await fetch(
        db,
        "SELECT p.id, p.turn, json_extract(t.messages, '$[#-1].content'), p.old_answer, p.new_answer,"
        " coalesce(p.choice, '') FROM pairs p JOIN turns t ON t.id = p.turn WHERE p.comparison = ?"
        " AND p.owner IN (SELECT value FROM json_each(?)) ORDER BY p.id",
        (comparison.id, codec.dump_json(accounts)),
    )
    return records(Pair, rows, comparison=comparison)


async def choose(db: aiosqlite.Connection, pair: Pair, choice: str, who: str, now: float) -> bool:
    """Keep a choice; False when one was made before, or it is too late.

    It comes after the others of its comparison, though our clock was set back since.
    """
    rows = await db.execute(
        "UPDATE pairs SET choice = ?, chosen_by = ?, chosen_at = max(?, (SELECT"  # noqa: S608
        " coalesce(max(chosen_at) + 0.000001, 0) FROM pairs WHERE comparison = ?)) WHERE id = ?"
        f" AND choice IS NULL AND comparison IN (SELECT id FROM comparisons WHERE {_OPEN})",
        (choice, who, now, pair.comparison.id, pair.id),
    )
    return rows.rowcount == 1


async def tally(db: aiosqlite.Connection, comparison: int) -> Tally:
    """What was chosen so far, by all owners."""
    query = "SELECT coalesce(choice, 'open'), count(*) FROM pairs WHERE comparison = ? GROUP BY 1"
    return Tally(**dict(await fetch(db, query, (comparison,))))


async def sums(
    db: aiosqlite.Connection, pool: Pool, *, since: float = 0.0, until: float = 1e18, limit: int = 5
) -> list[Sum]:
    """The last comparisons of which something was chosen in that span, the newest first."""
    rows = await fetch(
        db,
        "SELECT c.old, c.new, c.state, sum(p.choice = 'new'), sum(p.choice = 'old'),"
        " sum(p.choice = 'same'), sum(p.choice = 'skip') FROM comparisons c"
        " JOIN pairs p ON p.comparison = c.id WHERE (c.scope, c.model) = (?, ?)"
        " AND p.chosen_at >= ? AND p.chosen_at < ? GROUP BY c.id ORDER BY c.id DESC LIMIT ?",
        (pool.scope, pool.model, since, until, limit),
    )
    return [
        Sum(old=old, new=new, state=state, tally=Tally(new=better, old=worse, same=same, skip=skip))
        for old, new, state, better, worse, same, skip in rows
    ]
