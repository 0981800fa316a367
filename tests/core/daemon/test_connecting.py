# SPDX-License-Identifier: Apache-2.0
"""Connectors start side by side: what is of this machine is there at once, whatever a platform does."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import goodbot_connectors.terminal
import pytest
from goodbot import ChannelRef, Connector, ConnectorSpec, MessageRef, Reply, hookimpl
from goodbot.base.errors import FatalConnectorError, RetriableError
from goodbot.base.suggest import TERMINAL
from goodbot.config.lock import socket_path
from goodbot.daemon.app import App
from goodbot.daemon.http import readiness
from goodbot.daemon.wiring import local_owner
from goodbot.store import people, settings
from goodbot_connectors.terminal.connector import SOCKET

from tests.core.builders import GRANTS, Bot, Fake, config, plugins, rows, until
from tests.support import patience


@dataclass(frozen=True, kw_only=True)
class FarSettings:
    """What a test says of it."""

    known_as: str = ""


class Far(Connector):
    """A platform that is connected to when the test lets it; then it does what the test says."""

    def __init__(self, host: Any, settings: FarSettings) -> None:
        super().__init__(host, settings)
        self.goes, self.error = asyncio.Event(), cast("Exception | None", None)
        self.did: list[str] = []

    @property
    def account(self) -> str:
        return "far" if "connected" in self.did else ""

    async def start(self) -> None:
        self.did.append("begins")
        try:
            await self.goes.wait()
        except asyncio.CancelledError:
            self.did.append("ends half way")
            raise
        if self.error:
            raise self.error
        self.did.append("connected")

    async def stop(self) -> None:
        self.did.append("stops")

    async def send(self, channel: ChannelRef, reply: Reply) -> tuple[MessageRef, ...]:
        if "connected" not in self.did:
            raise RetriableError("it is not connected")
        self.did.append(reply.text)
        return (MessageRef(channel=channel, id=str(len(self.did))),)

    async def asks(self, text: str, message: str = "m1") -> None:
        await self.heard(text, user="ada", message=message, at=self.host.clock.now())


def far(name: str) -> tuple[ConnectorSpec, Any]:
    spec = ConnectorSpec(name=name, factory=f"{__name__}:{name.capitalize()}", settings=FarSettings)
    return spec, SimpleNamespace(register_connector=hookimpl(lambda: spec))


AWAY, AWAY_PLUGIN = far("away")
BACK, BACK_PLUGIN = far("back")


class Away(Far):
    """One platform."""

    spec = AWAY


class Back(Far):
    """Another."""

    spec = BACK


@contextlib.asynccontextmanager
async def starting(home: Path, *names: str) -> AsyncGenerator[Bot]:
    """A goodbot that has said that it is up, beside platforms that it may still connect to."""
    fake = Fake(home / "fake")
    sections = {name: {"owners": ["ada"]} for name in names}
    made = dataclasses.replace(config(home / "bot", fake), connectors=sections)
    host = plugins(AWAY_PLUGIN, BACK_PLUGIN, goodbot_connectors.terminal)
    grants = {"loopback": GRANTS, **local_owner()}
    async with App.open(made, host, grants=grants, serve=False) as app:
        async with asyncio.timeout(patience(10)):
            await app.serve(behind=True)
        await app.manager.tried(["loopback"])
        yield Bot(app, fake)


def platform(bot: Bot, name: str) -> Far:
    return cast("Far", bot.app.connectors.running[name])


async def test_b8_a_platform_that_does_not_answer_holds_up_nothing_and_is_seen(tmp_path: Path) -> None:
    async with starting(tmp_path, "away", "back") as bot:
        assert socket_path(tmp_path / "bot" / "connectors" / TERMINAL, SOCKET).exists()
        platform(bot, "back").goes.set()
        await until(lambda: "connected" in platform(bot, "back").did)
        await bot.app.loaded()
        answer = await bot.say("Hello?")
        assert (await bot.react(answer, "👍")).turn == answer.turn
        states = (await bot.status())["connectors"]
        assert {name: states[name] for name in ("away", "back", TERMINAL)} == {
            "away": "connecting",
            "back": "running",
            TERMINAL: "running",
        }
        assert "away: connecting" in await bot.command("status")
        parts = await readiness.parts(bot.app)
        assert (parts["away"], parts["back"], parts[TERMINAL]) == ("connecting", "ok", "ok")
        platform(bot, "away").goes.set()
        await bot.app.connected()
        assert (await bot.status())["connectors"]["away"] == "running"
        assert (await readiness.parts(bot.app))["away"] == "ok"


async def test_b8_what_was_asked_before_is_answered_place_by_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a platform that still connects was asked waits for that, and nothing else does."""
    monkeypatch.setattr("goodbot.daemon.app._DRAIN_SECONDS", 0.0)
    async with starting(tmp_path, "away") as bot:
        away = platform(bot, "away")
        away.goes.set()
        await bot.app.connected()
        await bot.app.loaded()
        bot.fake.set(generate="held")
        asked = asyncio.create_task(bot.say("And here?"))
        await away.asks("Hello?")
        await until(lambda: _open(bot, 2))
    with contextlib.suppress(asyncio.CancelledError):
        await asked
    Fake(tmp_path / "fake").set(generate="ok")
    async with starting(tmp_path, "away") as bot:
        await until(lambda: [answer.text for answer in bot.replies] == ["v0 says: And here?"])
        away = platform(bot, "away")
        assert away.did == ["begins"]
        away.goes.set()
        await until(lambda: away.did == ["begins", "connected", "v0 says: Hello?"])


@pytest.mark.parametrize(
    ("left", "meanwhile", "done"),
    [
        ("/rl resume", ("pause", ""), False),
        ("/rl resume", ("people", "grant talker away:bob"), True),
        ("/rl resume", ("adapters", "list"), True),
        ("/rl people revoke away:bob", ("people", "grant talker away:bob"), False),
        ("/rl people grant talker away:eve", ("people", ""), True),
    ],
)
async def test_b1_what_was_left_undone_overrules_nothing_that_was_done_since(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, left: str, meanwhile: tuple[str, str], done: bool
) -> None:
    """It waits for its platform, and an older `resume` ended a newer `pause`, of which nobody was told."""
    monkeypatch.setattr("goodbot.daemon.app._DRAIN_SECONDS", 0.0)
    async with starting(tmp_path, "away") as bot:
        away = platform(bot, "away")
        away.goes.set()
        await bot.app.connected()
        await bot.app.loaded()
        await bot.command("pause")
        bot.app._tasks["commands"].cancel()
        await away.asks(left)
        await until(lambda: _open(bot, 1))
    async with starting(tmp_path, "away") as bot:
        away = platform(bot, "away")
        await bot.command(*meanwhile)
        away.goes.set()
        await until(lambda: len(away.did) > 2)
        told = "goodbot stopped before this was done: look at `status`."
        assert (told in away.did[2]) is not done, away.did
        await until(lambda: _open(bot, 0))
        status = await bot.status()
        assert status["paused"] is (not done or "resume" not in left)
        people = await bot.command("people")
        assert ("away:eve" in people) is (done and "eve" in left)
        assert ("away:bob" in people) is ("bob" in meanwhile[1])


async def test_b1_of_several_that_were_left_undone_none_overtakes_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("goodbot.daemon.app._DRAIN_SECONDS", 0.0)
    async with starting(tmp_path, "away") as bot:
        away = platform(bot, "away")
        away.goes.set()
        await bot.app.connected()
        await bot.app.loaded()
        bot.app._tasks["commands"].cancel()
        await away.asks("/rl pause")
        await away.asks("/rl resume", "m2")
        await until(lambda: _open(bot, 2))
    async with starting(tmp_path, "away") as bot:
        away = platform(bot, "away")
        away.goes.set()
        await until(lambda: len(away.did) > 3)
        assert not [said for said in away.did if "before this was done" in said]
        assert (await bot.status())["paused"] is False


@pytest.mark.parametrize(
    ("left", "meanwhile", "done"),
    [
        ("/rl share on", "/rl share off", False),
        ("/rl share on", "/rl forget me yes", False),
        ("/rl share on", "/rl status", True),
        ("/rl unlink", "/rl share off", True),
    ],
)
async def test_b1_what_somebody_says_for_themselves_is_not_overruled_by_what_they_said_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, left: str, meanwhile: str, done: bool
) -> None:
    """An older `share on` came after the `share off` that was told as done while it still waited."""
    monkeypatch.setattr("goodbot.daemon.app._DRAIN_SECONDS", 0.0)
    async with starting(tmp_path, "away") as bot:
        away = platform(bot, "away")
        away.goes.set()
        await bot.app.connected()
        await bot.app.loaded()
        await bot.store.write(lambda db: people.link(db, "away:ada", "loopback:owner", 1.0))
        bot.app._tasks["commands"].cancel()
        await away.asks(left)
        await until(lambda: _open(bot, 1))
    async with starting(tmp_path, "away") as bot:
        away = platform(bot, "away")
        await away.asks(meanwhile, "m2")
        await until(lambda: _open(bot, 1))
        away.goes.set()
        await until(lambda: _open(bot, 0))
        if not done:
            await until(lambda: any("before this was done" in said for said in away.did))
        assert not done or not any("before this was done" in said for said in away.did), away.did
        shares = await bot.store.read(lambda db: settings.shares(db, "away:ada"))
        assert shares is (left == "/rl share on" and done)
        together = await bot.store.read(lambda db: people.accounts(db, "away:ada"))
        assert ("loopback:owner" in together) is ("unlink" not in left)


async def test_b1_what_was_said_on_another_account_of_theirs_is_not_overruled_either(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`share` is said for all accounts that are one person."""
    monkeypatch.setattr("goodbot.daemon.app._DRAIN_SECONDS", 0.0)
    async with starting(tmp_path, "away") as bot:
        away = platform(bot, "away")
        away.goes.set()
        await bot.app.connected()
        await bot.app.loaded()
        await bot.store.write(lambda db: people.link(db, "away:ada", "loopback:owner", 1.0))
        bot.app._tasks["commands"].cancel()
        await away.asks("/rl share on")
        await until(lambda: _open(bot, 1))
    async with starting(tmp_path, "away") as bot:
        away = platform(bot, "away")
        await bot.command("share", "off")
        away.goes.set()
        await until(lambda: any("before this was done" in said for said in away.did))
        assert not await bot.store.read(lambda db: settings.shares(db, "away:ada"))


@pytest.mark.parametrize("who", ["away:ada", "me"])
@pytest.mark.parametrize("left", ["/rl share on", "/rl link", "/rl good"])
async def test_s6_what_waits_of_an_account_that_was_forgotten_is_not_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, left: str, who: str
) -> None:
    """The accounts were one person's, who asked for it on either of them while the command waited."""
    monkeypatch.setattr("goodbot.daemon.app._DRAIN_SECONDS", 0.0)
    async with starting(tmp_path, "away") as bot:
        away = platform(bot, "away")
        away.goes.set()
        await bot.app.connected()
        await bot.app.loaded()
        await away.asks("Hello?", "m0")
        await until(lambda: _open(bot, 0))
        await bot.store.write(lambda db: people.link(db, "away:ada", "loopback:owner", 1.0))
        bot.app._tasks["commands"].cancel()
        await away.asks(left)
        await until(lambda: _open(bot, 1))
    async with starting(tmp_path, "away") as bot:
        away = platform(bot, "away")
        await bot.app.commands.execute(bot.chat.typed("forget", f"{who} yes"), direct=True)
        away.goes.set()
        await until(lambda: any("before this was done" in said for said in away.did))
        await until(lambda: _open(bot, 0))
        assert not await bot.store.read(lambda db: settings.shares(db, "away:ada"))
        assert "loopback:owner" not in await bot.store.read(lambda db: people.accounts(db, "away:ada"))
        assert await rows(bot.store, "SELECT count(*) FROM codes") == [(0,)]
        assert await rows(bot.store, "SELECT count(*) FROM events") == [(0,)]


@pytest.mark.parametrize(
    ("left", "done"), [("link away:ada", False), ("grant rater away:ada", False), ("revoke away:bob", True)]
)
async def test_s6_what_an_owner_said_before_brings_nobody_back_who_was_forgotten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, left: str, done: bool
) -> None:
    monkeypatch.setattr("goodbot.daemon.app._DRAIN_SECONDS", 0.0)
    async with starting(tmp_path, "away", "back") as bot:
        back = platform(bot, "back")
        back.goes.set()
        await bot.app.manager.tried(["back"])
        await bot.app.loaded()
        await bot.command("people", "grant talker away:bob")
        bot.app._tasks["commands"].cancel()
        await back.asks(f"/rl people {left}")
        await until(lambda: _open(bot, 1))
    async with starting(tmp_path, "away", "back") as bot:
        back = platform(bot, "back")
        asked = bot.chat.typed("forget", "away:ada yes")
        await bot.app.commands.execute(asked, direct=True)
        back.goes.set()
        await until(lambda: len(back.did) > 2)
        assert ("before this was done" in back.did[2]) is not done, back.did
        assert len(await bot.store.read(lambda db: people.accounts(db, "away:ada"))) == 1
        assert ("away:bob" in await bot.command("people")) is not done


async def _open(bot: Bot, count: int) -> bool:
    return len(await bot.app.dispatcher.unfinished()) == count


async def test_what_does_not_start_is_told_as_before_in_the_same_order(tmp_path: Path) -> None:
    async with starting(tmp_path, "away", "back") as bot:
        away, back = platform(bot, "away"), platform(bot, "back")
        away.error, back.error = RuntimeError("no luck"), FatalConnectorError("the token is refused")
        back.goes.set()  # it is the first to fail
        await until(lambda: bot.app.connectors.errors["back"] == "the token is refused")
        away.goes.set()
        await bot.app.connected()
        told = [("away", "RuntimeError: no luck"), ("back", "the token is refused")]
        assert [*bot.app.connectors.errors.items()] == told


async def test_one_that_is_down_at_first_is_tried_again(tmp_path: Path) -> None:
    async with starting(tmp_path, "away") as bot:
        away = platform(bot, "away")
        away.error = RetriableError("it is down", retry_after=0.0)
        away.goes.set()
        await bot.app.connected()
        assert bot.app.connectors.errors == {"away": "it is down (trying again)"}
        assert (await bot.status())["retrying"] == ["away"]
        away.error = None
        await until(lambda: bot.app.connectors.errors == {})
        assert (await bot.status())["retrying"] == []
        assert away.did == ["begins", "begins", "connected"]


@pytest.mark.parametrize("late", [False, True])
async def test_who_stops_while_it_connects_ends_that_first(tmp_path: Path, late: bool) -> None:
    """Also where it waits to try again: nothing connects any more once it has stopped."""
    async with starting(tmp_path, "away") as bot:
        away = platform(bot, "away")
        if late:
            away.error = RetriableError("it is down", retry_after=0.0)
            away.goes.set()
            await bot.app.connected()
            away.error = None
        await until(lambda: "begins" in away.did)
    assert away.did == (["begins", "stops"] if late else ["begins", "ends half way", "stops"])
