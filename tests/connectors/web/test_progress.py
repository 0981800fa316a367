# SPDX-License-Identifier: Apache-2.0
"""What `/api/progress` answers over HTTP: of a whole goodbot, and to whom."""

from __future__ import annotations

import contextlib
import json
import re
from pathlib import Path

import aiohttp
from goodbot.testing.connector_base import eventually
from goodbot_connectors.web.connector import WebConnector

from tests.connectors.web.peer import Browser, Json
from tests.connectors.web.test_whole import goodbot
from tests.core.builders import Bot
from tests.core.commands.test_overview import SHORTER, TOLD

PARTS = {"answers", "ratings", "needed", "next", "paused", "begun", "training", "lesson", "versions"}
SAID = "who-is-asking-for-a-secret"


async def progress(bot: Bot, port: int, user: str) -> tuple[Json, str]:
    """What the page of this person gets: as JSON, and every letter that came over the wire."""
    web = bot.app.connectors.running["web"]
    assert isinstance(web, WebConnector)
    cookies = {f"goodbot-{port}": await web._sessions.begin(f"loopback:{user}")}
    async with (
        aiohttp.ClientSession(f"http://127.0.0.1:{port}", cookies=cookies) as http,
        http.get("/api/progress") as response,
    ):
        text = await response.text()
        return json.loads(text), f"{response.headers}{text}"


async def test_nothing_reaches_a_rater_or_a_talker_that_the_bot_would_not_tell_them(
    tmp_path: Path, unused_tcp_port: int
) -> None:
    async with goodbot(tmp_path, unused_tcp_port) as bot:
        bot.fake.set(learnt=[SHORTER])
        for number in range(8):
            await bot.react(await bot.say(f"{SAID} {number}"), "👍")
        await bot.train()
        owners, _ = await progress(bot, unused_tcp_port, "owner")
        assert set(owners) == PARTS
        assert owners["lesson"]["told"] == TOLD
        assert [one["version"] for one in owners["versions"]] == [0]
        for user in ("rater", "talker"):
            found, wire = await progress(bot, unused_tcp_port, user)
            assert set(found) == PARTS
            assert found["versions"] == []
            for kept in (SAID, "v0 says", "loopback", "owner", "rater", "talker", str(tmp_path)):
                assert kept not in wire, (user, kept)
        assert found["lesson"] is None, "a talker may not ask why"
        raters, _ = await progress(bot, unused_tcp_port, "rater")
        assert raters["lesson"] == {"version": 1, "told": TOLD, "pinned": False, "pairs": []}


async def test_each_sees_their_own_questions_before_and_after(tmp_path: Path, unused_tcp_port: int) -> None:
    async with (
        goodbot(tmp_path, unused_tcp_port) as bot,
        contextlib.aclosing(Browser(f"http://127.0.0.1:{unused_tcp_port}")) as rater,
    ):
        bot.fake.set(learnt=[SHORTER])
        found = re.search(r"#(\S+)", await bot.command("web", user="rater"))
        assert found is not None
        await rater.log_in(found[1])
        rater.put({"id": "s1", "at": 1, "in": "main", "say": "/rl share on"})
        rater.put({"id": "q1", "at": 2, "in": "main", "say": "mine"})

        async def answered() -> bool:
            entries = (await rater.get("/api/conversation", id="main"))["entries"]
            return any(one["turn"] for one in entries)

        await eventually(answered)
        entries = (await rater.get("/api/conversation", id="main"))["entries"]
        turn = next(one["turn"] for one in entries if one["turn"])
        rater.put({"id": "r1", "at": 3, "in": "main", "press": "good", "turn": turn})
        for number in range(7):
            await bot.react(await bot.say(f"{SAID} {number}"), "👍")
        await bot.train()
        seen = await rater.get("/api/progress")
        assert [pair["prompt"] for pair in seen["lesson"]["pairs"]] == ["mine"]
        assert SAID not in json.dumps(seen)


async def test_who_is_not_signed_in_gets_nothing(tmp_path: Path, unused_tcp_port: int) -> None:
    async with (
        goodbot(tmp_path, unused_tcp_port),
        aiohttp.ClientSession() as http,
        http.get(f"http://127.0.0.1:{unused_tcp_port}/api/progress") as response,
    ):
        assert response.status == 401
