# SPDX-License-Identifier: Apache-2.0
"""Faults, planted one by one: owners hear of each once, of its end once, and again if it comes back."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import NamedTuple

import aiosqlite
import pytest
from goodbot.daemon.alerts import GONE, STANDS, Alerts
from goodbot.store import adapters, settings

from tests.core.builders import Bot
from tests.core.daemon import planted
from tests.core.daemon.planted import MINUTE, Watched, watched

Plant = Callable[[Watched], AbstractAsyncContextManager[None]]


class Fault(NamedTuple):
    """What is planted, and what is told as it begins and ends: in English, and in German."""

    plant: Plant
    begins: tuple[str, str]
    ends: tuple[str, str]


FAULTS: Mapping[str, Fault] = {
    "disk": Fault(
        planted.no_space,
        ("MB of the disk are free", "Auf dem Datenträger sind weniger als"),
        ("There is enough space on the disk again.", "Auf dem Datenträger ist wieder genug Platz."),
    ),
    "store": Fault(
        planted.store_fails,
        ("I cannot store anything: the disk failed while", "Ich kann nichts speichern: "),
        ("I can store again.", "Ich kann wieder speichern."),
    ),
    "model": Fault(
        planted.model_ends,
        ("My model does not answer", "Mein Modell antwortet nicht: Sein Prozess"),
        ("My model answers again.", "Mein Modell antwortet wieder."),
    ),
    "adapter": Fault(
        planted.adapter_lost,
        ("v1 cannot be used any more: ", "v1 lässt sich nicht mehr benutzen: "),
        ("v1 answers again.", "Es antwortet wieder v1."),
    ),
    "ignored": Fault(
        planted.adapter_ignored,
        ("v1 does not answer: the model server does not", "v1 antwortet nicht: "),
        ("v1 does not wait for the model server any more.", "v1 wartet nicht mehr auf den"),
    ),
    "platform": Fault(
        planted.platform_down,
        ("Loopback does not work: the token is refused.", "Loopback funktioniert nicht: the token is"),
        ("loopback works again.", "loopback funktioniert wieder."),
    ),
    "clock": Fault(
        planted.clock_wrong,
        ("This machine is 600 s ahead of", "geht gegenüber"),
        ("This machine’s clock is right again.", "Die Uhr dieses Rechners geht wieder"),
    ),
    "descriptors": Fault(
        planted.descriptors_gone,
        ("I have too many files and connections open", "Ich habe zu viele Dateien"),
        ("I can open files and connections again.", "Ich kann wieder Dateien"),
    ),
    "guesses": Fault(
        planted.guessed_at,
        ("Somebody guesses pairing codes on loopback", "Jemand rät Codes auf loopback:"),
        ("Nobody guesses pairing codes on loopback any more.", "Auf loopback rät niemand mehr Codes."),
    ),
    "liked": Fault(
        planted.LikedLess(),
        ("v1 is liked less: 12 of 40 rated answers. Of the base model it was 30 of 40.", "Vorher (das Bas"),
        ("My answers are not liked less than before any more.", "wieder so gut wie vorher"),
    ),
    "rater": Fault(
        planted.rater_turned,
        ("loopback:eve now disagrees with their own older", "loopback:eve widerspricht neuerdings den"),
        ("The ratings of loopback:eve are as usual again.", "loopback:eve sind wieder wie üblich"),
    ),
}

TOLD = 2
"""Minutes in which each of them is told;"""
OVER = 4
"""in which its end is."""


async def test_each_of_ten_planted_faults_and_more_is_told_once_and_so_is_its_end(tmp_path: Path) -> None:
    assert len(FAULTS) >= 10
    async with watched(tmp_path) as on:
        assert await on.after(TOLD) == [], "nothing is wrong"
        for name, fault in FAULTS.items():
            on.reads("en")
            async with fault.plant(on):
                told = await on.after(TOLD)
                assert [fault.begins[0] in one for one in told] == [True], (name, told)
                if name != "store":  # then nobody can know what was told
                    on.restart()
                assert await on.after(TOLD) == [], f"{name}, after a restart"
            told = await on.after(OVER)
            assert [fault.ends[0] in one for one in told] == [True], (name, told)
            on.reads("de")
            async with fault.plant(on):
                told = await on.after(TOLD)
                assert [fault.begins[1] in one for one in told] == [True], (name, "once more", told)
            told = await on.after(OVER)
            assert [fault.ends[1] in one for one in told] == [True], (name, told)
        assert await on.after(TOLD) == []


async def test_what_comes_and_goes_is_no_news(tmp_path: Path) -> None:
    assert (STANDS, GONE) == (MINUTE, 2 * MINUTE)
    async with watched(tmp_path) as on:
        async with contextlib.AsyncExitStack() as both:
            await both.enter_async_context(planted.no_space(on))
            await both.enter_async_context(planted.store_fails(on))
            assert len(await on.after(TOLD)) == 2, "what can be seen is told although the store fails"
        assert len(await on.after(OVER)) == 2
        async with planted.no_space(on):
            assert await on.after(1) == [], "it has not stood for a minute"
        assert await on.after(OVER) == []
        async with planted.no_space(on):
            assert len(await on.after(TOLD)) == 1
        assert await on.after(2) == [], "it has not been gone for two"
        async with planted.no_space(on):
            assert await on.after(OVER) == [], "it was never over"


async def test_an_adapter_that_a_server_takes_again_is_no_news(tmp_path: Path) -> None:
    async with watched(tmp_path) as on:
        for breaks in (on.bot.fake.forget, on.bot.fake.ignore):
            breaks()
            assert await on.after(OVER) == []
            assert await on.bot.app.server.served() == 1


@pytest.mark.parametrize("then", ["base", "another"])
async def test_who_goes_another_way_hears_no_more_of_a_version_that_was_lost(
    tmp_path: Path, then: str
) -> None:
    async with watched(tmp_path) as on:
        bot = on.bot
        bot.fake.set(refused=[1])
        bot.fake.forget()
        [told] = await on.after(TOLD)
        assert "v1 cannot be used any more" in told
        assert "The base model is in its place. `/rl rollback 1` tries it again." in told
        assert await _lost(bot) == "1"
        assert told.endswith("`/rl status` says why.")
        assert "put right" in await bot.command("status")
        if then == "base":
            await bot.rollback("base")
        else:
            await bot.rated(8)
            assert (await bot.train()).version == 2
        assert not await _lost(bot)
        assert [text for text in await on.after(OVER) if "v1" in text] == []


async def test_of_a_lost_version_that_nobody_may_try_again_it_is_not_told(tmp_path: Path) -> None:
    async with watched(tmp_path) as on:
        bot = on.bot
        bot.fake.set(refused=[1])
        bot.fake.forget()
        assert await on.after(1) == []
        why = adapters.FORGOTTEN
        scope = bot.app.registry.scope
        await bot.store.write(lambda db: adapters.mark(db, scope, set(), why, everything=True))
        assert await _lost(bot) == "1"
        assert [text for text in await on.after(OVER) if "cannot be used" in text] == []


async def _lost(bot: Bot) -> str:
    name = adapters.lost_switch(bot.app.registry.scope, bot.app.registry.model)
    return await bot.store.read(lambda db: settings.switch(db, name))


async def _unrated(db: aiosqlite.Connection) -> None:
    await db.execute("DELETE FROM labels")
    await db.execute("UPDATE turns SET rated = 0")


async def test_fewer_likes_are_told_only_where_there_are_enough_ratings_and_it_is_clear(
    tmp_path: Path,
) -> None:
    cases = (
        ((12, 40), (30, 40), True),
        ((12, 29), (39, 40), False),
        ((20, 40), (22, 40), False),
        ((20, 40), (30, 40), False),  # 95 % sure, once: but it is looked at after each rating
        ((39, 40), (12, 40), False),
    )
    async with watched(tmp_path) as on:
        for now, then, told in cases:
            await on.bot.store.write(_unrated)
            for version, (good, rated) in ((1, now), (0, then)):
                await on.rated([1.0] * good + [-1.0] * (rated - good), version=version)
            assert bool(await Alerts(on.bot.app)._liked_less()) == told, (now, then)
