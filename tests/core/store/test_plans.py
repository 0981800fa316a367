# SPDX-License-Identifier: Apache-2.0
"""What a captured answer and its rating touch is found by an index, however many answers there are."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from goodbot.api.events import CaptureEvent, ChannelKind, OrderKey
from goodbot.store import people, training_pool, turns, vote_history
from goodbot.store.consent import CONSENT
from goodbot.store.query import fetch
from goodbot.store.training_pool import Pool
from goodbot.testing import VirtualClock

from tests.core.builders import CHANNEL, OWNER, Bot, copied, open_bot, rate, turn

GROWING = ("turns", "events", "labels", "messages", "traces", "inbox", "run_items")


async def test_no_statement_of_a_capture_and_a_rating_reads_a_whole_table(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        event = CaptureEvent(
            event_id="c",
            order=OrderKey(1),
            user=OWNER,
            channel=CHANNEL,
            response="4",
            messages=({"role": "user", "content": "2 + 2?"},),
            model="cloud",
            message_id="m-c",
            trace="w3c:1",
        )
        seen: list[str] = []
        writing: Any = bot.store._writing
        await writing.set_trace_callback(seen.append)
        await bot.chat.host.submit([event, rate("r", 5, 1.0, "c")])
        await writing.set_trace_callback(None)
        statements = [sql for sql in seen if sql.startswith(("SELECT", "INSERT", "UPDATE", "DELETE"))]
        assert any("INTO traces" in sql for sql in statements)
        assert any("INTO labels" in sql for sql in statements)
        for sql in statements:
            plan = await bot.store.read(lambda db, s=sql: fetch(db, f"EXPLAIN QUERY PLAN {s}"))
            scans = [row[3] for row in plan if row[3].startswith("SCAN ")]
            # Aliases are letters; views of one row, and what an owner has made by hand, may be scanned.
            named = {scan.split()[1] for scan in scans}
            assert not named.intersection({*GROWING, *"telmis"}), (sql, scans)


async def test_what_expires_is_found_without_the_rated_ones(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        plan = await bot.store.read(
            lambda db: fetch(db, "EXPLAIN QUERY PLAN DELETE FROM turns WHERE created_at < 5 AND rated = 0")
        )
        assert "turns_unrated" in plan[0][3]


async def test_who_else_was_seen_in_a_turn_is_found_by_an_index(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        values = bot.app.trainer._pool.values()
        query = f"EXPLAIN QUERY PLAN SELECT 1 FROM turns t WHERE t.id = 'x' AND {CONSENT}"
        plan = [row[3] for row in await bot.store.read(lambda db: fetch(db, query, values))]
        assert any("traces_by_turn" in line for line in plan)
        assert not any(line.startswith("SCAN s") and line.split()[1] == "s" for line in plan)


async def test_the_newest_are_found_without_sorting_all(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        for query in (turns.history, vote_history.votes):
            seen: list[str] = []

            async def look(db: Any, query: Any = query, seen: list[str] = seen) -> None:
                await db.set_trace_callback(seen.append)
                await (query(db, 10) if query is turns.history else query(db, "default"))
                await db.set_trace_callback(None)

            await bot.store.write(look)
            for sql in seen:
                if not sql.startswith(("SAVEPOINT", "BEGIN", "RELEASE")):
                    plan = await bot.store.read(lambda db, s=sql: fetch(db, f"EXPLAIN QUERY PLAN {s}"))
                    assert not any("TEMP B-TREE" in row[3] for row in plan if not row[1]), plan
            assert seen


async def rated(
    bot: Bot, pool: Pool, name: str, talker: str, kind: ChannelKind = ChannelKind.PRIVATE
) -> None:
    """A rated answer to that person."""
    place = replace(CHANNEL, kind=kind)
    one = turn(name, channel=place, talker=replace(OWNER, id=talker), scope=pool.scope, model=pool.model)

    async def put(db: Any) -> None:
        await turns.insert(db, one, trainable=True)
        await db.execute("UPDATE turns SET rated = 1 WHERE id = ?", (name,))

    await bot.store.write(put)


async def test_a_rating_reads_nothing_of_what_waits_for_consent(tmp_path: Path) -> None:
    """SQLite's instructions for the count that every rating makes, beside 5 such answers and 200."""
    async with open_bot(tmp_path) as bot:
        pool = bot.app.trainer._pool

        async def instructions() -> int:
            ticks: list[None] = []
            writing: Any = bot.store._writing
            await writing.set_progress_handler(lambda: ticks.append(None), 1)
            assert await bot.store.write(lambda db: training_pool.available(db, pool, 40)) == 1
            await writing.set_progress_handler(None, 1)
            return len(ticks)

        await rated(bot, pool, "shared", "ada", ChannelKind.SHARED)
        for number in range(5):
            await rated(bot, pool, f"few{number}", f"guest{number}")
        few = await instructions()
        for number in range(200):
            await rated(bot, pool, f"many{number}", f"guest{number % 40}")
        assert await instructions() <= few + 50


async def test_what_is_counted_quickly_is_what_may_be_claimed(tmp_path: Path) -> None:
    """Beside any mix of owners, people who share and turns that two connectors have seen."""
    draw = random.Random(5)
    several = 0
    async with open_bot(tmp_path) as bot:
        pool = replace(bot.app.trainer._pool, owners=("loopback:ada",))
        for number in range(60):
            person = draw.choice(["ada"] if number < 20 else ["ada", "ben", "eve", "kim"])
            kind = draw.choice([ChannelKind.PRIVATE, ChannelKind.SHARED, ChannelKind.PRIVATE])
            await rated(bot, pool, f"t{number}", person, kind)

            async def happen(db: Any, number: int = number) -> None:
                also = draw.choice(["", "", "ada", "ben", "kim"])
                if also:
                    await db.execute(
                        "INSERT INTO traces (trace, connector, account, channel, talker, turn, answer)"
                        " VALUES (?, 'loopback', 'a', 'c', ?, ?, '')",
                        (f"w{number}", also, f"t{number}"),
                    )
                if number % 7 == 3:
                    who = f"loopback:{draw.choice(['ada', 'ben', 'eve', 'kim'])}"
                    await db.execute("INSERT OR IGNORE INTO shares VALUES (?, 1.0)", (who,))
                if number % 7 == 5:
                    await db.execute("DELETE FROM shares WHERE person <> 'loopback:ben'")
                if number == 30:
                    await people.grant(db, "loopback:eve", "owner", by="cli", now=1.0)

            await bot.store.write(happen)
            counted = await bot.store.read(lambda db: training_pool.available(db, pool, 1000))
            standing = await bot.store.read(lambda db: training_pool.standing(db, pool))
            assert counted == standing.available
            several += 0 < counted < standing.available + standing.waiting_for_consent
    assert several > 20


# -- a rating costs the same however many wait


async def instructions(bot: Bot, work: Callable[[], Awaitable[Any]], *, reading: bool = False) -> int:
    """SQLite's instructions on the writing or the reading connection meanwhile."""
    ticks: list[None] = []
    db: Any = bot.store._reading if reading else bot.store._writing
    await db.set_progress_handler(lambda: ticks.append(None), 1)
    await work()
    await db.set_progress_handler(None, 1)
    return len(ticks)


SHARED = {"channel_kind": "'shared'"}
WAITING: dict[str, tuple[dict[str, str], dict[str, Any]]] = {
    "of a channel": (SHARED, {}),
    "of the owner": ({}, {}),
    "of people who share": ({"talker": "'ben'"}, {}),
    "that wait for consent": ({"talker": "'guest' || i"}, {}),
    "that teach nothing": (SHARED | {"rated": "2"}, {}),
    "that teach nothing, in private": ({"rated": "2"}, {}),
    "that may not train": (SHARED | {"trainable": "0"}, {}),
    "that may not train, in private": ({"trainable": "0"}, {}),
    "of models that it does not learn from": (SHARED | {"answered_by": "'cloud'"}, {"from_others": False}),
    "of another base model": (SHARED | {"model": "'before'"}, {}),
    "beside a round of very many": (SHARED, {"min_ratings": 1_000_000}),
    "after a training that was refused": (SHARED, {"schedule": "auto", "quiet_hours": "00:00-23:59"}),
}


@pytest.mark.parametrize("what", WAITING)
async def test_b13_a_rating_costs_the_same_however_many_wait(tmp_path: Path, what: str) -> None:
    """The rating, its undo and, but for a round of very many, the scheduler's look."""
    columns, training = WAITING[what]
    clock = VirtualClock(waits=True)  # the scheduler does not look by itself
    async with open_bot(tmp_path, clock=clock, **training) as bot:
        waits, one = (await bot.say("the one that all are like"), await bot.say("the one that is rated"))
        await bot.react(waits, "👍")
        pool = bot.app.trainer._pool
        if what == "of people who share":
            await bot.store.write(lambda db: db.execute("INSERT INTO shares VALUES ('loopback:ben', 1.0)"))
        if "refused" in what:
            await bot.store.write(
                lambda db: db.execute(
                    "INSERT INTO runs (scope, state, parent, why, backend, settings, last_event_seq,"
                    " started_at, finished_at, model) VALUES (?, 'refused', 0, '', '', '{}', 0, 1, 2, ?)",
                    (pool.scope, pool.model),
                )
            )
        found: list[tuple[int, ...]] = []
        for first, last in ((1, 2000), (2001, 20_000)):
            await copied(bot.store, waits.turn, first, last, **columns)
            look = bot.app.scheduler.readiness
            found.append(
                (
                    await instructions(bot, lambda: bot.react(one, "👍")),
                    await instructions(bot, lambda: bot.unreact(one, "👍")),
                    0 if "very many" in what else await instructions(bot, look, reading=True),
                )
            )
        for few, many in zip(*found, strict=True):
            assert many <= few + 500, (what, found)
