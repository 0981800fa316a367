# SPDX-License-Identifier: Apache-2.0
"""A model that is not there yet, or has ended, is waited for; one that does not come is told at once."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest
from goodbot.api.completions import CompletionRequest
from goodbot.api.events import ChannelKind, ChannelRef, Outcome, UserRef
from goodbot.base.errors import ServerError
from goodbot.cli.service.supervision import Supervision
from goodbot.config import HttpConfig
from goodbot.daemon.app import App
from goodbot.daemon.loopback.chat import _Stream
from goodbot.daemon.wiring import choose
from goodbot.testing import VirtualClock

from tests.core.builders import GRANTS, Bot, Fake, check, config, open_bot, plugins, rows, until
from tests.core.daemon.http.test_health import ask

NO_START = {"no start": "There was not enough memory."}


def dies(bot: Bot) -> None:
    """The next answer ends the model after its first sign."""
    (bot.fake.path / "die").touch()


def kill(bot: Bot) -> None:
    server: Any = bot.app.server
    os.kill(server._sampler._process.pid, signal.SIGKILL)


async def test_b7_a_question_under_which_the_model_ends_is_answered_by_the_next_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown: list[str] = []

    async def append(_: object, text: str) -> None:
        shown.append(text)

    monkeypatch.setattr(_Stream, "append", append)
    async with open_bot(tmp_path) as bot:
        await bot.rated(8)
        await bot.train()
        dies(bot)
        shown.clear()
        assert (await bot.say("Hello?")).text == "v1 says: Hello?"
        assert "".join(shown) == "v1 says: Hello?", "what was shown is not written twice"
        kill(bot)
        await until(lambda: not bot.app.server.healthy())
        said = await asyncio.gather(*(bot.say(f"Number {n}?", user="owner") for n in range(3)))
        assert [one.text for one in said] == [f"v1 says: Number {n}?" for n in range(3)]
        await until(lambda: not bot.app.follow_up_tasks.answering)
        assert await bot.app.dispatcher.unfinished() == []
        await check(bot)


async def test_b7_a_model_that_does_not_come_back_is_told_at_once(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        bot.fake.set(**NO_START)
        dies(bot)
        assert "my model is not running" in (await bot.say("Hello?")).text
        bot.fake.set(**{"no start": ""})
        assert (await bot.say("And now?")).text == "v0 says: And now?"


async def test_b7_a_question_that_ends_the_model_each_time_is_given_up(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        before = bot.app.registry.lives
        bot.fake.set(generate="die")
        assert "my model is not running" in (await bot.say("Hello?")).text
        assert bot.app.registry.lives == before + 2
        bot.fake.set(generate="ok")
        assert (await bot.say("And now?")).text == "v0 says: And now?"


async def test_b7_a_program_that_has_seen_nothing_waits_as_a_person_does(tmp_path: Path) -> None:
    asked = CompletionRequest(
        messages=[{"role": "user", "content": "Hello?"}],
        user=UserRef(connector="loopback", account="loopback", id="owner"),
        channel=ChannelRef(connector="loopback", account="loopback", id="x", kind=ChannelKind.PRIVATE),
    )
    async with open_bot(tmp_path) as bot:
        model, before = bot.chat.host.model, bot.app.registry.lives

        async def whole() -> Any:
            return [piece async for piece in model.answer(asked)][-1]

        dies(bot)
        assert (await model.until_answered(whole)).text == "v0 says: Hello?"
        assert bot.app.registry.lives == before + 1
        bot.fake.set(generate="die")
        with pytest.raises(ServerError):
            await model.until_answered(whole)
        assert bot.app.registry.lives == before + 3, "it is given up after three"


async def test_b7_where_a_program_may_ask_itself_is_asked_again_once_the_model_is_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A person's question waited for the restart; a program's was refused."""
    asked = CompletionRequest(
        messages=[{"role": "user", "content": "Hello?"}],
        user=UserRef(connector="loopback", account="loopback", id="owner"),
        channel=ChannelRef(connector="loopback", account="loopback", id="x", kind=ChannelKind.PRIVATE),
    )
    async with open_bot(tmp_path) as bot:
        server: Any = bot.app.server
        real, failed = server.far_side, list[str]()

        @contextlib.asynccontextmanager
        async def far_side(request: Any) -> AsyncGenerator[Any]:
            if not server.healthy():
                failed.append("it has ended")
                raise ServerError("it has ended")
            async with real(request) as far:
                yield far

        monkeypatch.setattr(server, "far_side", far_side)
        before = bot.app.registry.lives
        kill(bot)
        await until(lambda: not server.healthy())
        async with bot.chat.host.model.far_side(asked) as far:
            assert far is None, "a model of ours has no address of its own"
        assert bot.app.registry.lives == before + 1
        assert len(failed) <= 1


async def test_b7_a_model_that_ends_at_the_swap_costs_no_training(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        await bot.rated(8)
        await bot.start_training()
        dies(bot)  # when the new version is asked whether it answers
        run = await bot.finish_training()
        assert (run.state, run.reason) == ("activated", "better")
        await bot.settle()
        assert (await bot.say("Hello?")).text == "v1 says: Hello?"
        await check(bot)


async def test_b7_a_model_that_is_gone_at_the_swap_costs_no_training(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        await bot.rated(8)
        await bot.start_training()
        bot.fake.set(**NO_START)
        dies(bot)
        run = await bot.finish_training()
        assert (run.state, run.reason) == ("activated", "better")
        await bot.settle()
        [version] = await bot.app.registry.rows()
        assert (version.tainted, version.waits) == ("", "kept_away")
        bot.fake.set(train="ok", **{"no start": ""})
        await bot.app.maintenance.look_after_server()
        assert await bot.app.registry.active() == 1
        assert (await bot.say("Hello?")).text == "v1 says: Hello?"
        await check(bot)


async def test_b8_ratings_are_taken_and_questions_wait_while_the_model_loads(
    tmp_path: Path, unused_tcp_port: int
) -> None:
    async with open_bot(tmp_path) as bot:
        answer = await bot.say("What is love?")
    fake, clock = Fake(tmp_path / "fake"), VirtualClock(waits=True)
    loads = fake.path / "loads"
    loads.touch()
    chosen = choose(config(tmp_path / "bot", fake), plugins(), grants={"loopback": GRANTS}, clock=clock)
    supervision = Supervision(HttpConfig(port=unused_tcp_port))
    await supervision.start()
    async with contextlib.AsyncExitStack() as ends:
        ends.push_async_callback(supervision.stop)
        app = await ends.enter_async_context(App.made(chosen))
        ends.callback(loads.unlink, missing_ok=True)
        await app.serve(behind=True)
        await app.connected()
        supervision.begun(app)
        bot = Bot(app, fake)
        receipt = await bot.react(answer, "👍")
        assert receipt.outcome is Outcome.ACCEPTED
        assert len(await bot.labels(answer)) == 1
        asked = asyncio.create_task(bot.say("And now?"))
        await until(lambda: bot.chat.notes)
        assert bot.chat.notes == ["My model is loading: I answer right after."]
        clock.advance(12)
        status = await bot.status()
        assert (status["server"], status["starting"]) == ("starting", "starting: loading the model, 12 s")
        assert (await bot.command("status")).startswith("starting: loading the model, 12 s\n")
        code, told = await ask(unused_tcp_port, "/readyz")
        assert (code, told["status"], told["missing"]) == (503, "starting", ["model"])
        assert told["model"] == "starting: loading the model, 12 s"
        assert not asked.done()
        loads.unlink()
        assert (await asked).text == "v0 says: And now?"
        await app.loaded()
        assert (await ask(unused_tcp_port, "/readyz"))[1]["status"] == "ready"
        assert (await bot.status())["starting"] == ""


async def test_b8_a_model_that_does_not_load_ends_goodbot_and_keeps_what_was_asked(tmp_path: Path) -> None:
    fake = Fake(tmp_path / "fake")
    fake.set(**NO_START)
    async with App.open(
        config(tmp_path / "bot", fake), plugins(), grants={"loopback": GRANTS}, serve=False
    ) as app:
        await app.serve(behind=True)
        await app.connected()
        bot = Bot(app, fake)
        asked = asyncio.create_task(bot.say("Hello?"))
        await until(lambda: rows(app.store, "SELECT 1 FROM inbox WHERE payload <> ''"))
        with pytest.raises(ServerError, match="not enough memory"):
            await app.loaded()
        assert not asked.done()
    asked.cancel()
    fake.set(**{"no start": ""})
    async with open_bot(tmp_path) as bot:
        await until(lambda: bot.replies)
        assert bot.replies[0].text == "v0 says: Hello?"
