# SPDX-License-Identifier: Apache-2.0
"""A changed mind costs one answer, not a round: the run starts over without it, and comes to a verdict."""

from __future__ import annotations

import itertools
import random
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from goodbot.learning import worker_process
from goodbot.learning.training.publish import Publisher

from tests.core.builders import Bot, check, open_bot, rows, until

Meanwhile = Callable[[Mapping[str, Any]], Awaitable[None]]


def meanwhile(monkeypatch: pytest.MonkeyPatch, then: Meanwhile) -> list[list[str]]:
    """Let something happen while each child trains; returns what each was given to train on."""
    real, given = worker_process.train, list[list[str]]()

    async def train(backend: Any, job: Mapping[str, Any], on_event: Any) -> Mapping[str, Any]:
        given.append([item["id"] for item in job["items"]])
        await then(job)
        return await real(backend, job, on_event)

    monkeypatch.setattr(worker_process, "train", train)
    return given


async def turned(bot: Bot, number: int) -> None:
    """The opposite is said of an answer."""
    answer = bot.answers[number]
    [before] = (await bot.labels(answer)).values()
    await bot.react(answer, "👎" if before == 1.0 else "👍")


async def test_b2_what_was_taken_back_is_left_out_and_the_rest_goes_live_in_the_same_run(
    tmp_path: Path,
) -> None:
    async with open_bot(tmp_path) as bot:
        await bot.rated(8)
        await bot.start_training()
        undone = bot.answers[0].turn
        await bot.command("undo", undone)
        run = await bot.finish_training()
        assert (run.id, run.state) == (1, "activated"), run.reason
        assert run.reason.endswith(
            "1 answer waits for the next training, since its rating changed during this one."
        )
        claimed = await rows(bot.store, "SELECT turn FROM run_items WHERE run = 1")
        assert {turn for (turn,) in claimed} == {a.turn for a in bot.answers} - {undone}
        assert undone not in await bot.trained(1)
        assert (await bot.status())["ratings"] == 2, "those held out, as ever"
        await check(bot)


async def test_what_was_changed_trains_in_the_next_round_as_it_is_now(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        await bot.rated(8)
        await bot.start_training()
        await turned(bot, 1)
        assert (await bot.finish_training()).state == "activated"
        assert (await bot.status())["ratings"] == 3, "and those held out"
        await bot.rated(8)
        verdict = await bot.train()
        claimed = await rows(
            bot.store,
            "SELECT reward FROM run_items WHERE (run, turn) = (?, ?)",
            (verdict.run, bot.answers[1].turn),
        )
        assert claimed == [(1.0,)]
        await check(bot)


async def test_it_starts_from_nothing_not_from_what_it_had_learnt(tmp_path: Path) -> None:
    """Neither its checkpoints nor its files have learnt from what was taken back."""
    async with open_bot(tmp_path) as bot:
        await bot.rated(8)
        bot.fake.set(train="steps", hold=5)
        await bot.command("train")
        await until(lambda: len(bot.fake.steps()) == 5)
        await bot.command("undo", bot.answers[0].turn)
        bot.fake.set(hold=2)
        await until(lambda: len(bot.fake.steps()) == 8)
        assert [step for _, step, _ in bot.fake.steps()] == [0, 1, 2, 3, 4, 5, 0, 1]
        status = await bot.command("status")
        assert "I started over: 1 answer waits for the next training" in status
        bot.fake.set(hold=None)
        await bot.settle()
        assert [step for _, step, _ in bot.fake.steps()][6:] == [0, 1, 2, 3, 4, 5]
        run = await bot.last_run()
        assert (run.id, run.state) == (1, "activated")
        await check(bot)


async def test_where_the_version_before_is_withdrawn_all_that_is_left_trains_in_the_same_run(
    tmp_path: Path,
) -> None:
    async with open_bot(tmp_path) as bot:
        await bot.rated(8)
        await bot.train()
        learnt = await bot.trained(1)
        first = next(i for i, answer in enumerate(bot.answers) if answer.turn in learnt)
        await bot.rated(8)
        await bot.start_training()
        undone = bot.answers[first].turn
        await bot.command("undo", undone)
        run = await bot.finish_training()
        assert (run.id, run.state, run.parent) == (2, "activated", 0), run.reason
        trained = await bot.trained((await bot.status())["version"])
        assert undone not in trained
        assert set(learnt) - {undone} < set(trained)
        await check(bot)


async def test_b2_what_is_not_shared_any_more_is_left_out_of_the_run_under_way(tmp_path: Path) -> None:
    """It went live with these words, where it was not interrupted by chance."""
    async with open_bot(tmp_path) as bot:
        await bot.command("share", "on", user="talker")
        private = [await bot.say(f"Private {n}?", user="talker") for n in range(2)]
        for answer in private:
            await bot.react(answer, "👍")
        await bot.rated(8)
        await bot.start_training()
        assert len(await rows(bot.store, "SELECT turn FROM run_items WHERE run = 1")) == 10
        await bot.command("share", "off", user="talker")
        run = await bot.finish_training()
        assert (run.id, run.state) == (1, "activated"), run.reason
        claimed = {turn for (turn,) in await rows(bot.store, "SELECT turn FROM run_items WHERE run = 1")}
        assert claimed == {answer.turn for answer in bot.answers} - {answer.turn for answer in private}
        await check(bot)


async def test_a_run_of_which_nothing_stands_ends(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        await bot.rated(8)
        await bot.start_training()
        for answer in bot.answers:
            await bot.command("undo", answer.turn)
        assert (await bot.finish_training()).state == "superseded"
        await check(bot)


async def test_it_starts_over_only_so_often(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with open_bot(tmp_path, min_ratings=32, held_out=4) as bot:
        await bot.rated(32)
        numbers = {answer.turn: number for number, answer in enumerate(bot.answers)}

        async def one_changes(job: Mapping[str, Any]) -> None:
            await turned(bot, numbers[job["items"][0]["id"]])

        with monkeypatch.context() as patch:
            given = meanwhile(patch, one_changes)
            verdict = await bot.train()
        assert verdict.state == "superseded"
        assert [len(items) for items in given] == [32, 31, 15, 7, 3]
        assert (await bot.status())["ratings"] == 32, "all are free"
        await check(bot)


PHASES = ("before it trains", "after its gate", "once its files are there", "once it is recorded")


def in_phases(monkeypatch: pytest.MonkeyPatch, then: Callable[[str], Awaitable[None]]) -> None:
    """Let something happen in each of `PHASES`, whenever a run comes to it."""
    train, published, activate = worker_process.train, Publisher._published, Publisher._activate

    async def trained(*of: Any, **more: Any) -> Mapping[str, Any]:
        done = await train(*of, **more)
        await then(PHASES[1])
        return done

    async def in_files(self: Publisher, *of: Any) -> Any:
        made = await published(self, *of)
        await then(PHASES[2])
        return made

    async def recorded(self: Publisher, *of: Any) -> Any:
        await then(PHASES[3])
        return await activate(self, *of)

    monkeypatch.setattr(worker_process, "train", trained)
    monkeypatch.setattr(Publisher, "_published", in_files)
    monkeypatch.setattr(Publisher, "_activate", recorded)


async def test_b2_where_people_change_their_minds_all_the_time_runs_end_in_verdicts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While a run over all of them would last, 7 of 100 ratings change: a shorter one meets fewer.

    They change in whichever phase, in turns: also when it is nearly over.
    """
    drawn, phases = random.Random(26), itertools.cycle(PHASES)
    verdicts: list[str] = []
    met: set[str] = set()
    async with open_bot(tmp_path, min_ratings=40, held_out=8) as bot:
        for _ in range(10):
            await bot.rated(40)
            full: list[int] = []
            coming: dict[str, list[int]] = {}

            async def change(phase: str, coming: dict[str, list[int]] = coming) -> None:
                for number in coming.pop(phase, ()):
                    met.add(phase)
                    await turned(bot, number)

            async def some_change(
                job: Mapping[str, Any],
                full: list[int] = full,
                coming: dict[str, list[int]] = coming,
                change: Callable[[str], Awaitable[None]] = change,
            ) -> None:
                claimed = {item["id"] for item in job["items"]}
                full.append(len(claimed))
                coming.clear()
                coming[next(phases)] = [
                    number
                    for number, answer in enumerate(bot.answers)
                    if answer.turn in claimed and drawn.random() < 0.07 * len(claimed) / full[0]
                ]
                await change(PHASES[0])

            with monkeypatch.context() as patch:
                meanwhile(patch, some_change)
                in_phases(patch, change)
                verdicts.append((await bot.train()).state)
            await bot.settle()
        await check(bot)
    assert met == {*PHASES}
    assert sum(state in ("activated", "refused") for state in verdicts) >= 9, verdicts
