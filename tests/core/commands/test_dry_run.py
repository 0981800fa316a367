# SPDX-License-Identifier: Apache-2.0
"""`train --dry-run`: it says what a run would be, and leaves everything as it was."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from goodbot.api.events import ChannelKind, ChannelRef, CommandEvent, OrderKey
from goodbot.api.sentences import in_words
from goodbot.api.texts import say
from goodbot.base.errors import UsageError
from goodbot.base.worded import Worded
from goodbot.base.worded_parts import parts_of
from goodbot.commands.base import Result
from goodbot.commands.dry_run import sentences
from goodbot.testing import VirtualClock

from tests.core.builders import CHANNEL, OWNER, Bot, open_bot, rows, until
from tests.core.learning.idle.test_scheduling import BATTERY, Machine, held_at


async def ask(bot: Bot, channel: ChannelRef = CHANNEL, more: str = "--details", language: str = "") -> Result:
    """What the owner is told, as the control socket hands it on."""
    event = CommandEvent(
        event_id="ask",
        order=OrderKey(1),
        user=replace(OWNER, language=language),
        channel=channel,
        name="train",
        args=f"--dry-run {more} wait",
    )
    result = await bot.app.commands.execute(event, direct=True)
    assert result.later is not None, "other commands do not wait for it"
    return await result.later()


async def everything(bot: Bot) -> dict[str, Any]:
    """The store, but for the trail of commands, and the files of adapters and of runs."""
    tables = await rows(
        bot.store, "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
    )
    content = {name: await rows(bot.store, f"SELECT * FROM {name}") for (name,) in tables if name != "audit"}
    home = bot.app.config.home
    files = sorted(
        str(path.relative_to(home))
        for folder in ("adapters", "staging")
        for path in (home / folder).rglob("*")
    )
    return {**content, "files": files}


async def test_it_tells_what_would_be_trained_and_what_it_would_cost(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        made = await bot.rated(9)
        await bot.react(made[8], "👎", user="rater")  # the owner said good: a tie
        result = await ask(bot)
        assert result.text.splitlines() == [
            f"Would train {bot.app.model.name}, from the base model with the objective tapered.",
            "It learns from 6 ratings; 2 more are kept to check it, and are used next time.",
            "Not used: 1 of these too long (over 4096 tokens); 1 on which opinions are split.",
            "Steps: 4 at a rate of 3.0e-03 or less, each answer about 2.0 times; 80 tokens in all, 12 in "
            "the longest answer.",
            "Time: about 9.6 s (measured on a small trial).",
            "Processor time: about 4.8 s (loading 4.0 s, checking 0.8 s). It can be 4.0 s to 9.0 s: the "
            "check ends when it is sure.",
            "Memory: about 700 MB of 16.0 GB that are free; 96 tokens at once, activations kept.",
            "Peaks: not known. Both stay: what the model takes cannot be read from its config. It "
            "answers meanwhile.",
            "Now: it does not start by itself: training starts on command: `train`. `train` starts it "
            "all the same.",
        ]
        assert result.data["trains"]
        assert (result.data["train"], result.data["held_out"], result.data["ties"]) == (6, 2, 1)
        assert result.data["estimate"]["total"] == {"cpu": 4.8, "wall": 9.6}


async def test_without_details_it_says_what_a_person_wants_to_know(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        await bot.rated(8)
        result = await ask(bot, more="")
        assert result.text.splitlines() == [
            f"Would train {bot.app.model.name}, from the base model.",
            "It learns from 6 ratings; 2 more are kept to check it, and are used next time.",
            "Not used: 1 of these too long (over 4096 tokens).",
            "It takes about 9.6 s, and about 700 MB of memory.",
            "It answers meanwhile.",
            "Now: it does not start by itself: training starts on command: `train`. `train` starts it "
            "all the same.",
            "`train --dry-run --details` has all figures.",
        ]
        assert result.data["estimate"]["steps"] == 4, "the data has them in any case"


async def test_it_tells_how_far_a_round_goes_in_which_somebody_is_outvoted(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        await bot.rated(9)
        data = (await ask(bot)).data
        part = {**data, "estimate": {**data["estimate"], "share": 1 / 3}}
        assert any("goes 33% of the usual way, since some raters are outvoted" in s for s in sentences(part))
        assert not any("usual way" in line for line in sentences(data))


async def test_it_changes_nothing(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        await bot.rated(8)
        await until(lambda: not bot.app.follow_up_tasks.answering)
        before = await everything(bot)
        first = await ask(bot)
        assert await everything(bot) == before
        assert (await ask(bot)).data == first.data
        run = await (await bot.app.scheduler.start(in_words("now")))
        assert (run.run, run.version) == (1, 1), "no number was used up"
        assert (await bot.app.registry.active()) == 1


async def test_with_nothing_to_train_on_it_says_why(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        result = await ask(bot)
        assert not result.data["trains"]
        assert result.data["estimate"] is None
        assert result.text.splitlines() == [
            "There is nothing to train on: rate some answers first.",
            "Now: it does not start by itself: 0 of 8 ratings, 8 more until the next training.",
        ]


async def test_what_the_machine_is_needed_for_is_told_once(tmp_path: Path) -> None:
    """Also where the interrupted run that waits for it says where it stands."""
    clock, machine = VirtualClock(waits=True), Machine()
    async with open_bot(tmp_path, clock=clock, machine=machine, schedule="auto") as bot:
        await held_at(bot, clock, 3)
        await bot.app.scheduler.suspend()
        machine.readings = BATTERY
        clock.advance(10)
        text = (await ask(bot)).text
        assert "training waits at step 3 of 6 until the machine is plugged in" in text
        assert text.count("plugged in") == 1


async def test_a_backend_that_cannot_tell_leaves_the_rest(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        await bot.rated(8)
        bot.fake.set(**{"no plan": "Training needs about 90 GB of memory and 1 GB is free."})
        result = await ask(bot)
        assert result.data["trains"]
        assert "Not estimated: Training needs about 90 GB of memory" in result.text
        assert "It learns from 6 ratings" in result.text


async def test_what_the_trainer_says_in_parts_is_told_in_the_readers_language(tmp_path: Path) -> None:
    """Its own English sentence stands beside them, for programs and for older ones."""
    none = Worded("The model in {directory} has no chat template.", directory="/models/x")
    async with open_bot(tmp_path) as bot:
        await bot.rated(8)
        bot.fake.set(**{"no plan": none, "parts": parts_of(none)})
        told = say("child_no_template", "de", directory="/models/x").removesuffix(".")
        assert told in (await ask(bot, language="de")).text
        assert "The model in /models/x has no chat template" in (await ask(bot)).text
        bot.fake.set(**{"no plan": none, "parts": {}})
        assert "The model in /models/x has no chat template" in (await ask(bot, language="de")).text


async def test_beside_a_training_nothing_is_computed(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        await bot.rated(8)
        await bot.start_training()
        await bot.rated(2)
        result = await ask(bot)
        assert "Not estimated: a training is under way." in result.text
        assert "Now: a training is under way" in result.text
        await bot.finish_training()


async def test_an_owner_asks_in_private_and_nobody_else_does(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        await bot.rated(8)
        assert "Would train fake" in await bot.command("train", "--dry-run")
        assert "Would train" not in await bot.command("train", "--dry-run", user="rater")
        group = replace(CHANNEL, id="group", kind=ChannelKind.SHARED)
        with pytest.raises(UsageError, match="privately"):
            await ask(bot, group)
