# SPDX-License-Identifier: Apache-2.0
"""Schema 2: runs know their base model, ties are told apart; and the data of schema 1 is brought along."""

from __future__ import annotations

import sqlite3
from importlib.resources import files
from pathlib import Path

from goodbot.config.layout import APPLICATION_ID
from goodbot.store import Store
from goodbot.store.downgrade import step_back

from tests.core.builders import rows

MIGRATIONS = files("goodbot.store").joinpath("migrations")


def text(name: str) -> str:
    return MIGRATIONS.joinpath(name).read_text(encoding="utf-8")


def schema_1(path: Path) -> None:
    """Three answers of alpha: one trained on, one rated, one a tie; v1 waits for its replacement."""
    db = sqlite3.connect(path)
    db.executescript(text("0001_initial.sql"))
    for turn in ("trained", "rated", "tied"):
        db.execute(
            "INSERT INTO turns (id, connector, account, channel, channel_kind, thread, talker,"
            " messages, response, prompt_tokens, tokens, logprobs, temperature, model, version,"
            " scope, kind, origin, trainable, created_at) VALUES (?, 'l', 'l', 'c', 'private', '',"
            " 'owner', '[]', 'r', x'', x'', x'', 1.0, 'alpha', 0, 'default', 'main', 'goodbot', 1, 1)",
            (turn,),
        )
    for turn, rater, value in (("trained", "a", 1), ("rated", "a", -1), ("tied", "a", 1), ("tied", "b", -1)):
        db.execute("INSERT INTO labels VALUES (?, ?, ?, 'e', 1)", (turn, rater, value))
    db.execute(
        "INSERT INTO runs (id, scope, state, parent, why, backend, settings, last_event_seq,"
        " started_at) VALUES (1, 'default', 'activated', 0, '', 'fake', '{}', 0, 1)"
    )
    db.execute("INSERT INTO run_items VALUES (1, 'trained', 'train', 1.0, '{}')")
    db.execute("INSERT INTO adapters VALUES (1, 'default', 0, 1, 'v1', '', 'alpha', 'x', '{}', '{}', 1)")
    db.execute("UPDATE pointers SET version = 1")
    db.execute("INSERT INTO switches VALUES ('retrain', 'a rating is gone')")
    db.executescript(f"PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = 1;")
    db.commit()
    db.close()


async def test_what_schema_1_knew_is_brought_along_and_back(tmp_path: Path) -> None:
    path = tmp_path / "goodbot.db"
    schema_1(path)
    store = await Store.open(path)
    try:
        assert await rows(store, "SELECT model, replay FROM runs") == [("alpha", 0)]
        assert await rows(store, "SELECT id, rated, spent FROM turns ORDER BY seq") == [
            ("trained", 1, 1),
            ("rated", 1, None),
            ("tied", 2, None),
        ]
        assert await rows(store, "SELECT * FROM switches") == [("retrain alpha", "a rating is gone")]
        assert await rows(store, "SELECT model, version FROM pointers") == [("alpha", 1)]
    finally:
        await store.close()
    await step_back(tmp_path)
    db = sqlite3.connect(path)
    assert db.execute("SELECT rated FROM turns").fetchall() == [(1,), (1,), (1,)]
    assert db.execute("SELECT * FROM switches").fetchall() == [("retrain", "a rating is gone")]
    columns = {row[1] for row in db.execute("PRAGMA table_info(runs)")}
    assert not columns & {"model", "replay"}
    db.execute("INSERT INTO run_items VALUES (1, 'rated', 'train', 1.0, '{}')")
    assert db.execute("SELECT spent FROM turns").fetchall() == [(1,), (1,), (None,)]
    db.close()
