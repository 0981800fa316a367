# SPDX-License-Identifier: Apache-2.0
"""When it trains: by itself with enough ratings, in its hours, in quiet, and never in circles."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

import pytest
from goodbot import RewardPolicy, hookimpl
from goodbot.api.rewards import TurnRating
from goodbot.learning.training.scheduler import _BURST_COUNTED, _BURST_SECONDS
from goodbot.testing import VirtualClock

from tests.core.builders import Bot, check, copied, open_bot, rows, until
from tests.core.learning.training.test_trainer import Veto
from tests.support import patience


async def runs_so_far(bot: Bot) -> int:
    return (await rows(bot.store, "SELECT count(*) FROM runs"))[0][0]


async def rest(bot: Bot) -> int:
    """Give the scheduler all the time it needs to do something; how many runs there were.

    A clock that a test moves goes on meanwhile by what ratings are collected for.
    """
    quiet, clock = 0, bot.app.scheduler._clock
    while quiet < 20:
        quiet = 0 if bot.app.scheduler.training else quiet + 1
        await asyncio.sleep(patience(0.01))
        if quiet == 1 and isinstance(clock, VirtualClock):
            clock.advance(_BURST_SECONDS)
    return await runs_so_far(bot)


async def test_it_starts_by_itself_with_enough_ratings_and_not_before(tmp_path: Path) -> None:
    async with open_bot(tmp_path, schedule="auto") as bot:
        await bot.rated(7)
        assert await rest(bot) == 0
        assert "7 of 8" in (await bot.status())["next"]
        await bot.rated(1)
        assert await rest(bot) == 1
        assert await bot.app.registry.active() == 1
        await bot.rated(5)  # with the two that were held out: seven
        assert await rest(bot) == 1
        await bot.rated(1)
        assert await rest(bot) == 2
        await check(bot)


async def test_manual_waits_for_the_command(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        await bot.rated(9)
        assert await rest(bot) == 0
        assert "on command" in (await bot.status())["next"]


async def test_paused_and_off_wait_for_resume(tmp_path: Path) -> None:
    async with open_bot(tmp_path, schedule="auto") as bot:
        for command, sentence in (("pause", "paused"), ("pause all", "goodbot is paused")):
            await bot.command(*command.split())
            await bot.rated(8)
            assert sentence in (await bot.status())["next"]
            before = await runs_so_far(bot)
            assert await rest(bot) == before
            await bot.command("resume")
            assert await rest(bot) == before + 1


async def test_a_pause_outlives_a_restart(tmp_path: Path) -> None:
    async with open_bot(tmp_path, schedule="auto") as bot:
        await bot.command("pause")
        await bot.rated(8)
    async with open_bot(tmp_path, schedule="auto") as bot:
        assert await rest(bot) == 0


async def test_a_pause_in_the_middle_of_a_look_is_a_pause(tmp_path: Path) -> None:
    async with open_bot(tmp_path, schedule="auto") as bot:
        scheduler = bot.app.scheduler
        real = scheduler.readiness

        async def readiness() -> object:
            answer = await real()
            if answer.due:
                scheduler.readiness = real  # type: ignore[method-assign]
                await bot.command("pause")
            return answer

        scheduler.readiness = readiness  # type: ignore[method-assign, assignment]
        await bot.rated(8)
        assert await rest(bot) == 0
        assert (await bot.status())["paused"]


def at(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


@pytest.mark.parametrize("schedule", ["03:30", "3:30"])
async def test_at_its_time_once_a_day(tmp_path: Path, schedule: str) -> None:
    clock = VirtualClock(at("2027-01-15T02:00"), waits=True)
    async with open_bot(tmp_path, clock=clock, schedule=schedule) as bot:
        await bot.rated(8)
        assert await rest(bot) == 0
        assert f"starts at {schedule}" in (await bot.status())["next"]
        clock.advance(89 * 60)
        assert await rest(bot) == 0
        clock.advance(60)
        assert await rest(bot) == 1
        await bot.rated(8)
        clock.advance(3600 * 20)  # still the same day
        assert await rest(bot) == 1
    clock.advance(60)
    async with open_bot(tmp_path, clock=clock, schedule=schedule) as bot:
        assert await rest(bot) == 1  # also after a restart
        clock.advance(3 * 3600)  # past midnight
        assert await rest(bot) == 1
        clock.advance(2 * 3600)
        assert await rest(bot) == 2


async def test_a_run_of_a_time_to_come_does_not_hold_up_the_others_until_then(tmp_path: Path) -> None:
    """It began before our clock was set back."""
    clock = VirtualClock(at("2099-01-15T04:00"), waits=True)
    async with open_bot(tmp_path, clock=clock, schedule="03:30") as bot:
        await bot.rated(8)
        assert await rest(bot) == 1
        clock.jump(at("2027-01-15T04:00") - clock.now())
        await bot.rated(8)
        assert await rest(bot) == 2
        await bot.rated(8)
        assert await rest(bot) == 2, "once a day"


async def test_a_run_by_hand_in_the_morning_does_not_cancel_the_one_at_night(tmp_path: Path) -> None:
    clock = VirtualClock(at("2027-01-15T10:00"), waits=True)
    async with open_bot(tmp_path, clock=clock, schedule="23:00") as bot:
        await bot.rated(8)
        await bot.train()
        await bot.rated(8)
        clock.advance(13 * 3600)
        assert await rest(bot) == 2


async def test_late_in_the_day_it_still_trains(tmp_path: Path) -> None:
    """The machine slept at 03:30."""
    clock = VirtualClock(at("2027-01-15T22:00"), waits=True)
    async with open_bot(tmp_path, clock=clock, schedule="03:30") as bot:
        await bot.rated(8)
        assert await rest(bot) == 1


async def test_ratings_that_come_fast_are_looked_at_together(tmp_path: Path) -> None:
    clock = VirtualClock(waits=True)
    async with open_bot(tmp_path, clock=clock, schedule="auto", idle_seconds=0.0) as bot:
        await rest(bot)
        clock.advance(60)
        looks, look = list[float](), bot.app.scheduler._look

        async def counted() -> float:
            looks.append(clock.monotonic())
            return await look()

        bot.app.scheduler._look = counted
        await bot.rated(8)
        await until(lambda: looks)
        await asyncio.sleep(0.1)
        assert len(looks) == 1
        assert await rest(bot) == 1


async def test_after_a_look_that_counts_many_it_looks_less_often(tmp_path: Path) -> None:
    clock = VirtualClock(waits=True)
    async with open_bot(tmp_path, clock=clock, min_ratings=1_000_000) as bot:
        [answer] = await bot.rated(1)
        await copied(bot.store, answer.turn, 1, 5 * _BURST_COUNTED)
        scheduler = bot.app.scheduler
        looks, look = list[float](), scheduler._look

        async def counted() -> float:
            looks.append(clock.monotonic())
            return await look()

        async def passes(seconds: float) -> None:
            for _ in range(5):
                await asyncio.sleep(patience(0.01))
            clock.advance(seconds)

        scheduler._look = counted
        scheduler.wake()
        await passes(60)
        await until(lambda: len(looks) == 1)
        scheduler.wake()
        await passes(4 * _BURST_SECONDS)
        await passes(0)
        assert len(looks) == 1
        await passes(2 * _BURST_SECONDS)
        await until(lambda: len(looks) == 2)
        assert (await bot.status())["next"].startswith("5001 of 1000000 ")


async def test_a_clock_set_back_does_not_stop_it(tmp_path: Path) -> None:
    clock = VirtualClock(at("2027-01-15T12:00"), waits=True)
    async with open_bot(tmp_path, clock=clock, schedule="auto", idle_seconds=5.0) as bot:
        await bot.rated(8)
        clock.jump(-3600)
        clock.advance(6)
        assert await rest(bot) == 1


async def test_it_waits_until_nobody_talks_but_not_for_ever(tmp_path: Path) -> None:
    clock = VirtualClock(waits=True)
    async with open_bot(tmp_path, clock=clock, schedule="auto", idle_seconds=5.0) as bot:
        await bot.rated(8)
        clock.advance(4)
        assert await rest(bot) == 0
        await bot.say("one more thing")
        clock.advance(4)
        assert await rest(bot) == 0
        clock.advance(1.5)
        assert await rest(bot) == 1
        await bot.rated(8)
        minutes = 0
        while await runs_so_far(bot) == 1 and minutes < 20:
            for _ in range(15):  # a busy room: never five quiet seconds
                await bot.say("and another")
                clock.advance(4)
            minutes += 1
        assert 10 <= minutes <= 12


async def test_a_refused_run_is_not_repeated_on_the_same_ratings(tmp_path: Path) -> None:
    async with open_bot(tmp_path, schedule="auto", min_ratings=10, held_out=9) as bot:
        bot.fake.set(train="refuse")
        await bot.rated(10)
        assert await rest(bot) == 1
        await bot.rated(1)  # nine held out and one: ten are available
        assert (await bot.status())["ratings"] == 10
        assert await rest(bot) == 1
        assert "1 new rating until another try" in (await bot.status())["next"]
        await bot.rated(1)  # a fifth of ten
        assert await rest(bot) == 2


async def test_after_three_failures_it_waits_for_new_ratings(tmp_path: Path) -> None:
    async with open_bot(tmp_path, schedule="auto", min_ratings=10) as bot:
        bot.fake.set(train="nan")
        await bot.rated(10)
        assert await rest(bot) == 3
        assert "the last training failed (The loss was nan)" in (await bot.status())["next"]
        await bot.rated(1)
        assert await rest(bot) == 3
        bot.fake.set(train="ok")
        await bot.rated(1)
        assert await rest(bot) == 4
        assert await bot.app.registry.active() == 1


async def test_a_person_may_always_try_again(tmp_path: Path) -> None:
    async with open_bot(tmp_path, schedule="auto", min_ratings=10) as bot:
        bot.fake.set(train="nan")
        await bot.rated(10)
        assert await rest(bot) == 3
        bot.fake.set(train="ok")
        assert (await bot.train()).state == "activated"


class Shy:
    """A reward policy of a plugin, to which a bad rating says nothing."""

    @hookimpl
    def register_reward_policy(self) -> RewardPolicy:
        return RewardPolicy(name="shy", fn=lambda found: 1.0 if found[0].value > 0 else None)


async def test_ties_are_rated_but_do_not_count(tmp_path: Path) -> None:
    async with open_bot(tmp_path, schedule="auto") as bot:
        answers = await bot.rated(6)
        assert (await bot.status())["ratings"] == 6
        receipt = await bot.react(answers[0], "👎", user="rater")
        assert "5 of 8" in receipt.text
        await bot.react(answers[1], "👍", user="rater")
        assert (await bot.status())["ratings"] == 4
        await bot.unreact(answers[0], "👎", user="rater")
        assert (await bot.status())["ratings"] == 5, "it is no tie any more"
        await bot.react(answers[1], "👎", user="rater")
        assert (await bot.status())["ratings"] == 6
        await bot.react(answers[0], "👎", user="rater")
        await bot.rated(2)
        assert await rest(bot) == 0
        await bot.rated(1)
        assert await rest(bot) == 1, "eight that say something"
        tie = await rows(bot.store, "SELECT rated, spent FROM turns WHERE id = ?", (answers[0].turn,))
        assert tie == [(2, None)]
        await check(bot)


async def test_what_trains_nothing_does_not_make_it_turn_in_circles(tmp_path: Path) -> None:
    """To this policy half of what is rated says nothing: it does not count, and no run is due for it."""
    async with open_bot(tmp_path, schedule="auto", reward="shy", extra=(Shy(),)) as bot:
        claims = 0
        real = bot.app.trainer._claim

        async def claim(*args: object) -> object:
            nonlocal claims
            claims += 1
            return await real(*args)  # type: ignore[arg-type]

        bot.app.trainer._claim = claim  # type: ignore[method-assign, assignment]
        await bot.rated(8)
        assert await rest(bot) == 0
        assert (await bot.status())["ratings"] == 4
        assert claims == 0
        await bot.rated(7)
        assert await rest(bot) == 1
        await check(bot)


async def test_a_veto_is_a_reason_and_a_broken_one_too(tmp_path: Path) -> None:
    for number, veto in enumerate((Veto(training="a game is on"), Veto(broken="yes"))):
        async with open_bot(tmp_path / str(number), schedule="auto", extra=(veto,)) as bot:
            await bot.rated(8)
            assert await rest(bot) == 0
            reason = (await bot.status())["next"]
            assert reason in ("a game is on", "the plugin extra-0 failed while it was asked")


async def test_an_error_in_a_look_is_not_the_end_of_looking(tmp_path: Path) -> None:
    async with open_bot(tmp_path, schedule="auto") as bot:
        failures = 0
        real = bot.app.scheduler.readiness

        async def readiness() -> object:
            nonlocal failures
            failures += 1
            if failures == 1:
                raise LookupError("a bug")
            return await real()

        bot.app.scheduler.readiness = readiness  # type: ignore[method-assign, assignment]
        await bot.rated(8)
        await until(lambda: failures > 1)
        assert await rest(bot) == 1


async def test_a_tainted_version_is_replaced_though_somebody_talks(tmp_path: Path) -> None:
    clock = VirtualClock(waits=True)
    async with open_bot(tmp_path, clock=clock, idle_seconds=60.0) as bot:
        await bot.rated(8)
        await bot.train()
        trained = await bot.trained(1)
        number = next(i for i, answer in enumerate(bot.answers) if answer.turn in trained)
        await bot.unreact(bot.answers[number], "👍" if number % 2 == 0 else "👎")
        await rest(bot)
        await bot.settle()
        assert await bot.app.registry.active() == 2


async def test_with_a_broken_ancestor_a_tainted_version_is_withdrawn_further_up(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        for _ in range(2):
            await bot.rated(8)
            await bot.train()
        directory = bot.app.registry.root / (await bot.app.registry.row(1)).directory
        for entry in directory.iterdir():
            entry.unlink()
        await bot.command("pause")
        own = await bot.trained_by(2)
        for number, answer in enumerate(bot.answers):
            if answer.turn in own:
                await bot.unreact(answer, "👍" if number % 2 == 0 else "👎")
        await bot.settle()
        assert await bot.app.registry.active() == 0


async def test_others_are_served_while_a_round_is_weighed(tmp_path: Path) -> None:
    """Thousands of long answers take seconds: that is a thread's work, not the event loop's."""
    threads: set[int] = set()

    def noted(found: Sequence[TurnRating]) -> float:
        threads.add(threading.get_ident())
        return found[0].value

    class Plugin:
        @hookimpl
        def register_reward_policy(self) -> RewardPolicy:
            return RewardPolicy(name="noted", fn=noted)

    async with open_bot(tmp_path, extra=(Plugin(),), reward="noted") as bot:
        await bot.rated(8)
        threads.clear()  # one rating is asked about where it is counted
        assert (await bot.train()).state == "activated"
    assert threads
    assert threading.get_ident() not in threads


async def test_a_look_asks_about_an_interrupted_run_only_where_one_waits(tmp_path: Path) -> None:
    async with open_bot(tmp_path, schedule="auto") as bot:
        asked: list[bool] = []
        resumable = bot.app.trainer.resumable

        async def counted(*, replay: bool = False) -> object:
            asked.append(replay)
            return await resumable(replay=replay)

        bot.app.trainer.resumable = counted  # type: ignore[method-assign]
        await bot.rated(3)
        await bot.settle()
        assert (await bot.app.scheduler.readiness()).interrupted is False
        assert asked == []
        bot.fake.set(train="steps", hold=2)
        assert "3 ratings are few: with 5 more" in await bot.command("train")
        assert not bot.app.scheduler.training, "it asks first"
        await bot.command("train", "yes")
        await until(lambda: (bot.app.trainer.progress or {}).get("step") == 2)
        await bot.command("pause")
        asked.clear()
        bot.app.scheduler.wake()
        await until(lambda: asked)
        assert (await bot.app.scheduler.readiness()).interrupted is True
