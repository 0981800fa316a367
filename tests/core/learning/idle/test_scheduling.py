# SPDX-License-Identifier: Apache-2.0
"""A whole goodbot under pressure: it waits, says why, interrupts its own runs and goes on with them."""

from __future__ import annotations

import asyncio
from pathlib import Path

from goodbot.learning.idle import Readings
from goodbot.testing import VirtualClock

from tests.core.builders import Bot, check, open_bot, until
from tests.core.learning.training.test_scheduler import at, rest
from tests.support import patience

IDLE = Readings(on_battery=False, others_load=0.05)
BATTERY = Readings(on_battery=True, others_load=0.05)
BUSY = Readings(on_battery=False, others_load=0.9)


class Machine:
    """Reads what the test has put there."""

    def __init__(self, readings: Readings = IDLE) -> None:
        self.readings = readings
        self.asked: list[bool] = []

    def __call__(self, training: bool) -> Readings:
        self.asked.append(training)
        return self.readings


async def pass_(clock: VirtualClock, seconds: int) -> None:
    """Let time pass as it does: ten seconds at a time, and everybody looks meanwhile."""
    for _ in range(seconds // 10):
        clock.advance(10)
        for _ in range(10):
            await asyncio.sleep(patience(0.003))


async def held_at(bot: Bot, clock: VirtualClock, step: int) -> None:
    """An automatic run of six steps has begun and waits before this one."""
    bot.fake.set(train="steps", hold=step)
    await bot.rated(8)
    await pass_(clock, 30)
    await until(lambda: (bot.app.trainer.progress or {}).get("step") == step)


def done(bot: Bot) -> list[tuple[int, int]]:
    return [(run, step) for run, step, _ in bot.fake.steps()]


async def test_it_waits_under_pressure_and_says_what_would_change_it(tmp_path: Path) -> None:
    clock, machine = VirtualClock(waits=True), Machine(BATTERY)
    async with open_bot(tmp_path, clock=clock, machine=machine, schedule="auto") as bot:
        await bot.rated(8)
        assert await rest(bot) == 0
        sentence = "training waits until the machine is plugged in"
        status = await bot.status()
        assert (status["next"], status["pressure"]) == (sentence, sentence)
        assert sentence in await bot.command("status")
        machine.readings = IDLE
        await pass_(clock, 30)
        assert await rest(bot) == 1
        assert (await bot.status())["pressure"] is None
        await check(bot)


async def test_quiet_hours_are_quiet_and_then_over(tmp_path: Path) -> None:
    clock = VirtualClock(at("2027-01-15T22:30"), waits=True)
    async with open_bot(tmp_path, clock=clock, schedule="auto", quiet_hours="23:00-07:00") as bot:
        await bot.rated(8)
        assert await rest(bot) == 1
        clock.advance(3600)
        await bot.rated(8)
        assert await rest(bot) == 1
        assert "training waits until 07:00" in (await bot.status())["next"]
        clock.advance(8 * 3600)
        assert await rest(bot) == 2


async def test_a_person_who_asks_is_not_kept_waiting_but_told(tmp_path: Path) -> None:
    clock, machine = VirtualClock(waits=True), Machine(BUSY)
    async with open_bot(tmp_path, clock=clock, machine=machine, schedule="auto") as bot:
        await bot.rated(8)
        assert await rest(bot) == 0
        bot.fake.set(train="steps", hold=3)
        said = await bot.command("train")
        assert "8 ratings. It may be slow: other programs use 90% of the processors. " in said
        await until(lambda: (bot.app.trainer.progress or {}).get("step") == 3)
        await pass_(clock, 300)
        assert bot.app.scheduler.training, "nobody interrupts what a person asked for"
        bot.fake.set(hold=None)
        await until(lambda: not bot.app.scheduler.training)
        assert (await bot.last_run()).state == "activated"


async def test_lasting_pressure_interrupts_a_run_and_lasting_ease_takes_it_up_again(tmp_path: Path) -> None:
    clock, machine = VirtualClock(waits=True), Machine()
    async with open_bot(tmp_path, clock=clock, machine=machine, schedule="auto") as bot:
        await held_at(bot, clock, 3)
        machine.readings = BUSY
        await pass_(clock, 50)
        assert bot.app.scheduler.training, "a peak is no pressure"
        await pass_(clock, 30)
        await until(lambda: not bot.app.scheduler.training)
        assert (await bot.status())["next"] == (
            "training waits at step 3 of 6 until other programs use 75% of the processors or less (now 90%)"
        )
        machine.readings = IDLE
        bot.fake.set(hold=None)
        await pass_(clock, 100)
        assert not bot.app.scheduler.training, "a lull is no ease"
        assert "waits at step 3 of 6" in (await bot.status())["next"]
        await pass_(clock, 60)
        await until(lambda: len(done(bot)) == 6)
        await until(lambda: not bot.app.scheduler.training)
        assert (await bot.last_run()).state == "activated"
        assert done(bot) == [(1, step) for step in range(6)], "the same run went on"
        assert True in machine.asked
        assert False in machine.asked
        await check(bot)


async def test_peaks_with_lulls_between_them_interrupt_nothing(tmp_path: Path) -> None:
    clock, machine = VirtualClock(waits=True), Machine()
    async with open_bot(tmp_path, clock=clock, machine=machine, schedule="auto") as bot:
        await held_at(bot, clock, 3)
        for _ in range(6):
            machine.readings = BUSY
            await pass_(clock, 40)
            machine.readings = IDLE
            await pass_(clock, 20)
        assert bot.app.scheduler.training


async def test_a_reader_that_breaks_keeps_nobody_from_training(tmp_path: Path) -> None:
    def broken(training: bool) -> Readings:
        raise ValueError("a format nobody knew")

    clock = VirtualClock(waits=True)
    async with open_bot(tmp_path, clock=clock, machine=broken, schedule="auto") as bot:
        await bot.rated(8)
        assert await rest(bot) == 1


async def test_the_machine_is_asked_at_most_every_five_seconds(tmp_path: Path) -> None:
    clock, machine = VirtualClock(waits=True), Machine()
    async with open_bot(tmp_path, clock=clock, machine=machine) as bot:
        for _ in range(10):
            await bot.status()
        assert len(machine.asked) == 1
        clock.advance(5)
        await bot.status()
        assert len(machine.asked) == 2


async def test_who_looks_on_while_it_trains_has_its_own_work_told_from_others(tmp_path: Path) -> None:
    clock, machine = VirtualClock(waits=True), Machine()
    async with open_bot(tmp_path, clock=clock, machine=machine, schedule="auto") as bot:
        await held_at(bot, clock, 3)
        await bot.rated(8)
        await asyncio.sleep(patience(0.05))  # the scheduler has looked after each of them
        machine.asked.clear()
        clock.advance(6)
        await bot.status()
        assert machine.asked == [True]
        bot.fake.set(hold=None)
