# SPDX-License-Identifier: Apache-2.0
"""The Pilot against a whole goodbot: what people do, and what comes of it."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from goodbot.api.events import Outcome
from goodbot.base.errors import ConfigError, GoodbotError
from goodbot.config import ServingConfig, TrainingConfig
from goodbot.testing import Pilot

from tests.core.builders import until
from tests.examples.support import require_backend

TRAINING = TrainingConfig(
    schedule="manual", min_ratings=8, held_out=2, settings={"steps": 4, "gate_anchors": 4}
)
TURNS = ServingConfig(max_tokens=48, history=0, ask="never", memory="turns")
QUESTIONS = [f"What is {n} + {m}?" for n in (2, 3) for m in (1, 2, 3, 4)]


@pytest.fixture(autouse=True, scope="module")
def backend() -> None:
    require_backend()


async def test_talking_rating_and_undoing(tmp_path: Path) -> None:
    async with Pilot.open(tmp_path) as pilot:
        answer = await pilot.say("What is 2 + 2?")
        assert "4" in answer.text
        good = await pilot.react(answer, "👍")
        assert (good.outcome, good.turn) == (Outcome.ACCEPTED, answer.turn)
        assert good.text == "Good. 1 of 40 ratings (39 to go)."
        assert (await pilot.status())["ratings"] == 1
        back = await pilot.unreact(answer, "👍")
        assert back.text == "Taken back. 0 of 40 ratings (40 to go)."
        assert "good" in await pilot.command("help")
        assert (await pilot.command("bad")).startswith("Bad. 1 of 40 ratings (39 to go). “")
        assert "👎" in await pilot.command("history")
        assert pilot.replies == (answer,)


async def test_a_key_that_is_given_leaves_the_others_as_they_are(tmp_path: Path) -> None:
    serving = {"sampling": {"top_k": 5}}
    async with Pilot.open(tmp_path, training={"min_ratings": 8, "held_out": 2}, serving=serving) as pilot:
        config = pilot.app.config
        assert (config.training.min_ratings, config.training.schedule) == (8, "manual")
        assert (config.serving.ask, config.serving.history) == ("never", 0)
        assert config.serving.sampling.top_k == 5
    with pytest.raises(ConfigError, match="unknown key 'min_rating'; did you mean 'min_ratings'"):
        async with Pilot.open(tmp_path, training={"min_rating": 8}):
            pass


async def test_strangers_talkers_and_channels(tmp_path: Path) -> None:
    async with Pilot.open(tmp_path) as pilot:
        told = await pilot.say("Hello!", user="mallory")
        assert told.turn == ""
        assert "mallory" in told.text
        assert (await pilot.say("Hello?", user="mallory")).text == ""
        answer = await pilot.say("What is 3 + 4?", user="talker")
        assert answer.turn
        assert (await pilot.react(answer, "👎", user="talker")).outcome is Outcome.DENIED
        assert (await pilot.react(answer, "👎", user="rater")).outcome is Outcome.ACCEPTED
        off = await pilot.say("Hello!", channel="#general")
        assert (off.turn, off.text) == ("", "I am off in this channel. Type `/rl enable` here, and I answer.")
        for other in ("talker", "rater", "mallory"):  # they could not change it
            assert (await pilot.say("Hello!", channel="#general", user=other)).text == ""
        assert "answer here" in await pilot.command("enable", channel="#general")
        assert (await pilot.say("What is 3 + 4?", channel="#general", user="mallory")).turn
        assert "for the owners" in await pilot.command("pause", user="talker")


async def test_training_comes_to_a_verdict_and_a_restart_goes_on(tmp_path: Path) -> None:
    """Model and training take turns: who asks meanwhile is told, waits, and is answered."""
    async with Pilot.open(tmp_path, training=TRAINING, serving=TURNS) as pilot:
        with pytest.raises(GoodbotError, match="not enough"):
            await pilot.train()
        for question in QUESTIONS:
            answer = await pilot.say(question)
            await pilot.react(answer, "👍" if answer.text.startswith("Great") else "👎")
        training = asyncio.create_task(pilot.train())
        await until(lambda: pilot.app.memory.away, 60)
        asked = asyncio.create_task(pilot.say("What is 5 + 1?"))
        await until(lambda: pilot.chat.notes, 60)
        verdict = await training
        assert (await asked).text.strip()
        [note] = pilot.chat.notes
        assert note.startswith("Learning just now, about ")
        plan = pilot.app.memory.plan
        assert plan is not None
        assert 0 < plan.peaks.serving < plan.peaks.training < plan.peaks.room
        assert verdict.run == 1
        assert verdict.state in ("activated", "refused"), verdict.reason
        assert (await pilot.status())["last_run"]["state"] == verdict.state
    async with Pilot.open(tmp_path, training=TRAINING) as pilot:
        assert (await pilot.status())["version"] == verdict.version
        again = await pilot.say(QUESTIONS[0])
        assert again.turn != answer.turn
        assert (await pilot.react(again, "👍")).outcome is Outcome.ACCEPTED
