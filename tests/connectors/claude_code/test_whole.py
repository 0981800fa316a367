# SPDX-License-Identifier: Apache-2.0
"""Hooks of Claude Code at a whole goodbot: what it stores, and what it trains on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import aiohttp
import goodbot_connectors.claude_code
from goodbot.config import HttpConfig
from goodbot.store import turns
from goodbot_connectors.claude_code.connector import PATH
from goodbot_connectors.kit.bridge import clients

from tests.connectors.claude_code.peer import recorded
from tests.core.builders import open_bot, rows


async def test_what_is_rated_in_claude_code_is_rated(tmp_path: Path, unused_tcp_port: int) -> None:
    sections = {"http": HttpConfig(port=unused_tcp_port), "connectors": {"claude_code": {"owners": ["me"]}}}
    token = clients.create(tmp_path / "bot", "claude_code", "me")
    address = f"http://127.0.0.1:{unused_tcp_port}"
    async with (
        open_bot(tmp_path, extra=(goodbot_connectors.claude_code,), sections=sections) as bot,
        aiohttp.ClientSession(address, headers={"Authorization": f"Bearer {token}"}) as session,
    ):

        async def post(call: dict[str, Any]) -> dict[str, Any]:
            async with session.post(PATH, json=call) as response:
                assert response.status == 200
                return await response.json()

        answers = [await post(call) for call in recorded("rated")]
        said = [one["reason"] for one in answers if "reason" in one]
        assert said[0].startswith("👍 Good. 1 of ")
        assert said[1].startswith("👎 Bad. 2 of ")
        assert said[2].startswith("Taken back.")
        assert "/rl good" in said[3], "the help"
        kept = [
            await bot.store.read(lambda db, id_=id_: turns.get(db, id_))
            for (id_,) in await rows(bot.store, "SELECT id FROM turns ORDER BY created_at, id")
        ]
        assert {one.response for one in kept if one} == {"Answer 1.", "Answer 2."}
        assert {(one.origin, one.answered_by) for one in kept if one} == {("captured", "claude-code")}
        labels = await rows(
            bot.store, "SELECT t.response, l.value FROM labels l JOIN turns t ON t.id = l.turn"
        )
        assert labels == [("Answer 1.", 1.0)]
        again = [await post(call) for call in recorded("rated")]
        assert [one["reason"] for one in again if "reason" in one][:2] == said[:2], "a replay"
        labels = await rows(bot.store, "SELECT count(*), sum(rated) FROM turns")
        assert labels == [(2, 1)]
