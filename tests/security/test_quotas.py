# SPDX-License-Identifier: Apache-2.0
"""How much of one person's is kept, and what of the disk is left to ratings."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from goodbot.access import limits
from goodbot.api.events import Outcome, RatingEvent, RatingKind, UserRef
from goodbot.base import full_disk
from goodbot.base.errors import StoreError
from goodbot.config import ServingConfig
from goodbot.testing import VirtualClock

from tests.core.builders import open_bot
from tests.core.store.test_trouble import fail
from tests.core.test_captures import HERE, Place, capture, count, one, rating

SMALL = {"serving": ServingConfig(megabytes_per_day=1)}
HALF = "é" * 225_000
"""450,000 bytes."""


def of(user: str) -> Place:
    return Place(UserRef(connector="loopback", account="loopback", id=user), HERE.channel)


@pytest.mark.parametrize("who", ["talker", "rater"])
async def test_s7_captures_of_one_person_are_so_many_bytes_a_day(tmp_path: Path, who: str) -> None:
    """A client that may only talk wrote 125 MB in 18 s."""
    clock = VirtualClock(waits=True)
    async with open_bot(tmp_path, clock=clock, sections=SMALL) as bot:
        for name in ("a", "b"):
            done = await one(bot, capture(name, of(who), response=HALF, kind="side"))
            assert done.outcome is Outcome.ACCEPTED
        refused = await one(bot, capture("c", of(who), response=HALF, kind="side"))
        assert refused.outcome is Outcome.IGNORED
        assert "You sent more than 1 MB within a day" in refused.text
        assert await count(bot, "turns") == 2
        again = await one(bot, capture("a", of(who), response=HALF, kind="side"))
        assert (again.outcome, again.duplicate) == (Outcome.ACCEPTED, True)
        other = await one(bot, capture("o", of("owner"), response=HALF * 4))
        assert other.outcome is Outcome.ACCEPTED, "the owner's machine is the owner's"
        clock.advance(43_200)
        assert (await one(bot, capture("c", of(who), response=HALF))).outcome is Outcome.ACCEPTED


async def test_s7_messages_count_with_them(tmp_path: Path) -> None:
    async with open_bot(tmp_path, sections=SMALL) as bot:
        for name in ("a", "b"):
            assert (await one(bot, capture(name, of("rater"), response=HALF))).turn
        refused = await bot.say(HALF, user="rater")
        assert (refused.turn, "You sent more than 1 MB" in refused.text) == ("", True)
        assert (await bot.say("a short one?", user="rater")).turn


def words(name: str, kind: RatingKind, text: str, turn: str, who: str = "rater") -> RatingEvent:
    said = rating(name, turn=turn)
    return replace(said, kind=kind, value=None, text=text, user=of(who).user)


@pytest.mark.parametrize("kind", [RatingKind.COMMENT, RatingKind.BETTER])
async def test_s7_words_with_ratings_count_with_them_and_the_ratings_go_in(
    tmp_path: Path, kind: RatingKind
) -> None:
    """Of 300 better answers of 9.8 kB that one rater wrote within two seconds, all were kept."""
    long = "a word " * 1400
    async with open_bot(tmp_path, sections=SMALL) as bot:
        turn = (await one(bot, capture("a"))).turn
        own = (await bot.say("Hi", user="rater")).turn
        done = [await one(bot, words(f"w{n}", kind, f"{n} {long}", turn)) for n in range(150)]
        kept = [one for one in done if one.outcome is Outcome.ACCEPTED]
        assert len(kept) == 1_000_000 // len(f"10 {long}")
        assert {one.outcome for one in done[len(kept) :]} == {Outcome.IGNORED}
        assert "You sent more than 1 MB within a day" in done[-1].text
        name = "reason" if kind is RatingKind.COMMENT else "better"
        typed = await bot.chat.command(name, f"{own} {long}", user="rater")
        assert "You sent more than 1 MB within a day" in typed.text
        [typed] = await bot.chat.host.submit([bot.chat.typed("good", long, user="rater")])
        assert (typed.outcome, "You sent more than 1 MB" in typed.text) == (Outcome.IGNORED, True)
        assert await count(bot, "events") == len(kept)
        bare = replace(rating("r", turn=turn), user=of("rater").user)
        assert (await one(bot, bare)).outcome is Outcome.ACCEPTED
        assert (await bot.chat.command("bad", own, user="rater")).text.startswith("Bad.")
        assert (await one(bot, words("o", kind, long, turn, "owner"))).outcome is Outcome.ACCEPTED


async def test_s7_with_little_space_words_are_not_kept_and_say_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_bot(tmp_path) as bot:
        turn = (await one(bot, capture("a"))).turn
        little(monkeypatch, full_disk.RESERVE - 1)
        refused = await one(bot, words("w", RatingKind.COMMENT, "too long", turn, "owner"))
        assert (refused.outcome, await count(bot, "events")) == (Outcome.IGNORED, 0)
        assert refused.text == "Less than 500 MB of the disk are free: your words are not kept, ratings are."
        assert (await one(bot, rating("r", turn=turn))).outcome is Outcome.ACCEPTED


def little(monkeypatch: pytest.MonkeyPatch, free: int) -> None:
    def usage(_: Path) -> SimpleNamespace:
        return SimpleNamespace(free=free)

    monkeypatch.setattr(full_disk.shutil, "disk_usage", usage)


async def test_s7_with_little_space_captures_stop_and_ratings_go_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_bot(tmp_path) as bot:
        turn = (await one(bot, capture("a"))).turn
        little(monkeypatch, full_disk.RESERVE - 1)
        refused = await one(bot, capture("b"))
        assert (refused.outcome, await count(bot, "turns")) == (Outcome.IGNORED, 1)
        assert refused.text.startswith("Less than 500 MB of the disk are free")
        assert (await one(bot, rating("r", turn=turn))).outcome is Outcome.ACCEPTED
        assert (await bot.say("And you?")).turn, "chats go on"
        assert "less than 500 MB of the disk are free" in await bot.command("status")
        little(monkeypatch, full_disk.RESERVE)
        assert (await one(bot, capture("b"))).outcome is Outcome.ACCEPTED
        assert "of the disk" not in await bot.command("status")


def test_s7_a_disk_that_says_nothing_keeps_nothing_back(tmp_path: Path) -> None:
    quotas = limits.Quotas(ServingConfig(), tmp_path / "gone", VirtualClock())
    assert quotas.no_reserve() is None


def test_s7_nobody_honest_meets_the_default(tmp_path: Path) -> None:
    """A program that has its whole prompt of 200,000 tokens kept a thousand times a day."""
    quotas = limits.Quotas(ServingConfig(), tmp_path, VirtualClock())
    assert not any(quotas.too_much("somebody", 800_000) for _ in range(1000))
    assert quotas.too_much("somebody", 300_000_000)


FEW = {"serving": ServingConfig(ratings_per_day=4)}


async def test_s7_ratings_of_one_person_are_so_many_a_day(tmp_path: Path) -> None:
    """One rater's program filled the disk with ratings, and kept everybody else's waiting."""
    clock = VirtualClock(waits=True)
    async with open_bot(tmp_path, clock=clock, sections=FEW) as bot:
        turn = (await one(bot, capture("a"))).turn
        ratings = [
            replace(rating(f"r{n}", value=(-1.0) ** n, turn=turn), user=of("rater").user) for n in range(6)
        ]
        done = [await one(bot, rated) for rated in ratings]
        assert [one.outcome for one in done] == [*[Outcome.ACCEPTED] * 4, *[Outcome.IGNORED] * 2]
        assert done[-1].text == (
            "That is more ratings and commands than I take within a day (4): try again later."
            " My owner can change [serving] ratings_per_day."
        )
        assert await count(bot, "events") == 4, "what was refused was not stored"
        again = await one(bot, ratings[0])
        assert (again.outcome, again.duplicate) == (Outcome.ACCEPTED, True), "what was told stays told"
        back = replace(ratings[0], event_id="back", kind=RatingKind.RETRACT, value=None)
        assert (await one(bot, back)).outcome is Outcome.ACCEPTED, "a word can always be taken back"
        owner = [await one(bot, rating(f"o{n}", turn=turn)) for n in range(6)]
        assert {one.outcome for one in owner} == {Outcome.ACCEPTED}
        clock.advance(86_400)
        assert (await one(bot, ratings[5])).outcome is Outcome.ACCEPTED


async def test_s7_commands_count_with_them_and_a_typed_rating_once(tmp_path: Path) -> None:
    async with open_bot(tmp_path, sections=FEW) as bot:
        own = (await bot.say("Hi", user="rater")).turn
        for word in ("good", "bad", "good", "bad"):
            assert (await bot.chat.command(word, own, user="rater")).outcome is Outcome.ACCEPTED
        inbox = await count(bot, "inbox")
        [refused] = await bot.chat.host.submit([bot.chat.typed("status", "", user="rater")])
        assert refused.outcome is Outcome.IGNORED
        assert refused.text.startswith("That is more ratings and commands than I take within a day (4)")
        assert "Taken back" in (await bot.chat.command("undo", own, user="rater")).text
        assert await count(bot, "inbox") == inbox + 1, "of what was refused nothing is kept"
        for _ in range(6):
            assert "ratings" in await bot.command("status"), "owners are not counted"


async def test_s7_what_the_disk_did_not_take_does_not_count(tmp_path: Path) -> None:
    """Sent again and again while the disk failed, one rating took the whole day's number."""
    async with open_bot(tmp_path, sections=FEW) as bot:
        turn = (await one(bot, capture("a"))).turn
        rated = replace(rating("r", turn=turn), user=of("rater").user)
        back = replace(rated, event_id="back", kind=RatingKind.RETRACT, value=None)
        away = bot.store.path.with_name("away")
        bot.store.path.rename(away)
        bot.store._writing.commit = fail  # type: ignore[method-assign]
        for _ in range(6):
            for event in (rated, back):
                with pytest.raises(StoreError):
                    await one(bot, event)
        away.rename(bot.store.path)
        assert (await one(bot, rated)).outcome is Outcome.ACCEPTED
        assert (await one(bot, back)).outcome is Outcome.ACCEPTED
        more = [replace(rated, event_id=f"m{n}", value=(-1.0) ** n) for n in range(4)]
        done = [await one(bot, event) for event in more]
        assert [one.outcome for one in done] == [*[Outcome.ACCEPTED] * 3, Outcome.IGNORED]


async def test_s7_one_that_cannot_be_stored_takes_no_number_of_those_sent_with_it(tmp_path: Path) -> None:
    async with open_bot(tmp_path, sections=FEW) as bot:
        turn = (await one(bot, capture("a"))).turn
        rated = replace(rating("r", turn=turn), user=of("rater").user)
        bad = replace(rated, event_id="bad", value=7.0)  # out of range: a broken connector
        for _ in range(6):
            with pytest.raises(StoreError):
                await one(bot, rated, bad)
        assert (await one(bot, rated)).outcome is Outcome.ACCEPTED


def test_s7_a_program_spends_ten_times_as_much_as_one_person_and_no_more(tmp_path: Path) -> None:
    """With what it said for itself it was eleven times as much."""
    quotas = limits.Quotas(ServingConfig(ratings_per_day=4), tmp_path, VirtualClock())

    def taken(name: str, *, back: bool = False) -> int:
        return sum(quotas.too_many("api:ci", speaks_for=name, back=back) is None for _ in range(10))

    names = [f"somebody-{number}" for number in range(2 * limits.PEOPLE_AT_ONCE)]
    for back in (False, True):
        assert taken("", back=back) == 4
        assert sum(taken(name, back=back) for name in names) == 4 * limits.PEOPLE_AT_ONCE - 4
        assert taken("", back=back) == 0
    assert quotas.too_many("api:other") is None


def test_s7_what_is_refused_of_all_takes_nothing_from_who_said_it(tmp_path: Path) -> None:
    clock = VirtualClock()
    quotas = limits.Quotas(ServingConfig(ratings_per_day=2), tmp_path, clock)
    for number in range(2 * limits.PEOPLE_AT_ONCE):
        assert quotas.too_many("api:ci", speaks_for=f"somebody-{number}") is None
    assert quotas.too_many("api:ci", speaks_for="ada")
    clock.advance(86_400 / (limits.PEOPLE_AT_ONCE - 1))  # two of all have come back
    assert [quotas.too_many("api:ci", speaks_for="ada") for _ in range(2)] == [None, None]
