# SPDX-License-Identifier: Apache-2.0
"""Whose an answer is beside everybody's: a person's, a channel's or a team's, each with adapters of its own.

A scope is a key, in `turns.own` and in `scope` of runs, versions and pointers. The shared scope stands beside
them (`pools.SHARED`): every answer may teach it, by the rules of consent. What it learns of an answer
and what the answer's own scope does are two things: neither uses the answer up for the other.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from dataclasses import replace

import aiosqlite

from goodbot.api.events import ChannelKind, ChannelRef
from goodbot.config.sections import ScopeKind
from goodbot.store import adapters, notes, people, runs, settings
from goodbot.store.pools import PERSON, SHARED, Pool
from goodbot.store.query import fetch

TEAMS = ("slack", "teams")
"""The platforms that tell teams apart: there an account of goodbot is one in a workspace, or in a tenant."""
_CHANNEL = "channel "
_NOBODY = "forgotten"
"""The scope of what was learnt from somebody who is forgotten, until its files are gone."""


async def of(db: aiosqlite.Connection, kind: ScopeKind, channel: ChannelRef, person: str) -> str:
    """The key of the scope that an answer there, to that person (`connector:id`), has; empty: none."""
    if kind == "person":
        return f"{PERSON}{await people.identity(db, person)}"
    if kind == "channel":
        return f"{_CHANNEL}{notes.channel_key(channel)}"
    if kind == "team" and channel.connector in TEAMS:
        return f"team {channel.connector} {channel.account}"
    return ""


def open_to(key: str) -> bool:
    """Whether what is learnt in that scope answers nobody but those who have said it.

    A team's adapter answers people who were not there: in it words of private chats need consent.
    """
    return not key.startswith("team ")


def answers_in(key: str, channel: ChannelRef) -> bool:
    """Whether a scope's version may answer there.

    A person's may know what they have said in private: where others read the answer, the shared one speaks.
    """
    return not key.startswith(PERSON) or channel.kind is ChannelKind.PRIVATE


async def active(db: aiosqlite.Connection, key: str, model: str) -> int:
    """The version of a scope's own that answers there; 0: none, or one that may not be used."""
    version = await adapters.pointer(db, key, model)
    return 0 if await adapters.tainted(db, version) else version


async def answering(db: aiosqlite.Connection) -> set[int]:
    """The versions of scopes beside the shared one that answer somebody."""
    return {v for (v,) in await fetch(db, "SELECT version FROM pointers WHERE scope <> ?", (SHARED,))}


async def held(db: aiosqlite.Connection) -> set[int]:
    """The shared versions that are a part of what answers in some scope."""
    rows = await fetch(
        db,
        "SELECT a.metrics FROM pointers p JOIN adapters a ON a.version = p.version WHERE p.scope <> ?",
        (SHARED,),
    )
    return {int(json.loads(metrics).get(adapters.SHARED_PART, 0)) for (metrics,) in rows}


async def surplus(db: aiosqlite.Connection, keep: int) -> list[str]:
    """The scopes of which more than `keep` versions lie on the disk."""
    rows = await fetch(
        db,
        "SELECT scope FROM adapters WHERE scope NOT IN (?, ?) AND erased_at IS NULL"
        " GROUP BY scope HAVING count(*) > ?",
        (SHARED, _NOBODY, keep),
    )
    return [key for (key,) in rows]


async def shared(db: aiosqlite.Connection, model: str) -> int:
    """The shared version that answers everybody, or the nearest before it that is in good standing."""
    rows = {row.version: row for row in await adapters.all_of(db, SHARED)}
    version = await adapters.pointer(db, SHARED, model)
    while version in rows and rows[version].tainted:
        version = rows[version].parent
    return version


async def asked(db: aiosqlite.Connection, model: str, since: float) -> list[str]:
    """The scopes of people of which a blind question is open, or was closed after `since`."""
    rows = await fetch(
        db,
        "SELECT DISTINCT scope FROM comparisons WHERE model = ? AND scope <> ?"
        " AND (closed_at IS NULL OR closed_at > ?) ORDER BY scope",
        (model, SHARED, since),
    )
    return [key for (key,) in rows if key.startswith(PERSON)]


async def was_asked(db: aiosqlite.Connection, key: str, model: str) -> bool:
    """Whether a scope has ever had a blind question."""
    query = "SELECT 1 FROM comparisons WHERE (scope, model) = (?, ?) LIMIT 1"
    return bool(await fetch(db, query, (key, model)))


async def held_up(db: aiosqlite.Connection) -> list[str]:
    """The scopes of which a version waits for the model to be back."""
    rows = await fetch(
        db,
        "SELECT DISTINCT scope FROM adapters WHERE scope <> ? AND waits = ? AND tainted = ''",
        (SHARED, adapters.AWAY),
    )
    return [key for (key,) in rows]


async def behind(db: aiosqlite.Connection, model: str, kind: ScopeKind) -> list[tuple[str, int, int]]:
    """The scopes whose version holds another shared one than answers everybody, with both of these.

    Without those of which a question is open or a version waits: either is about the version of now.
    """
    now = await adapters.pointer(db, SHARED, model)
    if await adapters.tainted(db, now):
        return []  # it is about to be replaced
    rows = await fetch(
        db,
        "SELECT p.scope, a.version, a.metrics FROM pointers p JOIN adapters a ON a.version = p.version"
        " WHERE p.scope <> ? AND p.model = ? AND a.tainted = ''"
        " AND NOT EXISTS (SELECT 1 FROM comparisons c"
        " WHERE (c.scope, c.model) = (p.scope, p.model) AND c.closed_at IS NULL)"
        " AND NOT EXISTS (SELECT 1 FROM adapters w WHERE (w.scope, w.model) = (p.scope, p.model)"
        " AND w.waits <> '' AND w.tainted = '' AND w.erased_at IS NULL)"
        " ORDER BY p.updated_at",
        (SHARED, model),
    )
    parts = [
        (key, version, json.loads(metrics).get(adapters.SHARED_PART, now))
        for key, version, metrics in rows
        if _is(kind, key)
    ]
    return [(key, version, now) for key, version, part in parts if part != now]


def _is(kind: ScopeKind, key: str) -> bool:
    """Whether a scope is of the kind that is set now; what another setting has left answers nobody."""
    return key.startswith(f"{kind} ")


async def waiting(db: aiosqlite.Connection, model: str, kind: ScopeKind, enough: int) -> list[str]:
    """The scopes with a run under way, then those with so many ratings that they have not learnt from.

    The more there are, the sooner.
    """
    rows = await fetch(
        db,
        "SELECT scope, 0 FROM runs WHERE (model, state) = (:model, 'running') AND scope <> :shared"
        " UNION ALL SELECT * FROM (SELECT own, count(*) FROM turns WHERE own IS NOT NULL AND model = :model"
        " AND rated > 0 AND rated = 1 AND trainable AND own_spent IS NULL"
        " GROUP BY own HAVING count(*) >= :enough"
        " ORDER BY count(*) DESC, own)",
        {"model": model, "enough": enough, "shared": SHARED},
    )
    return list(dict.fromkeys(key for key, _ in rows if _is(kind, key)))


async def regroup(db: aiosqlite.Connection, persons: Sequence[str]) -> None:
    """These accounts are one person from now on, or were until now: so are their answers.

    Where that is news, the answers teach anew, and what they taught under the other name answers nobody.
    """
    keys = {who: f"{PERSON}{await people.identity(db, who)}" for who in persons}
    for who, key in keys.items():
        connector, _, id_ = who.partition(":")
        await db.execute(
            "UPDATE turns SET own = ?, own_spent = NULL"
            " WHERE (connector, talker) = (?, ?) AND substr(own, 1, ?) = ? AND own <> ?",
            (key, connector, id_, len(PERSON), PERSON, key),
        )
        if (before := f"{PERSON}{who}") not in keys.values():
            running = await fetch(db, "SELECT id FROM runs WHERE (scope, state) = (?, 'running')", (before,))
            await runs.let_go(db, [run for (run,) in running], "kept_joined")
            await db.execute("DELETE FROM comparisons WHERE scope = ? AND closed_at IS NULL", (before,))
            await db.execute("DELETE FROM pointers WHERE scope = ?", (before,))


async def forget(
    db: aiosqlite.Connection, scope: str, model: str, persons: Sequence[str], stale: Collection[int]
) -> list[int]:
    """Nothing answers any more that these people alone have taught, and what `stale` runs made is withdrawn.

    Which versions went that were in good standing. Nothing names their scopes any more; of all others the
    pointer of `scope` and `model` stays. Part of forgetting them, before the rows go that say who taught.
    """
    gone: list[int] = []
    for key in [key for who in persons for key in (f"{PERSON}{who}", *await _private_chats(db, who))]:
        for table in ("pointers", "comparisons", "canaries"):
            await db.execute(f"DELETE FROM {table} WHERE scope = ?", (key,))  # noqa: S608
        gone += await adapters.mark(db, key, (), adapters.FORGOTTEN, again=True, everything=True)
        running = await fetch(db, "SELECT id FROM runs WHERE (scope, state) = (?, 'running')", (key,))
        await runs.let_go(db, [run for (run,) in running], adapters.FORGOTTEN)
        await db.execute(
            "DELETE FROM switches WHERE (substr(name, 1, 8) = 'retrain ' OR substr(name, 1, 5) = 'lost ')"
            " AND substr(name, length(name) - length(:key)) = ' ' || :key",
            {"key": key},
        )
        await db.execute("UPDATE turns SET own = NULL WHERE own = ?", (key,))
        for table in ("runs", "adapters"):
            await db.execute(f"UPDATE {table} SET scope = ? WHERE scope = ?", (_NOBODY, key))  # noqa: S608
    gone += await adapters.mark(db, scope, stale, adapters.FORGOTTEN, again=True)
    await move_other_pointers(db, scope, model)
    return gone


async def _private_chats(db: aiosqlite.Connection, who: str) -> list[str]:
    """The scopes of this account's private chats, where each channel has one."""
    connector, _, id_ = who.partition(":")
    rows = await fetch(
        db,
        "SELECT DISTINCT own FROM turns WHERE (connector, talker) = (?, ?) AND channel_kind = 'private'"
        " AND substr(own, 1, ?) = ?",
        (connector, id_, len(_CHANNEL), _CHANNEL),
    )
    return [key for (key,) in rows]


async def move_other_pointers(db: aiosqlite.Connection, scope: str, model: str) -> None:
    """Pointers that nobody looks after at the moment must not name what is to be erased.

    Those of all scopes and models but the one that is given.
    """
    rows = {row.version: row for row in await adapters.everywhere(db)}
    for of_, other, version in await fetch(db, "SELECT scope, model, version FROM pointers"):
        clean = version
        while clean in rows and rows[clean].tainted:
            clean = rows[clean].parent
        if clean in rows and rows[clean].scope != of_:  # it rests on a shared one: nothing of its own is left
            clean = 0
        if (of_, other) != (scope, model) and clean != version:
            await db.execute(
                "UPDATE pointers SET version = ? WHERE (scope, model) = (?, ?)", (clean, of_, other)
            )
            await settings.set_switch(db, adapters.lost_switch(of_, other), "")


def pool(shared: Pool, key: str, *, here: bool = True) -> Pool:
    """What may be learnt in a scope, where the shared one's pool is this; `here`: on this machine."""
    return replace(shared, scope=key, consented=here and open_to(key))
