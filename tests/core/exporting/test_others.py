# SPDX-License-Identifier: Apache-2.0
"""Ratings of ReinforceClaw and Open WebUI come in, and their files stay as they are."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from goodbot.base.errors import UsageError

from tests.core.exporting.made import bring_in, export, opened

# As ReinforceClaw 0.1.0 makes it (reinforceclaw/db.py)
CLAW = (
    "CREATE TABLE feedback (id INTEGER PRIMARY KEY AUTOINCREMENT, model TEXT NOT NULL, prompt TEXT NOT NULL,"
    " response TEXT NOT NULL, context TEXT, rollout_context TEXT, event_id TEXT, rating INTEGER NOT NULL,"
    " source TEXT DEFAULT 'cli', trained INTEGER DEFAULT 0, adapter_version INTEGER,"
    " created_at TEXT DEFAULT (datetime('now')))"
)
TALK = [
    {"role": "user", "content": "Hello"},
    {"role": "assistant", "content": "Hi!"},
    {"role": "user", "content": "Why?"},
]


def claw(path: Path, *rows: tuple[Any, ...]) -> Path:
    with closing(sqlite3.connect(path)) as db, db:
        db.execute(CLAW)
        db.executemany(
            "INSERT INTO feedback (model, prompt, response, rollout_context, rating, created_at)"
            " VALUES (?, ?, ?, ?, ?, '2026-03-01 12:00:00')",
            rows,
        )
    return path


async def test_ratings_of_reinforceclaw_come_in(tmp_path: Path) -> None:
    context = json.dumps({"messages": TALK, "cwd": "/srv/claw"})
    path = claw(
        tmp_path / "reinforceclaw.db",
        ("Qwen/Qwen3-4B", "Why?", "Because.", context, 1),
        ("Qwen/Qwen3-4B", "How?", "So.", None, -1),
        ("Qwen/Qwen3-4B", "Who?", "Nobody.", "no json", 0),
        ("Qwen/Qwen3-4B", "When?", "Łódź 🙂", '{"messages": [7, {"role": "tool"}]}', 1),
    )
    before = hashlib.sha256(path.read_bytes()).hexdigest()
    async with opened(tmp_path) as bot:
        told = await bring_in(bot, path, "reinforceclaw")
        assert (told["imported"], told["left_out"]) == (3, 0)
        lines, _ = await export(bot)
        assert [one["messages"] for one in lines] == [
            TALK,
            [{"role": "user", "content": "How?"}],
            [{"role": "user", "content": "When?"}],
        ]
        assert [one["ratings"] for one in lines] == [{"loopback:owner": v} for v in (1.0, -1.0, 1.0)]
        assert {one["answered_by"] for one in lines} == {"Qwen/Qwen3-4B"}
        assert {one["at"] for one in lines} == {1772366400.0}
        assert len((await export(bot, "--format kto"))[0]) == 3, "they are the owner's own"
        assert (await bring_in(bot, path, "reinforceclaw"))["known"] == 3
    assert hashlib.sha256(path.read_bytes()).hexdigest() == before
    assert sorted(one.name for one in tmp_path.iterdir()) == ["bot", "fake", "reinforceclaw.db"]


async def test_s5_an_answer_to_an_empty_question_is_left_out_of_each_form_and_told(tmp_path: Path) -> None:
    talk = json.dumps({"messages": [*TALK[:2], {"role": "user", "content": " "}]})
    path = claw(
        tmp_path / "reinforceclaw.db",
        ("m", " \n", "Because.", None, 1),
        ("m", "Why?", "Because.", talk, 1),
        ("m", "How?", "So.", None, 1),
    )
    webui = feedback()
    webui["snapshot"]["chat"]["chat"]["history"]["messages"]["m3"]["content"] = ""
    async with opened(tmp_path) as bot:
        told = await bring_in(bot, path, "reinforceclaw")
        assert (told["imported"], told["left_out"]) == (1, 2)
        assert told["why"] == [f"line {n}: its question is empty" for n in (1, 2)]
        assert "2 left out: line 1: its question is empty; line 2: " in told["text"]
        told = await bring_in(bot, listed(tmp_path / "f.json", webui), "open-webui")
        assert (told["imported"], told["left_out"]) == (0, 1)
        assert told["why"] == ["line 1: its question is empty"]
        assert len((await export(bot))[0]) == 1


async def test_a_view_in_its_place_is_not_read(tmp_path: Path) -> None:
    """One that never ends could not be stopped by Ctrl-C."""
    path = tmp_path / "reinforceclaw.db"
    endless = (
        "CREATE VIEW feedback AS WITH RECURSIVE c(id) AS (SELECT 1 UNION ALL SELECT id + 1 FROM c)"
        " SELECT id, 'm' AS model, 'p' AS prompt, 'r' AS response, 1 AS rating FROM c"
    )
    with closing(sqlite3.connect(path)) as db, db:
        db.execute(endless)
    async with opened(tmp_path) as bot:
        with pytest.raises(UsageError, match="no table `feedback`"):
            await bring_in(bot, path, "reinforceclaw")


def knotted(path: Path, levels: int = 8) -> Path:
    """The table's tree in a few pages: each has all its branches lead to one page, so that it never ends."""
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA page_size = 512")
        with db:
            db.execute(CLAW)
            rows = [("m", "p", "r", 1)] * 2000
            db.executemany("INSERT INTO feedback (model, prompt, response, rating) VALUES (?, ?, ?, ?)", rows)
        [(root,)] = db.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'feedback'")
        [(pages,)] = db.execute("PRAGMA page_count")
    data = bytearray(path.read_bytes())
    above = bytes(data[(root - 1) * 512 : root * 512])
    assert above[0] == 5, "the root is no leaf"
    leaf = int.from_bytes(above[8:12], "big")

    def leading(to: int) -> bytes:
        page = bytearray(above)
        count = int.from_bytes(page[3:5], "big")
        at = [int.from_bytes(page[12 + 2 * n : 14 + 2 * n], "big") for n in range(count)]
        for place in (8, *at):
            page[place : place + 4] = to.to_bytes(4, "big")
        return bytes(page)

    for number in range(1, levels + 1):
        data += leading(pages + number + 1 if number < levels else leaf)
    data[(root - 1) * 512 : root * 512] = leading(pages + 1)
    data[28:32] = (pages + levels).to_bytes(4, "big")
    path.write_bytes(data)
    return path


async def test_s9_a_table_without_end_is_not_read_for_ever(tmp_path: Path) -> None:
    async with opened(tmp_path) as bot:
        with pytest.raises(UsageError, match="cannot be read as a database of ReinforceClaw: interrupted"):
            await bring_in(bot, knotted(tmp_path / "reinforceclaw.db"), "reinforceclaw")


async def test_what_is_no_database_of_it_is_told(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("no database")
    with closing(sqlite3.connect(tmp_path / "other.db")) as db, db:
        db.execute("CREATE TABLE feedback (id INTEGER)")
    async with opened(tmp_path) as bot:
        for name in ("text", "other.db"):
            with pytest.raises(UsageError, match="database of ReinforceClaw"):
                await bring_in(bot, tmp_path / name, "reinforceclaw")
        assert (await export(bot))[0] == []


def feedback(**changes: Any) -> dict[str, Any]:
    """As Open WebUI's admin page exports one (backend/open_webui/models/feedbacks.py)."""
    messages: dict[str, Any] = {
        "m1": {"id": "m1", "parentId": None, "role": "user", "content": "Hello"},
        "m2": {"id": "m2", "parentId": "m1", "role": "assistant", "content": "Hi!", "model": "llama"},
        "m3": {"id": "m3", "parentId": "m2", "role": "user", "content": "Why?"},
        "m4": {
            "id": "m4",
            "parentId": "m3",
            "role": "assistant",
            "model": "llama",
            "content": '<details type="reasoning">\n<summary>Thought</summary>\n> Hm.\n</details>\nBecause.',
        },
        "m5": {"id": "m5", "parentId": "m3", "role": "assistant", "content": "another branch"},
    }
    return {
        "id": "f1",
        "user_id": "u1",
        "version": 0,
        "type": "rating",
        "data": {
            "rating": 1,
            "model_id": "llama3.2:3b",
            "reason": "accurate_information",
            "comment": "",
            "details": {"rating": 9},
        },
        "meta": {"chat_id": "c1", "message_id": "m4", "message_index": 4},
        "snapshot": {"chat": {"id": "c1", "user_id": "u1", "chat": {"history": {"messages": messages}}}},
        "created_at": 1_770_000_000,
        "updated_at": 1_770_000_000,
        **changes,
    }


def listed(path: Path, *records: Any) -> Path:
    path.write_text(json.dumps(records), encoding="utf-8")
    return path


async def test_ratings_of_open_webui_come_in(tmp_path: Path) -> None:
    async with opened(tmp_path) as bot:
        told = await bring_in(bot, listed(tmp_path / "f.json", feedback()), "open-webui")
        assert (told["imported"], told["left_out"]) == (1, 0), told
        [line] = (await export(bot))[0]
        assert line["messages"] == TALK
        assert (line["answer"], line["thought"]) == ("Because.", "> Hm.")
        assert line["ratings"] == {"open-webui:u1": [1.0, 1.0]}
        remarks = [{"kind": "comment", "rater": "open-webui:u1", "text": "accurate information"}]
        assert line["remarks"] == remarks
        assert (line["answered_by"], line["at"]) == ("llama3.2:3b", 1_770_000_000.0)
        assert (await export(bot, "--format kto"))[1]["left_out"] == 1, "u1 has agreed to nothing here"


async def test_they_may_be_the_owners_own(tmp_path: Path) -> None:
    async with opened(tmp_path) as bot:
        await bring_in(bot, listed(tmp_path / "f.json", feedback()), "open-webui", mine=True)
        [line] = (await export(bot))[0]
        assert line["ratings"] == {"loopback:owner": [1.0, 1.0]}
        assert len((await export(bot, "--format kto"))[0]) == 1
        with pytest.raises(UsageError, match="--mine"):
            await bring_in(bot, tmp_path / "f.json", mine=True)


async def test_older_shapes_of_it_are_read(tmp_path: Path) -> None:
    """Messages as a list, the history beside the chat, the points beside the data, a rating in words."""
    whole = feedback()
    messages = list(whole["snapshot"]["chat"]["chat"]["history"]["messages"].values())
    one = feedback(id="f2", snapshot={"chat": {"id": "c1"}, "history": {"messages": messages}})
    one["data"] = {"rating": "-1", "model_id": "llama", "comment": "Too short."}
    one["details"] = {"rating": 2}
    async with opened(tmp_path) as bot:
        await bring_in(bot, listed(tmp_path / "f.json", one), "open-webui")
        [line] = (await export(bot))[0]
        assert line["ratings"] == {"open-webui:u1": [-1.0, -1.0]}
        assert line["messages"] == TALK


async def test_what_has_no_answer_is_left_out(tmp_path: Path) -> None:
    circle = {
        "a": {"id": "a", "parentId": "b", "content": "x"},
        "b": {"id": "b", "parentId": "a", "content": "y"},
    }
    odd: tuple[Any, ...] = (
        feedback(id="f1", snapshot=None),
        feedback(id="f2", meta={"message_id": "gone"}),
        feedback(id="f3", data={"rating": None}),
        feedback(id="f4", meta={"message_id": "a"}, snapshot={"chat": {"history": {"messages": circle}}}),
        feedback(id="f5", created_at="yesterday"),
        7,
        {},
    )
    async with opened(tmp_path) as bot:
        told = await bring_in(bot, listed(tmp_path / "f.json", *odd, feedback()), "open-webui")
        assert (told["imported"], told["left_out"]) == (1, len(odd)), told
