# SPDX-License-Identifier: Apache-2.0
"""`goodbot web` and `/rl web`: a link logs in whom it was made for, once, and soon or never."""

from __future__ import annotations

import asyncio
import functools
import hashlib
import re
from pathlib import Path

import pytest
from goodbot.api.commands import Grant
from goodbot.base.errors import GoodbotError, RetriableError, UsageError
from goodbot.config.layout import LOGIN_PAGE
from goodbot.daemon.control import execute
from goodbot.store import settings
from goodbot.testing import VirtualClock

from tests.core.builders import Bot, open_bot, rows
from tests.core.daemon.http import site
from tests.core.daemon.http.site import Site

served = functools.partial(site.served, terminal=True)
NOBODY = "Open it within ten minutes; it works once. Show it to nobody."


async def link(bot: Bot, *words: str) -> str:
    """What `goodbot web` prints first."""
    return (await execute(bot.app, "web", words)).text.splitlines()[0]


def code(url: str) -> str:
    return url.partition("#")[2]


async def test_the_machine_s_owner_logs_in_as_the_owner(tmp_path: Path, unused_tcp_port: int) -> None:
    async with served(tmp_path, unused_tcp_port) as (bot, pages):
        url = await link(bot)
        assert re.fullmatch(rf"http://127\.0\.0\.1:{unused_tcp_port}/login#[A-Za-z0-9_-]{{22}}", url)
        assert await pages.host.log_in(code(url)) == "owner"
        assert bot.app.authorization.level(pages.user("owner")) is Grant.ADMINISTER
        assert await pages.host.log_in(code(url)) == "", "it works once"


async def test_an_owner_that_the_config_names_takes_that_place(tmp_path: Path, unused_tcp_port: int) -> None:
    people = {"owners": ["ada"], "talkers": ["tom"]}
    async with served(tmp_path, unused_tcp_port, web=people) as (bot, pages):
        assert await pages.host.log_in(code(await link(bot))) == "ada"
        assert await pages.host.log_in(code(await link(bot, "tom"))) == "tom"
        assert bot.app.authorization.level(pages.user("owner")) is Grant.NONE
        for name in ("owner", "nobody", "loopback:owner", "ADA"):
            with pytest.raises(UsageError, match="may do nothing in the browser"):
                await link(bot, name)


async def test_of_several_owners_one_is_named(tmp_path: Path, unused_tcp_port: int) -> None:
    async with served(tmp_path, unused_tcp_port, web={"owners": ["ada", "bob"]}) as (bot, pages):
        with pytest.raises(UsageError, match="--user ada, --user bob"):
            await link(bot)
        assert await pages.host.log_in(code(await link(bot, "bob"))) == "bob"


async def test_a_link_says_what_to_do_with_it(tmp_path: Path, unused_tcp_port: int) -> None:
    async with served(tmp_path, unused_tcp_port) as (bot, _):
        said = await execute(bot.app, "web", ())
        assert said.text.splitlines()[2:] == [
            NOBODY,
            "It works on the machine that goodbot runs on: elsewhere, set `[http] url`.",
        ]
        assert said.data["user"] == "owner"
        assert said.data["url"] == said.text.splitlines()[0]
    public = {"url": "https://bot.example.org"}
    async with served(tmp_path, unused_tcp_port, http=public) as (bot, _):
        said = await execute(bot.app, "web", ())
        assert said.text.splitlines()[2:] == [NOBODY]
        assert said.text.startswith("https://bot.example.org/login#")


async def test_the_store_has_only_the_hash_of_a_code(tmp_path: Path, unused_tcp_port: int) -> None:
    async with served(tmp_path, unused_tcp_port) as (bot, _):
        made = code(await link(bot))
        chat = code((await bot.command("web")).splitlines()[0])
        found = await rows(bot.store, "SELECT subject, hash, purpose FROM codes ORDER BY subject")
        assert found == [
            (who, hashlib.sha256(f"web {one}".encode()).hexdigest(), "web")
            for who, one in (("web:loopback:owner", chat), ("web:owner", made))
        ]
        for path in tmp_path.rglob("*"):
            if path.is_file():
                assert made.encode() not in path.read_bytes()
                assert chat.encode() not in path.read_bytes()


async def test_what_leads_a_browser_to_a_link_goes_once_it_was_used(
    tmp_path: Path, unused_tcp_port: int
) -> None:
    async with served(tmp_path, unused_tcp_port) as (bot, pages):
        page = bot.store.path.with_name(LOGIN_PAGE)
        for one in (await link(bot), "http://127.0.0.1/login#" + "x" * 22):
            page.write_text(one)
            await pages.host.log_in(code(one))
            assert page.exists() is one.endswith("x")
    async with served(tmp_path, unused_tcp_port):
        assert not page.exists(), "nor does it outlive a restart"


async def test_a_code_holds_for_ten_minutes(tmp_path: Path, unused_tcp_port: int) -> None:
    clock = VirtualClock(waits=True)
    async with served(tmp_path, unused_tcp_port, clock) as (bot, pages):
        first, second = code(await link(bot)), code(await link(bot))
        assert await pages.host.log_in(first) == "", "a fresh one ends the one before"
        clock.advance(599)
        assert await pages.host.log_in(second) == "owner"
        third = code(await link(bot))
        clock.advance(601)
        assert await pages.host.log_in(third) == ""


async def test_a_code_outlives_a_restart(tmp_path: Path, unused_tcp_port: int) -> None:
    async with served(tmp_path, unused_tcp_port) as (bot, _):
        made = code(await link(bot))
    async with served(tmp_path, unused_tcp_port) as (_, pages):
        assert await pages.host.log_in(made) == "owner"


async def test_after_five_wrong_codes_in_a_minute_no_other_is_looked_at(
    tmp_path: Path, unused_tcp_port: int
) -> None:
    clock = VirtualClock(waits=True)
    async with served(tmp_path, unused_tcp_port, clock) as (bot, pages):
        right = code(await link(bot))
        for wrong in ("", "x", "x" * 100_000, right[:-1], f"{right} "):
            assert await pages.host.log_in(wrong) == ""
        with pytest.raises(RetriableError, match="too many wrong codes") as caught:
            await pages.host.log_in("y")
        assert 59 < caught.value.retry_after <= 60
        assert await pages.host.log_in(right) == "owner", "a stranger keeps nobody out"
        clock.advance(61)
        for wrong in ("a", "b"):
            assert await pages.host.log_in(wrong) == "", "the old ones are forgiven"


async def test_guesses_that_come_at_once_are_counted_too(tmp_path: Path, unused_tcp_port: int) -> None:
    async with served(tmp_path, unused_tcp_port, VirtualClock(waits=True)) as (_, pages):
        tries = [pages.host.log_in(str(number)) for number in range(50)]
        told = await asyncio.gather(*tries, return_exceptions=True)
        assert told.count("") == 5
        assert sum(isinstance(answer, RetriableError) for answer in told) == 45


async def test_from_a_chat_one_logs_in_as_oneself_and_may_the_same(
    tmp_path: Path, unused_tcp_port: int
) -> None:
    async with served(tmp_path, unused_tcp_port) as (bot, pages):
        level = bot.app.authorization.level
        for who, grant in (("rater", Grant.RATE), ("owner", Grant.ADMINISTER)):
            text = await bot.command("web", user=who)
            assert NOBODY in text
            assert await pages.host.log_in(code(text.splitlines()[0])) == f"loopback:{who}"
            assert level(pages.user(f"loopback:{who}")) is grant
        assert level(pages.user("loopback:talker")) is Grant.TALK
        assert level(pages.user("nowhere:owner")) is Grant.NONE
        linked = await rows(bot.store, "SELECT person, identity FROM links ORDER BY person")
        assert ("web:loopback:rater", "loopback:rater") in linked
        assert ("web:loopback:owner", "loopback:owner") in linked


async def test_only_who_may_rate_gets_a_link_and_only_in_private(
    tmp_path: Path, unused_tcp_port: int
) -> None:
    async with served(tmp_path, unused_tcp_port) as (bot, _):
        for who in ("talker", "nobody"):
            assert "http" not in await bot.command("web", user=who)
        await bot.command("enable", channel="#room")
        await bot.chat.command("web", channel="#room")
        said = [answer.text for answer in (*bot.chat.replies, *bot.chat.news)]
        assert not any("http" in text for text in said)
        assert await rows(bot.store, "SELECT * FROM codes") == []
        assert "nothing else" in await bot.command("web", "sign-out")


async def test_whoever_was_revoked_meanwhile_is_not_logged_in(tmp_path: Path, unused_tcp_port: int) -> None:
    async with served(tmp_path, unused_tcp_port) as (bot, pages):
        await bot.command("people", "grant rater loopback:ada")
        made = code((await bot.command("web", user="ada")).splitlines()[0])
        await bot.command("people", "revoke loopback:ada")
        assert await pages.host.log_in(made) == ""
        assert await rows(bot.store, "SELECT * FROM links") == []


async def test_signing_out_ends_sessions_and_links(tmp_path: Path, unused_tcp_port: int) -> None:
    async with served(tmp_path, unused_tcp_port) as (bot, pages):
        made = code(await link(bot))
        said = await execute(bot.app, "web", ("sign-out",))
        assert said.text.startswith("Everybody is signed out")
        assert pages.signed_out == 1
        assert await pages.host.log_in(made) == ""


async def test_who_logs_in_is_in_the_audit_trail(tmp_path: Path, unused_tcp_port: int) -> None:
    async with served(tmp_path, unused_tcp_port) as (bot, pages):
        await pages.host.log_in(code(await link(bot)))
        rater = code((await bot.command("web", user="rater")).splitlines()[0])
        await pages.host.log_in(rater)
        trail, whole = await bot.store.read(settings.audit)
        assert whole
        first, second = [entry.actor for entry in trail if entry.action == "log in"]
        assert first == "web:owner"
        assert second.startswith("person-")


async def test_forgetting_ends_the_browser_s_account_too(tmp_path: Path, unused_tcp_port: int) -> None:
    async with served(tmp_path, unused_tcp_port) as (bot, pages):
        await pages.host.log_in(code((await bot.command("web", user="rater")).splitlines()[0]))
        room = await bot.say("What?", user="rater")
        await pages.rate("loopback:rater", room.turn)
        await bot.command("forget", "me", user="rater")
        await bot.command("forget", "me yes", user="rater")
        assert await rows(bot.store, "SELECT rater FROM events UNION SELECT person FROM links") == []
        assert bot.app.authorization.level(pages.user("loopback:rater")) is Grant.RATE, (
            "the config's grants stay"
        )


async def test_without_a_browser_connector_it_is_said(tmp_path: Path) -> None:
    async with open_bot(tmp_path, terminal=True) as bot:
        with pytest.raises(UsageError, match="goodbot connect web"):
            await link(bot)
        assert "not set up" in await bot.command("web")


async def test_a_browser_connector_that_does_not_work_gives_no_link(
    tmp_path: Path, unused_tcp_port: int
) -> None:
    async with served(tmp_path, unused_tcp_port, web={"fails": "canary: no luck"}) as (bot, _):
        with pytest.raises(GoodbotError, match="canary: no luck"):
            await link(bot)
        told = await bot.command("web", user="rater")
        assert told == "the browser does not work now."


async def test_only_the_browser_is_logged_in_to(tmp_path: Path, unused_tcp_port: int) -> None:
    async with served(tmp_path, unused_tcp_port, other={"path": "/other"}) as (bot, _):
        second = bot.app.connectors.running["other"]
        assert isinstance(second, Site)
        with pytest.raises(ValueError, match="no codes for other"):
            await second.host.log_in("x")


async def test_nobody_pairs_with_the_browser(tmp_path: Path, unused_tcp_port: int) -> None:
    async with served(tmp_path, unused_tcp_port) as (bot, _):
        with pytest.raises(UsageError, match="goodbot web"):
            await execute(bot.app, "pair", ("web",))
