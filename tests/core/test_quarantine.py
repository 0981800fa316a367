# SPDX-License-Identifier: Apache-2.0
"""`rollback since DATE`: the ratings since then count for nothing, nor does what learnt from them."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest
from goodbot.daemon.loopback import Answer
from goodbot.testing import VirtualClock

from tests.core.builders import Bot, check, open_bot, rate, rows

DAY = 86400.0


def date(clock: VirtualClock, ago: float) -> str:
    return datetime.fromtimestamp(clock.now() - ago, UTC).isoformat()


async def since(bot: Bot, when: str) -> str:
    assert f"type `/rl rollback since {when} yes`" in await bot.command("rollback", f"since {when}")
    return await bot.command("rollback", f"since {when} yes")


async def two_days(bot: Bot, clock: VirtualClock) -> None:
    """v1 of the day before yesterday, v2 of now."""
    await bot.rated(8)
    await bot.train()
    clock.advance(2 * DAY)
    await bot.rated(8)
    await bot.train()
    assert await bot.app.registry.active() == 2


async def test_it_goes_back_to_the_newest_version_that_learnt_none_of_them(tmp_path: Path) -> None:
    clock = VirtualClock(waits=True)
    async with open_bot(tmp_path, clock=clock) as bot:
        await two_days(bot, clock)
        said = await since(bot, date(clock, DAY))
        assert said.startswith("8 ratings since ")
        assert "withdrawn: v2. v1 answers." in said
        assert await bot.app.registry.active() == 1
        assert (await bot.say("Who?")).text == "v1 says: Who?"
        for number, answer in enumerate(bot.answers):
            assert bool(await bot.labels(answer)) is (number < 8)
        await check(bot)
    async with open_bot(tmp_path, clock=clock) as bot:
        await check(bot)  # folds everything again


async def test_what_comes_later_counts_again(tmp_path: Path) -> None:
    clock = VirtualClock(waits=True)
    async with open_bot(tmp_path, clock=clock) as bot:
        answer = await bot.say("Hello?")
        await bot.react(answer, "👎")
        clock.advance(1)
        await since(bot, date(clock, DAY))
        assert await bot.labels(answer) == {}
        await bot.command("good", answer.turn)
        assert await bot.labels(answer) == {"loopback:owner": 1.0}
        await check(bot)


async def test_an_older_opinion_shows_again(tmp_path: Path) -> None:
    clock = VirtualClock(waits=True)
    async with open_bot(tmp_path, clock=clock) as bot:
        answer = await bot.say("Hello?")
        await bot.react(answer, "👍")
        clock.advance(2 * DAY)
        await bot.react(answer, "👎")
        assert await bot.labels(answer) == {"loopback:owner": -1.0}
        await since(bot, date(clock, DAY))
        assert await bot.labels(answer) == {"loopback:owner": 1.0}


async def test_what_was_taken_back_meanwhile_stays_taken_back(tmp_path: Path) -> None:
    clock = VirtualClock(waits=True)
    async with open_bot(tmp_path, clock=clock) as bot:
        answer = await bot.say("Hello?")
        await bot.react(answer, "👍")
        clock.advance(2 * DAY)
        await bot.unreact(answer, "👍")
        await since(bot, date(clock, DAY))
        assert await bot.labels(answer) == {}


async def test_it_counts_when_it_was_received_not_what_the_platform_says(tmp_path: Path) -> None:
    clock = VirtualClock(waits=True)
    async with open_bot(tmp_path, clock=clock) as bot:
        answer = await bot.say("Hello?")
        await bot.chat.host.submit([rate("r", 1, 1.0, message_id=answer.message.id)])
        clock.advance(1)
        assert (await since(bot, date(clock, DAY))).startswith("1 rating since")
        assert await bot.labels(answer) == {}


async def test_f2_it_counts_what_came_later_whatever_our_clock_said_meanwhile(tmp_path: Path) -> None:
    clock = VirtualClock(waits=True)
    async with open_bot(tmp_path, clock=clock) as bot:

        async def rated(ahead: float = 0.0) -> Answer:
            clock.jump(ahead)
            await bot.react(answer := await bot.say("Hello?"), "👎")
            clock.jump(-ahead)
            clock.advance(1)
            return answer

        early = await rated()
        unknown = await rated(ahead=3650 * DAY)
        before = await rated()
        clock.advance(2 * DAY)
        late = [await rated(), await rated(ahead=-10 * DAY), await rated(ahead=-3 * DAY)]
        assert (await since(bot, date(clock, DAY))).startswith("4 ratings since ")
        for answer in (early, before):
            assert await bot.labels(answer) == {"loopback:owner": -1.0}, "it came before"
        for answer in (unknown, *late):
            assert await bot.labels(answer) == {}
        await bot.react(again := await bot.say("Hello again?"), "👍")
        assert await bot.labels(again) == {"loopback:owner": 1.0}
        await check(bot)


async def test_a_rating_that_waits_for_its_answer_is_left_out_too(tmp_path: Path) -> None:
    clock = VirtualClock(waits=True)
    async with open_bot(tmp_path, clock=clock) as bot:
        await bot.chat.host.submit([rate("r", 1, 1.0, message_id="a2-0")])
        clock.advance(1)
        await since(bot, date(clock, DAY))
        seen = await rows(bot.store, "SELECT turn FROM events")
        assert seen == [(None,)]


async def test_never_lets_them_count_again(tmp_path: Path) -> None:
    clock = VirtualClock(waits=True)
    async with open_bot(tmp_path, clock=clock) as bot:
        await two_days(bot, clock)
        await since(bot, date(clock, DAY))
        assert "8 ratings" in await bot.command("rollback", "since never")
        assert all([await bot.labels(answer) for answer in bot.answers])
        # They train anew, with the two that v1 was judged by: v2 is not used again.
        assert (await bot.status())["ratings"] == 10
        await bot.train()
        assert await bot.app.registry.active() == 3
        await check(bot)


async def test_a_run_under_way_that_claimed_one_ends(tmp_path: Path) -> None:
    clock = VirtualClock(waits=True)
    async with open_bot(tmp_path, clock=clock) as bot:
        await bot.rated(8)
        await bot.start_training()
        clock.advance(1)
        assert "no version had learnt from them" in await since(bot, date(clock, DAY))
        assert not bot.app.scheduler.training
        assert (await bot.last_run()).state == "superseded"
        await check(bot)


@pytest.mark.parametrize(
    "when",
    [
        "",
        "yesterday",
        "2026-13-01",
        "21.11.2026",
        "2999-01-01",
        "2026-11-21 25:00",
        "yes",
        "2026-11-21 and more",
        "9" * 5000,
        "-1",
        "0001-01-01T00:00:00+23:59",
    ],
)
async def test_odd_dates_are_told_and_change_nothing(tmp_path: Path, when: str) -> None:
    async with open_bot(tmp_path) as bot:
        answer = await bot.say("Hello?")
        await bot.react(answer, "👍")
        for _ in range(2):
            said = await bot.command("rollback", f"since {when}")
            assert "2026-11-21" in said
        assert await bot.labels(answer) == {"loopback:owner": 1.0}


async def test_a_bare_date_is_midnight_in_the_owners_zone(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        today = datetime.now().astimezone().date().isoformat()
        assert f"since {today} 00:00" in await bot.command("rollback", f"since {today}")


async def test_another_time_or_another_person_needs_another_question(tmp_path: Path) -> None:
    clock = VirtualClock(waits=True)
    async with open_bot(tmp_path, clock=clock) as bot:
        answer = await bot.say("Hello?")
        await bot.react(answer, "👍")
        clock.advance(1)
        await bot.command("rollback", f"since {date(clock, DAY)}")
        assert "To do it, type" in await bot.command("rollback", f"since {date(clock, 2 * DAY)} yes")
        assert await bot.labels(answer) == {"loopback:owner": 1.0}
        said = await bot.command("rollback", f"since {date(clock, DAY)} yes", user="rater")
        assert said == "`rollback` is for the owners of this bot."
        assert await bot.labels(answer) == {"loopback:owner": 1.0}
