"""What a captured answer and its rating touch is found by an index, however many answers there are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from goodbot.events import CaptureEvent, OrderKey
from goodbot.store.claimable import CONSENT
from goodbot.store.query import fetch

from tests.core.builders import CHANNEL, OWNER, open_bot, rate

GROWING = ("turns", "events", "labels", "messages", "traces", "inbox", "run_items")


async def test_no_statement_of_a_capture_and_a_rating_reads_a_whole_table(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        event = CaptureEvent(
            event_id="c", order=OrderKey(1), user=OWNER, channel=CHANNEL, response="4",
            messages=({"role": "user", "content": "2 + 2?"},), model="cloud", message_id="m-c",
            trace="w3c:1",
        )  # fmt: skip
        seen: list[str] = []
        writing: Any = bot.store._writing
        await writing.set_trace_callback(seen.append)
        await bot.chat.host.submit([event, rate("r", 5, 1.0, "c")])
        await writing.set_trace_callback(None)
        statements = [
            sql for sql in seen if sql.startswith(("SELECT", "INSERT", "UPDATE", "DELETE"))
        ]
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
            lambda db: fetch(
                db, "EXPLAIN QUERY PLAN DELETE FROM turns WHERE created_at < 5 AND rated = 0"
            )
        )
        assert "turns_unrated" in plan[0][3]


async def test_who_else_was_seen_in_a_turn_is_found_by_an_index(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        values = bot.app.trainer._pool.values()
        query = f"EXPLAIN QUERY PLAN SELECT 1 FROM turns t WHERE t.id = 'x' AND {CONSENT}"
        plan = [row[3] for row in await bot.store.read(lambda db: fetch(db, query, values))]
        assert any("traces_by_turn" in line for line in plan)
        assert not any(line.startswith("SCAN s") and line.split()[1] == "s" for line in plan)
