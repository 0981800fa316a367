# SPDX-License-Identifier: Apache-2.0
"""What the browser offers behind a slash: the table of commands, as far as somebody may use it."""

from __future__ import annotations

from pathlib import Path

import aiohttp
from goodbot.api.commands import TABLE, Grant
from goodbot_connectors.web.connector import WebConnector

from tests.connectors.web.test_whole import goodbot

MOST = {"owner": Grant.ADMINISTER, "rater": Grant.RATE, "talker": Grant.TALK}


async def test_it_has_each_command_that_a_person_may_use_and_no_other(
    tmp_path: Path, unused_tcp_port: int
) -> None:
    shown: dict[str, list[tuple[str, str, str]]] = {}
    async with goodbot(tmp_path, unused_tcp_port) as bot:
        web = bot.app.connectors.running["web"]
        assert isinstance(web, WebConnector)
        for who in MOST:
            cookies = {f"goodbot-{unused_tcp_port}": await web._sessions.begin(f"loopback:{who}")}
            async with (
                aiohttp.ClientSession(f"http://127.0.0.1:{unused_tcp_port}", cookies=cookies) as http,
                http.get("/api/me") as response,
            ):
                assert response.status == 200
                rows = (await response.json())["commands"]
                shown[who] = [(row["name"], row["usage"], row["summary"]) for row in rows]
    for who, most in MOST.items():
        own = [one for one in TABLE if "chat" in one.where and one.grant <= most]
        assert sorted(shown[who]) == sorted((one.name, one.usage, one.summary) for one in own), who
        first = {one.name for one in own if "chat" in one.first}
        assert {name for name, *_ in shown[who][: len(first)]} == first, "what a newcomer needs is first"
    assert len(shown["owner"]) > len(shown["rater"]) > len(shown["talker"]) > 0
