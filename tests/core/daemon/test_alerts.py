# SPDX-License-Identifier: Apache-2.0
"""Ten faults, planted one by one: owners hear of each once, of its end once, and again if it comes back."""

from __future__ import annotations

import dataclasses
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from goodbot.access import pairing
from goodbot.api.fingerprint import ServedAs
from goodbot.base import full_disk
from goodbot.base.clock import SystemClock
from goodbot.base.descriptors import Descriptors
from goodbot.base.errors import StoreError
from goodbot.config import ServingConfig
from goodbot.daemon.alerts import GONE, STANDS, Alerts
from goodbot.inference.servers import health
from goodbot.learning.rating_quality import contradictions
from goodbot.learning.rating_quality.contradictions import Alarm
from goodbot.store import Store, acceptance
from goodbot.store.acceptance import Acceptance

from tests.core.builders import Bot, open_bot

Plant = Callable[[Bot, pytest.MonkeyPatch], None]
HOUR = 3600.0


class ByHand(SystemClock):
    """A clock whose monotonic time a test turns on."""

    def __init__(self) -> None:
        self.at = 1000.0

    def monotonic(self) -> float:
        return self.at


def answered(value: object) -> Callable[..., Awaitable[Any]]:
    async def answer(*_: object) -> object:
        return value

    return answer


def no_space(_: Bot, patch: pytest.MonkeyPatch) -> None:
    patch.setattr(full_disk, "RESERVE", 1 << 60)


def store_fails(_: Bot, patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Store, "trouble", property(lambda _: "the disk does not take what is written"))


def model_ends(bot: Bot, patch: pytest.MonkeyPatch) -> None:
    patch.setattr(bot.app.server, "healthy", lambda: False)


def adapter_lost(bot: Bot, patch: pytest.MonkeyPatch) -> None:
    found = health._proof(1, ServedAs.BASE)
    patch.setattr(bot.app.registry.health, "found", found)


def platform_down(bot: Bot, patch: pytest.MonkeyPatch) -> None:
    patch.setitem(bot.app.connectors.errors, "pigeon", "the token is refused")


def clock_wrong(bot: Bot, patch: pytest.MonkeyPatch) -> None:
    patch.setitem(bot.app.connectors.time.ahead, "Pigeon", 600.0)


def descriptors_gone(_: Bot, patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Descriptors, "trouble", property(lambda _: "no file can be opened"))


def guessed_at(_: Bot, patch: pytest.MonkeyPatch) -> None:
    patch.setattr(pairing, "locked", answered(["pigeon"]))


def liked_less(bot: Bot, patch: pytest.MonkeyPatch) -> None:
    shares = {1: Acceptance(version=1, good=12, rated=40), 0: Acceptance(version=0, good=30, rated=40)}

    async def of(db: object, pool: object, version: int) -> Acceptance:
        return shares[version]

    patch.setattr(acceptance, "of", of)


def rater_turned(bot: Bot, patch: pytest.MonkeyPatch) -> None:
    turned = Alarm(rater="pigeon:eve", against="own", count=7, of=9, usual=0.1, since=1e9, seq=1)
    patch.setattr(contradictions, "alarmed", answered([turned]))


FAULTS: Mapping[str, tuple[Plant, str, str]] = {
    "disk": (no_space, "MB of the disk are free", "enough space"),
    "store": (store_fails, "cannot store anything", "I can store again"),
    "model": (model_ends, "My model does not answer", "My model answers again"),
    "adapter": (adapter_lost, "without what I have learnt", "uses what I have learnt again"),
    "platform": (platform_down, "Pigeon does not work: the token is refused.", "pigeon works again"),
    "clock": (clock_wrong, "600 s ahead of Pigeon", "clock is right again"),
    "descriptors": (descriptors_gone, "too many files and connections", "open files and connections again"),
    "guesses": (guessed_at, "guesses pairing codes on pigeon", "guesses pairing codes on pigeon any more"),
    "liked": (liked_less, "12 of 40 rated answers. Of the base model it was 30 of 40.", "any more"),
    "rater": (rater_turned, "pigeon:eve now disagrees with their own older", "pigeon:eve are as usual again"),
}

GERMAN = {
    "disk": ("Auf dem Datenträger sind weniger als", "Auf dem Datenträger ist wieder genug Platz."),
    "store": ("Ich kann nichts speichern: the disk does", "Ich kann wieder speichern."),
    "model": ("Mein Modell antwortet nicht: Sein Prozess", "Mein Modell antwortet wieder."),
    "adapter": (
        "Antworten kommen ohne das, was ich gelernt habe: v1 wird nicht wirklich benutzt: der Server des "
        "Modells antwortet wie das Basismodell.",
        "Der Server meines Modells benutzt wieder, was ich gelernt habe.",
    ),
    "platform": ("Pigeon funktioniert nicht: the token is refused.", "pigeon funktioniert wieder."),
    "clock": ("Rechners geht gegenüber Pigeon 600 s vor.", "Die Uhr dieses Rechners geht wieder"),
    "descriptors": ("Ich habe zu viele Dateien", "Ich kann wieder Dateien"),
    "guesses": ("Jemand rät Codes auf pigeon:", "Auf pigeon rät niemand mehr Codes."),
    "liked": (
        "12 von 40 bewerteten Antworten waren gut. Vorher (das Basismodell) waren es 30 von 40",
        "wieder so gut wie vorher",
    ),
    "rater": (
        "pigeon:eve widerspricht neuerdings den eigenen früheren Bewertungen",
        "pigeon:eve sind wieder wie üblich",
    ),
}


async def unreadable(*_: object) -> None:
    raise StoreError("the disk cannot be read")


class Watched:
    """A goodbot that looks when the test says so."""

    def __init__(self, bot: Bot) -> None:
        self.bot, self.clock = bot, ByHand()
        self.restart()
        self._read = len(bot.chat.news)

    def restart(self) -> None:
        self.alerts = Alerts(dataclasses.replace(self.bot.app, clock=self.clock))

    async def after(self, seconds: float) -> list[str]:
        """What is told that much later: alerts look all the while."""
        for _ in range(2):
            await self.alerts.look()
            await self.bot.app.news._look_at_ratings()
            self.clock.at += seconds / 2
        await self.alerts.look()
        self.bot.app.news._looked_at = None
        await self.bot.app.news._look_at_ratings()
        told, self._read = self.bot.chat.news[self._read :], len(self.bot.chat.news)
        return [item.text for item in told]


async def test_each_of_ten_faults_is_told_once_and_its_end(tmp_path: Path) -> None:
    assert len(FAULTS) == 10
    async with open_bot(tmp_path) as bot:
        await bot.rated(8)
        await bot.train()
        bot.app._tasks["maintenance"].cancel()
        bot.app._tasks["news"].cancel()
        await bot.app.news.look()
        watched = Watched(bot)
        assert await watched.after(HOUR) == [], "nothing is wrong"
        for name, (plant, begins, ends) in FAULTS.items():
            for again in (False, True):
                with pytest.MonkeyPatch.context() as patch:
                    plant(bot, patch)
                    [told] = await watched.after(HOUR)
                    assert begins in told, (name, again)
                    assert await watched.after(HOUR) == [], name
                    if name != "store":
                        watched.restart()
                        assert await watched.after(HOUR) == [], f"{name}, after a restart"
                [told] = await watched.after(HOUR)
                assert ends in told, (name, again)
                assert await watched.after(HOUR) == [], name


async def test_each_fault_and_its_end_is_told_in_the_owners_language(tmp_path: Path) -> None:
    assert GERMAN.keys() == FAULTS.keys()
    serving = ServingConfig(history=0, ask="never", language="de")
    async with open_bot(tmp_path, sections={"serving": serving}) as bot:
        await bot.rated(8)
        await bot.train()
        for task in ("maintenance", "news"):
            bot.app._tasks[task].cancel()
        await bot.app.news.look()
        watched = Watched(bot)
        for name, (begins, ends) in GERMAN.items():
            with pytest.MonkeyPatch.context() as patch:
                FAULTS[name][0](bot, patch)
                [told] = await watched.after(HOUR)
                assert begins in told, name
            [told] = await watched.after(HOUR)
            assert ends in told, name


async def test_what_comes_and_goes_is_no_news(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        bot.app._tasks["maintenance"].cancel()
        watched = Watched(bot)
        with pytest.MonkeyPatch.context() as patch:
            store_fails(bot, patch)
            patch.setattr(pairing, "locked", unreadable)
            no_space(bot, patch)
            assert len(await watched.after(HOUR)) == 2, "what can be seen is told although the store fails"
        assert len(await watched.after(HOUR)) == 2
        with pytest.MonkeyPatch.context() as patch:
            no_space(bot, patch)
            assert await watched.after(STANDS - 1) == []
        assert await watched.after(HOUR) == []
        with pytest.MonkeyPatch.context() as patch:
            no_space(bot, patch)
            assert len(await watched.after(STANDS)) == 1
        assert await watched.after(GONE - 1) == []
        with pytest.MonkeyPatch.context() as patch:
            no_space(bot, patch)
            assert await watched.after(HOUR) == [], "it was never over"


@pytest.mark.parametrize(
    ("now", "then", "told"),
    [
        ((12, 40), (30, 40), True),
        ((12, 29), (39, 40), False),
        ((20, 40), (22, 40), False),
        ((20, 40), (30, 40), False),  # 95 % sure, once: but it is looked at after each rating
        ((39, 40), (12, 40), False),
    ],
)
async def test_fewer_likes_are_told_only_where_there_are_enough_ratings_and_it_is_clear(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, now: tuple[int, int], then: tuple[int, int], told: bool
) -> None:
    async with open_bot(tmp_path) as bot:
        await bot.rated(8)
        await bot.train()

        async def of(db: object, pool: object, version: int) -> Acceptance:
            good, rated = now if version else then
            return Acceptance(version=version, good=good, rated=rated)

        monkeypatch.setattr(acceptance, "of", of)
        assert bool(await Alerts(bot.app)._liked_less()) == told
