# SPDX-License-Identifier: Apache-2.0
"""One memory, two tenants: who stays, who waits, and that the model comes back whatever happens."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest
from goodbot.api.sentences import words
from goodbot.base.errors import ServerError
from goodbot.base.worded import Worded
from goodbot.config import ServingConfig
from goodbot.daemon.app import App
from goodbot.daemon.loopback import Answer
from goodbot.inference.servers.embedded import EmbeddedServer
from goodbot.learning.training.memory_estimate import Peaks
from goodbot.learning.training.memory_sharing import Sharing, choose
from goodbot.learning.training.unavailability import LONGEST, Absence
from goodbot.store import inbox
from goodbot.testing import VirtualClock

from tests.core.builders import GRANTS, Bot, config, open_bot, plugins, until

TURNS = {"serving": ServingConfig(history=0, memory="turns", ask="never")}
GB = 10**9
ROOMY = Peaks(serving=2 * GB, training=3 * GB, room=4 * GB)
TIGHT = Peaks(serving=2 * GB, training=3 * GB, room=1 * GB)
UNKNOWN = Peaks(serving=0, training=0, room=4 * GB)
LATE = Worded("v{version} is not loaded", version=1)
FAR = "http://gpu.lan:8000 is another machine"


# -- the plan


@pytest.mark.parametrize(
    ("wanted", "peaks", "apart", "gives_room", "sharing", "why"),
    [
        ("auto", ROOMY, "", True, "together", "4.0 GB are there for a training"),
        ("auto", TIGHT, "", True, "turns", "1.0 GB are there for a training"),
        ("auto", TIGHT, FAR, True, "elsewhere", FAR),
        ("auto", TIGHT, "", False, "together", "this server cannot give its memory back"),
        ("auto", UNKNOWN, "", True, "together", "cannot be read from its config"),
        ("together", TIGHT, "", True, "together", 'memory = "together" says so'),
        ("turns", ROOMY, FAR, True, "turns", 'memory = "turns" says so'),
        ("turns", ROOMY, "", False, "together", "this server cannot give its memory back"),
        ("elsewhere", TIGHT, "", True, "elsewhere", 'memory = "elsewhere" says so'),
    ],
)
def test_the_first_that_fits_or_what_the_owner_says(
    wanted: str, peaks: Peaks, apart: str, gives_room: bool, sharing: str, why: str
) -> None:
    plan = choose(wanted, peaks, apart=apart, gives_room=gives_room)
    assert plan.sharing == sharing
    assert why in plan.why


def test_what_does_not_fit_beside_the_model_by_a_byte_takes_turns() -> None:
    fits = Peaks(serving=GB, training=GB, room=GB)
    over = Peaks(serving=GB, training=GB + 1, room=GB)
    found = [choose("auto", peaks, apart="", gives_room=True).sharing for peaks in (fits, over)]
    assert found == [Sharing.TOGETHER, Sharing.TURNS]


# -- a whole goodbot that takes turns


@contextlib.asynccontextmanager
async def learning(home: Path, **options: Any) -> AsyncGenerator[Bot]:
    """A bot whose training has the model's memory, and waits for `finish_training`."""
    async with open_bot(home, **{"sections": TURNS, **options}) as bot:
        await bot.rated(8)
        await bot.start_training()
        assert bot.app.memory.away
        yield bot


async def asked(bot: Bot, text: str = "What have you learnt?", user: str = "owner") -> asyncio.Task[Answer]:
    """A question that has come in, and its answer to be."""
    told = len(bot.chat.notes)
    answer = asyncio.create_task(bot.say(text, user=user))
    await until(lambda: len(bot.chat.notes) > told)
    return answer


async def sampling(bot: Bot) -> bool:
    """Whether the model's process holds its memory."""
    server = bot.app.server
    assert isinstance(server, EmbeddedServer)
    return server._sampler.alive()


async def test_who_asks_while_it_learns_is_told_once_and_answered_by_the_new_version(tmp_path: Path) -> None:
    async with learning(tmp_path) as bot:
        assert not await sampling(bot)
        answer = await asked(bot)
        assert bot.chat.notes == ["Learning just now: I answer right after."]
        await asyncio.sleep(0.1)
        assert not answer.done()
        run = await bot.finish_training()
        assert run.state == "activated", run.reason
        assert (await answer).text == "v1 says: What have you learnt?"
        assert await sampling(bot)
        assert len(bot.chat.notes) == 1


async def test_it_says_how_long_by_how_long_the_last_time_took(tmp_path: Path) -> None:
    clock = VirtualClock(waits=True)
    async with learning(tmp_path, clock=clock) as bot:
        clock.advance(170)
        await bot.finish_training()
        await bot.rated(8)
        await bot.start_training()
        answers = [await asked(bot, "How long?")]
        clock.advance(60)
        answers.append(await asked(bot, "And now?", user="rater"))
        clock.advance(1000)
        answers.append(await asked(bot, "Still?", user="talker"))
        assert [note.partition(", ")[2] for note in bot.chat.notes[-3:]] == [
            "about 3 min: I answer right after.",
            "about 2 min: I answer right after.",
            "about 1 min: I answer right after.",
        ]
        await bot.finish_training()
        await asyncio.gather(*answers)


async def test_what_was_asked_just_before_is_answered_before_it_learns(tmp_path: Path) -> None:
    async with open_bot(tmp_path, sections=TURNS) as bot:
        await bot.rated(8)
        bot.fake.set(generate="slow", train="slow")
        answer = asyncio.create_task(bot.say("one two three four five six seven eight"))
        await until(lambda: bot.app.follow_up_tasks.answering)
        await bot.command("train")
        assert (await answer).text.startswith("v0 says: one two")
        bot.fake.set(generate="ok")
        await until(lambda: (bot.app.trainer.progress or {}).get("steps") == 2)
        bot._slow = (await bot.last_run()).id
        await bot.finish_training()


@pytest.mark.parametrize("how", ["crash", "refuse"])
async def test_however_the_training_ends_the_model_is_back(how: str, tmp_path: Path) -> None:
    async with open_bot(tmp_path, sections=TURNS) as bot:
        await bot.rated(8)
        bot.fake.set(train=how)
        verdict = await bot.train()
        assert verdict.state in ("failed", "refused")
        assert not bot.app.memory.away
        assert (await bot.say("Hello?")).text == "v0 says: Hello?"


@pytest.mark.parametrize("word", ["cancel", "pause"])
async def test_whoever_ends_it_the_questions_are_answered(word: str, tmp_path: Path) -> None:
    async with learning(tmp_path) as bot:
        answer = await asked(bot)
        await bot.command(word)
        assert (await answer).text == "v0 says: What have you learnt?"
        assert not bot.app.memory.away


async def test_the_version_that_answered_before_answers_after(tmp_path: Path) -> None:
    async with learning(tmp_path) as bot:
        await bot.finish_training()
        await bot.rated(8)
        await bot.start_training()
        answer = await asked(bot)
        await bot.command("cancel")
        assert (await answer).text == "v1 says: What have you learnt?"


async def test_the_reconciler_lets_it_learn(tmp_path: Path) -> None:
    async with learning(tmp_path) as bot:
        await bot.app.maintenance.look_after_server()
        assert not await sampling(bot)
        await bot.finish_training()


async def test_a_rollback_meanwhile_brings_the_model_back_first(tmp_path: Path) -> None:
    async with learning(tmp_path) as bot:
        await bot.finish_training()
        await bot.rated(8)
        await bot.start_training()
        await bot.rollback("base")
        assert (await bot.say("Hello?")).text == "v0 says: Hello?"


@pytest.mark.parametrize(
    ("fails", "why"),
    [
        (None, "This server cannot give its memory back now, so both stay."),
        (TimeoutError(), "The server could not give its memory back (it took too long), so"),
        (ServerError(LATE), "The server could not give its memory back (v1 is not loaded), so"),
    ],
)
async def test_a_server_that_cannot_give_room_stays(
    fails: Exception | None, why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def no(self: EmbeddedServer) -> bool:
        if fails:
            raise fails
        return False

    monkeypatch.setattr(EmbeddedServer, "make_room", no)
    async with open_bot(tmp_path, sections=TURNS) as bot:
        await bot.rated(8)
        await bot.start_training()
        assert (await bot.say("Hello?")).text == "v0 says: Hello?"
        plan = bot.app.memory.plan
        assert plan is not None
        assert plan.sharing is Sharing.TOGETHER
        assert plan.why.startswith(why)
        told = words(*plan.said, language="de")
        assert ("v1 ist nicht geladen" in told) == (str(fails) == LATE)
        assert (await bot.finish_training()).state == "activated"


async def test_a_model_that_does_not_come_back_is_started_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    coming = EmbeddedServer.come_back

    async def fails(self: EmbeddedServer) -> None:
        monkeypatch.setattr(EmbeddedServer, "come_back", coming)
        self._away = False
        self._open.set()
        raise ServerError("there was not enough memory")

    async with learning(tmp_path) as bot:
        monkeypatch.setattr(EmbeddedServer, "come_back", fails)
        answer = await asked(bot)
        await bot.command("cancel")
        assert (await answer).text == "v0 says: What have you learnt?"


async def test_who_is_cancelled_while_the_model_comes_back_leaves_no_half_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    coming, begun, go = EmbeddedServer.come_back, asyncio.Event(), asyncio.Event()

    async def slow(self: EmbeddedServer) -> None:
        begun.set()
        await go.wait()
        await coming(self)

    async with learning(tmp_path) as bot:
        monkeypatch.setattr(EmbeddedServer, "come_back", slow)
        answer = await asked(bot)
        first = asyncio.create_task(bot.app.memory._come_back())
        await begun.wait()
        first.cancel()
        go.set()
        await bot.command("cancel")
        assert (await answer).text == "v0 says: What have you learnt?"


# -- across a restart


async def test_what_was_asked_meanwhile_is_answered_after_a_crash_however_long_it_took(
    tmp_path: Path,
) -> None:
    clock = VirtualClock(waits=True)
    async with learning(tmp_path, clock=clock) as bot:
        bot.fake.set(train="ok")
        answer = await asked(bot)
        clock.advance(3000)
        begun = clock.monotonic()
    answer.cancel()
    clock.advance(60)
    made = config(tmp_path / "bot", bot.fake)
    async with App.open(made, plugins(), grants={"loopback": GRANTS}, clock=clock) as app:
        later = Bot(app, bot.fake)
        await until(lambda: later.replies)
        assert later.replies[0].text.endswith("says: What have you learnt?")

        async def done() -> bool:
            return not await app.store.read(inbox.unfinished)

        await until(done)
        assert clock.monotonic() - begun >= 60


@pytest.mark.parametrize(
    ("absence", "asked", "now", "waited"),
    [
        (Absence(since=1000, until=2000), 1500, 2100, 100),
        (Absence(since=1000, until=2000), 900, 2100, 200),
        (Absence(since=1000, until=2000), 2050, 2100, 50),
        (Absence(since=1000, until=2000), 100, 900, 800),
        (Absence(since=0, until=0), 1500, 2100, 600),
        (Absence(since=1000), 1500, 9000, 0),
        (Absence(since=1000), 1500, 1000 + LONGEST + 700, 700),
    ],
)
def test_only_the_time_away_does_not_count(absence: Absence, asked: float, now: float, waited: float) -> None:
    assert absence.waited(asked, now) == waited


# -- what is said of it


async def test_status_tells_who_waits_and_why(tmp_path: Path) -> None:
    async with learning(tmp_path) as bot:
        told = await bot.command("status")
        assert "questions wait until it is done" in told
        assert 'memory: They take turns: memory = "turns" says so.' in told
        assert (await bot.status())["tenancy"]["sharing"] == "turns"
        await bot.finish_training()
        assert "questions wait" not in await bot.command("status")


async def test_a_dry_run_tells_both_peaks_and_the_plan(tmp_path: Path) -> None:
    async with open_bot(tmp_path, sections=TURNS) as bot:
        await bot.rated(8)
        told = await bot.command("train", "--dry-run --details")
        assert 'Peaks: not known. They take turns: memory = "turns" says so.' in told
        assert "Questions wait meanwhile" in told
        assert not bot.app.memory.away
