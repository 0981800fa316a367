# SPDX-License-Identifier: Apache-2.0
"""Everything that a page can ask for, as people who may not see what others have: none of it comes."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Sequence
from pathlib import Path

import pytest
from aiohttp.web import RouteDef
from goodbot.testing.connector_base import eventually
from goodbot_connectors.web.connector import WebConnector

from tests.connectors.web.peer import Browser
from tests.connectors.web.test_crowd import heard, whole
from tests.connectors.web.test_queues import making
from tests.connectors.web.test_report import goodbot
from tests.core.builders import Bot
from tests.core.commands.test_overview import SHORTER
from tests.core.commands.test_people_page import ask
from tests.support import patience

pytestmark = pytest.mark.asyncio(loop_scope="module")

OWNERS = (
    *("sownweb", "sowntitle", "sowncomment", "sownbetter"),  # an owner's conversation, its name, the words
    *("sownprivate", "sownguest"),  # what an owner said in a chat; and somebody who lets owners see it
    *("sownactor", "Ann 0", "sownqueue", "sownprompt"),  # the trail, who asks to talk, a queue, a setting
)
"""What an owner sees of what is sown, and nobody else."""
NOBODYS = ("sownnote", "sownline", "#sownroom", "loopback:owner", "loopback:guest", "loopback:s0")
"""Notes of a person and of a channel; places; who people are."""
NOTE = "INSERT INTO notes (scope, key, rule, text, created_at) VALUES (?, ?, '', ?, 1)"


def web_of(bot: Bot) -> WebConnector:
    web = bot.app.connectors.running["web"]
    assert isinstance(web, WebConnector)
    return web


def paths(bot: Bot) -> list[str]:
    """All that can be asked for; a new one is among them at once."""
    found = [one.path for one in web_of(bot).routes() if isinstance(one, RouteDef) and one.method == "GET"]
    assert {"/", "/api/me", "/api/report"} <= {*found}
    return found


async def signed_in(bot: Bot, port: int, user: str) -> Browser:
    browser = Browser(f"http://127.0.0.1:{port}")
    id_ = await web_of(bot)._sessions.begin(f"loopback:{user}")
    browser.http.cookie_jar.update_cookies({f"goodbot-{port}": id_})
    browser.open()
    await asyncio.wait_for(browser.listening.wait(), patience(10))
    return browser


async def sow(bot: Bot, owner: Browser) -> tuple[str, ...]:
    """Something of every kind that others have; the answers in private."""
    bot.fake.set(learnt=[SHORTER])
    await bot.command("enable", channel="#sownroom")
    await bot.command("people", "grant rater loopback:guest")
    await bot.command("people", "grant talker loopback:sownactor")
    await ask(bot, 0)
    owner.put({"id": "q1", "at": 1, "in": "mine", "say": "sownweb"})
    answer = await whole(owner, "a-q1")
    about = {"in": "mine", "turn": answer["turn"], "message": answer["id"]}
    owner.put({"id": "r1", "at": 2, "press": "good", **about})
    owner.put({"id": "c1", "at": 3, "comment": "sowncomment", **about})
    owner.put({"id": "b1", "at": 4, "better": "sownbetter", **about})
    owner.put({"id": "t1", "at": 5, "in": "mine", "rename": "sowntitle"})
    private = await bot.say("sownprivate")
    await bot.react(private, "👍")
    await bot.command("share", "on", user="guest")
    guests = await bot.say("sownguest", user="guest")
    await bot.say("sownshared", channel="#sownroom")
    for scope, key, text in (
        ("person", "loopback:owner", "sownnote"),
        ("channel", json.dumps(["loopback", "loopback", "#sownroom"]), "sownline"),
    ):
        await bot.store.write(lambda db, values=(scope, key, text): db.execute(NOTE, values))
    await bot.rated(8)
    await bot.train()

    async def sent() -> bool:
        return not owner.outbox

    await eventually(sent)
    assert owner.refused == []
    turns = answer["turn"], private.turn, guests.turn
    body = {**making(*turns, shared=[["person", "loopback:guest"]]), "name": "sownqueue"}
    for path, said in (("/api/queues", body), ("/api/report", {"do": "make"})):
        async with owner.http.post(path, json=said) as response:
            assert response.status == 200, await response.text()

    async def made() -> bool:
        return (await owner.get("/api/report"))["making"] is False

    await eventually(made)
    return turns


async def received(bot: Bot, browser: Browser, turns: Sequence[str]) -> dict[str, str]:
    """Every letter that comes to somebody, by what was asked."""
    asked = (
        *("", "?text=sown&id=mine", f"?queue=1&first=0&second=1&turn={turns[0]}", "?person=x&role=owner"),
        *(f"?rated=1&words=1&turns={','.join(turns)}", f"?unsure=1&left_out=1&id=news&turn={turns[1]}"),
    )
    found = {"/api/live, heard": json.dumps(browser.frames, ensure_ascii=False)}
    for path in paths(bot):
        for query in asked if path.startswith("/api/") else ("",):
            async with browser.http.get(f"{path}{query}") as response:
                text = (await response.read()).decode("utf-8", "replace")
                assert response.status < 500, (path, query, text)
                found[f"{path}{query}"] = f"{response.headers}{text}"
    return found


async def test_what_others_have_reaches_neither_a_rater_nor_a_talker(
    tmp_path: Path, unused_tcp_port: int
) -> None:
    (tmp_path / "bot").mkdir()
    (tmp_path / "bot/config.toml").write_text('[serving]\nsystem_prompt = "sownprompt"\n', "utf-8")
    async with goodbot(tmp_path, unused_tcp_port) as bot:
        owner, rater, talker = [
            await signed_in(bot, unused_tcp_port, user) for user in ("owner", "rater", "talker")
        ]
        try:
            turns = await sow(bot, owner)
            for one in (rater, talker):  # what it is told comes after what it might have been told before
                one.put({"id": "own", "at": 1, "in": "main", "say": "words of my own"})
                await heard(one, lambda frame: frame.get("entry", {}).get("id") == "a-own")
            seen = "".join((await received(bot, owner, turns)).values())
            assert [word for word in OWNERS if word not in seen] == [], "else this test looks at nothing"
            code = re.search(r"#(\S+)", await bot.command("web"))
            assert code is not None
            [session] = [cookie.value for cookie in owner.http.cookie_jar]
            kept = (*OWNERS, *NOBODYS, *turns, code[1], session, str(tmp_path))
            for one, more in ((rater, ("loopback:talker",)), (talker, ("loopback:rater", "sownshared"))):
                found = await received(bot, one, turns)
                none = (*kept, *more)
                assert [(word, path) for path, text in found.items() for word in none if word in text] == []
                assert ("sownshared" in found["/api/inbox"]) is (one is rater)
            rater.http.cookie_jar.clear()
            for path in (one for one in paths(bot) if one.startswith("/api/")):
                async with rater.http.get(path) as response:
                    assert response.status == 401, f"{path}, of nobody"
        finally:
            for one in (owner, rater, talker):
                await one.aclose()
