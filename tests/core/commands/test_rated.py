# SPDX-License-Identifier: Apache-2.0
"""The rated answers for a page: what is on it, by pages and filters, and what a rater does not get."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from goodbot.api.events import UserRef
from goodbot.api.rated import RatedAnswer, RatedPage, RatedWanted
from goodbot.base.errors import UsageError
from goodbot.store import rated
from goodbot.testing import VirtualClock

from tests.core.builders import Bot, open_bot


def user(id_: str) -> UserRef:
    return UserRef(connector="loopback", account="loopback", id=id_)


async def page(bot: Bot, by: str = "owner", **wanted: Any) -> RatedPage:
    return await bot.chat.host.rated(user(by), RatedWanted(**wanted))


async def questions(bot: Bot, by: str = "owner", **wanted: Any) -> list[str]:
    return [one.question for one in (await page(bot, by, **wanted)).answers]


async def leave_out_since(bot: Bot, when: str) -> None:
    for words in (f"since {when}", f"since {when} yes"):
        await bot.command("rollback", words)


async def rated_bot(bot: Bot) -> None:
    """Good by both, bad with a reason by the owner, good by the rater; one that nobody rates."""
    await bot.command("enable", channel="#team")
    both = await bot.say("both like it", channel="#team")
    await bot.react(both, "👍")
    await bot.react(both, "👍", user="rater")
    bad = await bot.say("Łódź is bad", channel="#team")
    await bot.react(bad, "👎")
    await bot.chat.comment(bad, "Too long.")
    theirs = await bot.say("theirs", channel="#team")
    await bot.react(theirs, "👍", user="rater")
    await bot.say("nobody rates this", channel="#team")


async def test_the_newest_first_by_pages_and_by_each_choice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_bot(tmp_path) as bot:
        await rated_bot(bot)
        assert await questions(bot) == ["theirs", "Łódź is bad", "both like it"]
        assert await questions(bot, rating="bad") == await questions(bot, text="łódź") == ["Łódź is bad"]
        assert await questions(bot, words=True) == ["Łódź is bad"]
        assert await questions(bot, person="loopback:rater") == ["theirs", "both like it"]
        assert await questions(bot, version="1") == await questions(bot, until=1.0) == []
        assert len(await questions(bot, version="base", place="loopback", since=1.0)) == 3
        monkeypatch.setattr(rated, "PAGE", 1)
        monkeypatch.setattr(rated, "_SEARCHED", 2)
        seen: list[str] = []
        after = ""
        while True:
            found = await page(bot, rating="good", after=after)
            seen += [one.question for one in found.answers]
            after = found.after
            if not after:
                break
        assert seen == ["theirs", "both like it"]
        with pytest.raises(UsageError):
            await page(bot, after="x")
        with pytest.raises(UsageError, match="Das würde goodbots Seite nicht fragen"):
            await bot.chat.host.rated(replace(user("owner"), language="de"), RatedWanted(after="x"))


async def test_a_line_says_who_rated_what_it_taught_and_what_is_left_out(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        await rated_bot(bot)
        await bot.rated(8)
        await bot.train()
        taught = next(iter(await bot.trained(1)))
        lines = {one.turn: one for one in (await page(bot)).answers}
        assert lines[taught].taught == [1]

        async def line(question: str) -> RatedAnswer:
            return next(one for one in (await page(bot)).answers if one.question == question)

        bad = await line("Łódź is bad")
        assert [(one.who, one.thumb, one.counts) for one in bad.ratings] == [("", -1.0, True)]
        assert [(one.kind, one.text) for one in bad.words] == [("comment", "Too long.")]
        both = await line("both like it")
        assert [one.who for one in both.ratings] == ["", "loopback:rater"]
        told = await bot.chat.host.leave_out(user("owner"), [bad.turn, both.turn])
        assert told.startswith("3 ratings of 2 answers left out.")
        both = await line("both like it")
        assert both.left_out
        gone = sorted((one.who, one.counts) for one in both.ratings)
        assert gone == [("", False), ("loopback:rater", False)]
        assert await questions(bot, left_out=True) == ["Łódź is bad", "both like it"]
        await bot.chat.host.leave_out(user("owner"), [bad.turn], again=True)
        assert not (await line("Łódź is bad")).left_out


async def test_what_a_time_has_left_out_is_found_with_its_words_and_by_every_choice(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        await rated_bot(bot)
        await leave_out_since(bot, "2000-01-01")
        later = await bot.say("said later", channel="#team")
        await bot.react(later, "👍")
        out = ["theirs", "Łódź is bad", "both like it"]
        assert await questions(bot) == ["said later", *out]
        assert await questions(bot, left_out=True) == out
        assert await questions(bot, left_out=True, rating="bad") == ["Łódź is bad"]
        assert await questions(bot, rating="good") == ["said later", "theirs", "both like it"]
        assert await questions(bot, left_out=True, person="loopback:rater") == ["theirs", "both like it"]
        assert await questions(bot, words=True) == ["Łódź is bad"]
        (bad,) = (await page(bot, left_out=True, words=True)).answers
        assert bad.left_out
        assert [(one.thumb, one.counts) for one in bad.ratings] == [(-1.0, False)]
        assert [(one.text, one.counts) for one in bad.words] == [("Too long.", False)]
        told = await bot.chat.host.leave_out(user("owner"), [bad.turn], again=True)
        assert "`rollback since never`" in told
        assert await questions(bot, "rater") == []
        await bot.command("rollback", "since never")
        assert await questions(bot, left_out=True) == []
        assert await questions(bot, "rater") == ["theirs", "both like it"]


async def test_a_later_opinion_that_is_left_out_stands_beside_the_one_before_it(tmp_path: Path) -> None:
    clock = VirtualClock(waits=True)
    async with open_bot(tmp_path, clock=clock) as bot:
        answer = await bot.say("changed my mind")
        await bot.react(answer, "👎")
        clock.advance(86400)
        await bot.react(answer, "👍")
        await leave_out_since(bot, datetime.fromtimestamp(clock.now() - 60, UTC).isoformat())
        (line,) = (await page(bot, left_out=True)).answers
        assert [(one.thumb, one.counts) for one in line.ratings] == [(-1.0, True), (1.0, False)]


async def test_a_rater_gets_their_own_ratings_and_a_talker_nothing(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        await rated_bot(bot)
        await bot.react(await bot.say("my secret"), "👍")
        found = await page(bot, "rater")
        assert [one.question for one in found.answers] == ["theirs", "both like it"]
        wire = json.dumps(asdict(found), ensure_ascii=False)
        for kept in ("owner", "loopback:", "secret", "Too long", "Łódź", "#team"):
            assert kept not in wire, kept
        assert all([(one.who, one.thumb) for one in line.ratings] == [("", 1.0)] for line in found.answers)
        assert await questions(bot, "rater", rating="bad") == []
        for wanted in ({"person": "loopback:owner"}, {"left_out": True}, {"place": "loopback:#team"}):
            with pytest.raises(UsageError):
                await page(bot, "rater", **wanted)
        with pytest.raises(UsageError):
            await page(bot, "talker")
        with pytest.raises(UsageError):
            await bot.chat.host.leave_out(user("rater"), [found.answers[0].turn])
        assert len(await questions(bot)) == 4


async def test_answers_that_are_named_are_found_and_a_rater_gets_none_that_is_not_theirs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_bot(tmp_path) as bot:
        made = await bot.rated(4)
        await bot.react(await bot.say("theirs", user="rater"), "👍", user="rater")
        named = [made[0].turn, made[2].turn, "unknown"]
        assert await questions(bot, turns=named) == ["question 2", "question 0"]
        assert await questions(bot, turns=named, rating="bad") == []
        assert await questions(bot, "rater", turns=named) == []
        unrated = await bot.say("nobody rates this")
        assert await questions(bot, turns=[unrated.turn]) == []
        monkeypatch.setattr(rated, "_SEARCHED", 2)
        assert await questions(bot, turns=named) == ["question 2", "question 0"], "however old they are"
