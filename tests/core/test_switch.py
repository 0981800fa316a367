# SPDX-License-Identifier: Apache-2.0
"""To another base model: what was rated goes along, and nothing changes unless all went well."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest
from goodbot.api.estimate import FEWEST
from goodbot.base.errors import GoodbotError, StoreError
from goodbot.base.machine import device as machine
from goodbot.config import load
from goodbot.daemon.app import App
from goodbot.inference.models import catalogue, resolve
from goodbot.learning import worker_process
from goodbot.learning.model_switch import ModelSwitch, Switched
from goodbot.store import adapters

from tests.core.builders import GRANTS, Bot, Fake, check, check_store, config, open_bot, plugins, rows, until


@pytest.fixture
def other(tmp_path: Path) -> Fake:
    """A second base model."""
    return Fake(tmp_path / "other")


@contextlib.asynccontextmanager
async def open_on(home: Path, fake: Fake, **training: Any) -> AsyncGenerator[Bot]:
    """The bot of `home` on this model, as after a restart."""
    settings = config(home / "bot", fake, **training)
    async with App.open(settings, plugins(), grants={"loopback": GRANTS}) as app:
        yield Bot(app, fake)


async def switch(bot: Bot, model: Fake, *, bare: bool = False) -> Switched:
    """`goodbot model switch`; `bare` when its person wants the model untaught."""
    return await bot.app.model_switch.to(str(model.path), bare=bare)


def name(model: Fake) -> str:
    return resolve(str(model.path), {}, demo=False).name


async def pointer(bot: Bot, model: Fake) -> int:
    return await bot.store.read(lambda db: adapters.pointer(db, "default", name(model)))


def configured(bot: Bot) -> str:
    return load(bot.app.config.home).model.path


async def untouched(bot: Bot) -> bool:
    """Nobody who talks to it can tell that there was a switch."""
    answer = await bot.say("still there?")
    return configured(bot) == "" and not bot.app.restart.is_set() and answer.text.startswith("v")


async def test_the_ratings_are_replayed_on_the_new_model(
    tmp_path: Path, other: Fake, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[dict[str, Any]] = []
    real = worker_process.train

    async def train(spec: Any, job: Any, on_event: Any) -> Any:
        seen.append(job)
        return await real(spec, job, on_event)

    monkeypatch.setattr(worker_process, "train", train)
    async with open_bot(tmp_path) as bot:
        await bot.rated(8)
        await bot.train()  # what is used up here is not used up there
        await bot.rated(2)
        done = await switch(bot, other)
        assert (done.done, done.model, done.version) == (True, name(other), 2)
        assert configured(bot) == str(other.path)
        assert bot.app.restart.is_set()
        assert (await bot.say("Who?")).text.startswith("v1 says"), "until the restart"
        row = await bot.app.registry.row(2)
        assert (row.model, row.parent) == (name(other), 0)
        assert (await pointer(bot, other), await bot.app.registry.active()) == (2, 1)
        assert (await bot.status())["ratings"] == 4, "two were held out, two are new"
        job = seen[1]
        assert (job["model"], job["parent"], job["behaviour"]) == (str(other.path), None, {})
        assert len(job["items"]) == 10
        assert {item["split"] for item in job["items"]} == {"train", "held_out"}
        for item in job["items"]:  # words only: neither tokens nor log-probs mean anything there
            assert (item["version"], item["tokens"], item["logprobs"]) == (None, (), ())
            assert item["prompt_tokens"] == ()
            assert item["response"].endswith(item["messages"][0]["content"])
        await check(bot)
    async with open_on(tmp_path, other) as bot:
        assert (await bot.say("Who?")).text == "v2 says: Who?"
        assert (await bot.status())["ratings"] == 0, "no round counts them again"
        await check(bot)


async def test_a_larger_model_is_taught_within_this_machines_memory(
    tmp_path: Path, other: Fake, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = next(one.config for one in catalogue.entries() if one.name == "Qwen/Qwen3-0.6B")
    (other.path / "config.json").write_text(json.dumps(config))
    monkeypatch.setattr(machine, "available_memory", lambda: 12 * 10**9)  # too little for all
    jobs_seen: list[dict[str, Any]] = []
    real = worker_process.train

    async def train(spec: Any, job: Any, on_event: Any) -> Any:
        jobs_seen.append(job["settings"])
        return await real(spec, job, on_event)

    monkeypatch.setattr(worker_process, "train", train)
    async with open_bot(tmp_path) as bot:
        await bot.rated(8)
        await switch(bot, other)
        written = load(bot.app.config.home).training.settings
    [used] = jobs_seen
    limits = {key: used[key] for key in ("tokens_per_forward", "max_sequence_tokens")}
    assert set(limits.values()) == {FEWEST}
    assert written == limits, "also for the trainings to come"


async def test_back_to_the_old_model_and_what_it_had_learnt(tmp_path: Path, other: Fake) -> None:
    async with open_bot(tmp_path) as bot:
        await bot.rated(8)
        await bot.train()
        await switch(bot, other)
        old = bot.fake
    async with open_on(tmp_path, other) as bot:
        await bot.rated(2)
        back = await switch(bot, old)
        assert (back.done, back.version) == (True, 1)
        assert "2 ratings can be replayed on it, 8 are needed" in back.reason
    async with open_on(tmp_path, old) as bot:
        assert (await bot.say("Who?")).text == "v1 says: Who?"
        await check(bot)
    async with open_on(tmp_path, other) as bot:
        assert await bot.app.server.served() == 2
        bot.answers = ["the questions differ"] * 20  # type: ignore[list-item]
        await bot.rated(8)
        back = await switch(bot, old)
        assert (back.done, back.version) == (True, 3), "a whole round is replayed on top"
        row = await bot.app.registry.row(3)
        assert (row.model, row.parent) == (name(old), 1)
        assert len(await rows(bot.store, "SELECT * FROM run_items WHERE run = ?", (row.run,))) == 12
        await check_store(bot.store)


async def test_a_model_that_does_not_come_up_changes_nothing(tmp_path: Path, other: Fake) -> None:
    other.set(**{"no start": "There was not enough memory."})
    async with open_bot(tmp_path) as bot:
        await bot.rated(8)
        with pytest.raises(GoodbotError, match="not enough memory"):
            await switch(bot, other)
        assert await untouched(bot)
        assert await rows(bot.store, "SELECT * FROM runs") == []


async def test_an_adapter_that_the_new_model_cannot_load_changes_nothing(tmp_path: Path, other: Fake) -> None:
    other.set(refused=[1])
    async with open_bot(tmp_path) as bot:
        await bot.rated(8)
        done = await switch(bot, other)
        assert (done.done, "another shape" in done.reason) == (False, True)
        assert await pointer(bot, other) == 0
        assert await untouched(bot)
        await check(bot)


@pytest.mark.parametrize("mode", ["refuse", "nan", "crash"])
async def test_what_was_not_learnt_changes_nothing_unless_it_is_wanted_bare(
    tmp_path: Path, other: Fake, mode: str
) -> None:
    other.set(train=mode)
    async with open_bot(tmp_path) as bot:
        await bot.rated(8)
        done = await switch(bot, other)
        assert done.done is False
        assert await untouched(bot)
        other.set(train="ok")
        again = await switch(bot, other)
        assert again.done is True, "all of it is replayed again"
    async with open_bot(tmp_path / "second") as bot:
        answers = await bot.rated(8)
        bare = await switch(bot, other, bare=True)
        assert (bare.done, bare.version) == (True, 0)
        assert await rows(bot.store, "SELECT * FROM runs") == []
    async with open_on(tmp_path / "second", other) as bot:
        assert (await bot.say("Who?")).text == "v0 says: Who?"
        bot.answers = answers
        new = await bot.rated(4)
        await bot.train()
        learnt = {turn for (turn,) in await rows(bot.store, "SELECT turn FROM run_items")}
        assert learnt == {answer.turn for answer in new}, "its own rounds take its own answers"


async def test_one_rating_is_too_few(tmp_path: Path, other: Fake) -> None:
    async with open_bot(tmp_path) as bot:
        await bot.rated(1)
        done = await switch(bot, other)
        assert done.reason == "1 rating can be replayed on it, 2 are needed"
        assert done.done is False
        assert await untouched(bot)


async def test_an_undo_of_a_replayed_rating_trains_the_rest_again(tmp_path: Path, other: Fake) -> None:
    async with open_bot(tmp_path) as bot:
        answers = await bot.rated(8)
        await switch(bot, other)
    async with open_on(tmp_path, other) as bot:
        # Whichever it trained on: the gate's own ratings teach nothing, so they taint nothing.
        trained = await bot.trained_by(1)
        taken = next(answer for answer in answers if answer.turn in trained)
        emoji = "👍" if trained[taken.turn] > 0 else "👎"
        await bot.command("pause")
        receipt = await bot.unreact(taken, emoji)
        assert "7 of 8" in receipt.text, "what was replayed is to be learnt again"
        assert (await bot.status())["ratings"] == 7
        await bot.app.scheduler._look()
        assert await bot.app.registry.active() == 0, "it answers no more; nothing replaces it yet"
        await bot.command("resume")
        await bot.train()
        row = await bot.app.registry.row(2)
        assert (row.parent, await bot.app.registry.active()) == (0, 2)
        assert taken.turn not in await bot.trained_by(2)
        items = await rows(bot.store, "SELECT turn FROM run_items WHERE run = ?", (row.run,))
        assert len(items) == 7
        assert (await bot.status())["ratings"] == 0
        await check(bot)


async def test_an_undo_on_another_model_does_not_make_this_one_train(tmp_path: Path, other: Fake) -> None:
    async with open_bot(tmp_path) as bot:
        answers = await bot.rated(8)
        await switch(bot, other)
        for answer, emoji in zip(answers, "👍👎" * 4, strict=False):
            await bot.unreact(answer, emoji)
        assert (await bot.app.registry.row(1)).tainted
        assert not (await bot.app.scheduler.readiness()).urgent
        assert not (await bot.status())["tainted"]
    async with open_on(tmp_path, other) as bot:
        await bot.settle()
        assert await bot.app.registry.active() == 0, "there is nothing left to train it on"
        await check(bot)


async def test_an_undo_while_it_is_replayed(tmp_path: Path, other: Fake) -> None:
    async with open_bot(tmp_path) as bot:
        answers = await bot.rated(8)
        other.set(train="slow")
        switching = asyncio.create_task(switch(bot, other))
        await until(lambda: (bot.app.scheduler.progress or {}).get("steps") == 2)
        assert (await bot.status())["training"]["steps"] == 2
        assert (await bot.say("Who?")).text == "v0 says: Who?"
        await bot.unreact(answers[0], "👍")
        other.set(train="")
        other.go()
        done = await switching
        assert done.done, done.reason
        rows_ = await rows(bot.store, "SELECT turn FROM run_items WHERE run = (SELECT max(id) FROM runs)")
        assert len(rows_) == 7, "it has started over without it"
        assert (answers[0].turn,) not in rows_
        await check(bot)


@pytest.mark.parametrize("command", ["pause", "off", "switch"])
async def test_it_can_be_stopped(tmp_path: Path, other: Fake, command: str) -> None:
    async with open_bot(tmp_path) as bot:
        await bot.rated(8)
        other.set(train="slow")
        switching = asyncio.create_task(switch(bot, other))
        await until(lambda: (bot.app.scheduler.progress or {}).get("steps") == 2)
        if command == "switch":
            assert await bot.app.model_switch.stop()
        else:
            await bot.command(command)
        with pytest.raises(GoodbotError, match="stopped: nothing has changed"):
            await switching
        assert await untouched(bot)
        await bot.command("resume")
        await check(bot)


async def test_stopping_goodbot_stops_the_switch(tmp_path: Path, other: Fake) -> None:
    async with open_bot(tmp_path) as bot:
        await bot.rated(8)
        other.set(train="slow")
        switching = asyncio.create_task(switch(bot, other))
        await until(lambda: (bot.app.scheduler.progress or {}).get("steps") == 2)
    with pytest.raises((GoodbotError, asyncio.CancelledError)):
        await switching
    async with open_bot(tmp_path) as bot:
        assert (await bot.last_run()).state == "superseded"
        assert await untouched(bot)


async def test_a_crash_before_the_config_is_saved(
    tmp_path: Path, other: Fake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The new model has its adapter and its pointer by then; the next try needs no training."""
    async with open_bot(tmp_path) as bot:
        await bot.rated(8)
        with monkeypatch.context() as patch:
            patch.setattr(ModelSwitch, "_commit", crash)
            with pytest.raises(GoodbotError, match="the disk is full"):
                await switch(bot, other)
        assert await untouched(bot)
        assert await pointer(bot, other) == 1
    async with open_bot(tmp_path) as bot:
        assert (await bot.say("Who?")).text == "v0 says: Who?"
        done = await switch(bot, other)
        assert (done.done, done.version) == (True, 1)
        assert len(await rows(bot.store, "SELECT * FROM runs")) == 1
        await check(bot)


def crash(*_: object) -> None:
    raise StoreError("the disk is full")


async def test_what_cannot_be_switched_to(tmp_path: Path, other: Fake) -> None:
    async with open_bot(tmp_path) as bot:
        namesake = Fake(tmp_path / "elsewhere" / "fake")
        with pytest.raises(GoodbotError, match="answers already"):
            await switch(bot, bot.fake)
        with pytest.raises(GoodbotError, match="both models are named fake@"):
            await switch(bot, namesake)
        with pytest.raises(GoodbotError, match="does not exist"):
            await bot.app.model_switch.to("/no such/directory")
        assert "in a terminal" in await bot.command("switch", f"to {other.path}")
        assert await untouched(bot)


async def test_only_one_switch_at_a_time(tmp_path: Path, other: Fake) -> None:
    async with open_bot(tmp_path) as bot:
        await bot.rated(8)
        other.set(train="slow")
        switching = asyncio.create_task(switch(bot, other))
        await until(lambda: (bot.app.scheduler.progress or {}).get("steps") == 2)
        with pytest.raises(GoodbotError, match="already under way"):
            await switch(bot, other)
        other.go()
        assert (await switching).done
        with pytest.raises(GoodbotError, match="already under way"):
            await switch(bot, other)


async def test_private_words_are_not_replayed_without_consent(tmp_path: Path, other: Fake) -> None:
    async with open_bot(tmp_path) as bot:
        await bot.rated(4)
        private = await bot.say("private", user="rater")
        await bot.react(private, "👍", user="rater")
        await bot.command("share", "off")
        done = await switch(bot, other)
        assert done.done is False, "the owner keeps what they said, the rater has shared nothing"
        await bot.command("share", "on")
        assert (await switch(bot, other)).done
        learnt = {turn for (turn,) in await rows(bot.store, "SELECT turn FROM run_items")}
        assert learnt == {answer.turn for answer in bot.answers} - {private.turn}
