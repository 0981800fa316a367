# SPDX-License-Identifier: Apache-2.0
"""The people for a page: who is on it, with what, in which order; and that it is for owners alone."""

from __future__ import annotations

import json
import sys
import time
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
from goodbot.api.events import ChannelKind, ChannelRef, MessageEvent, OrderKey, UserRef
from goodbot.api.people import PeoplePage, PeopleWanted, PersonSeen
from goodbot.base.errors import UsageError
from goodbot.commands import people_page
from goodbot.learning.rating_quality import agreement
from goodbot.store import joining, people
from goodbot.testing import connector_base

from tests.core.builders import GRANTS, Bot, open_bot, rows


def user(id_: str) -> UserRef:
    return UserRef(connector="loopback", account="loopback", id=id_)


async def page(bot: Bot, by: str = "owner", **wanted: Any) -> PeoplePage:
    return await bot.chat.host.people(user(by), PeopleWanted(**wanted))


async def seen(bot: Bot, who: str, **wanted: Any) -> PersonSeen:
    return next(
        one
        for one in (await page(bot, **wanted)).people
        if f"loopback:{who}" in [account.who for account in one.accounts]
    )


async def ask(bot: Bot, number: int) -> None:
    """A stranger writes in private."""
    who = replace(user(f"s{number}"), name=f" Ann\n{number}")
    channel = ChannelRef(connector="loopback", account="loopback", id=who.id, kind=ChannelKind.PRIVATE)
    event = MessageEvent(
        event_id=f"asks {number}",
        order=OrderKey(number),
        user=who,
        channel=channel,
        message_id=f"m{number}",
        text="May I?",
        addressed=True,
    )
    await bot.chat.host.submit([event])


async def test_each_person_once_with_their_roles_and_ratings(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        await bot.command("enable", channel="#team")
        both = await bot.say("both", channel="#team")
        await bot.react(both, "👍")
        await bot.react(both, "👍", user="rater")
        await bot.say("I only talk", user="guest", channel="#team")
        found = await page(bot)
        roles = [(one.role, one.you, one.ratings) for one in found.people if "loopback" in one.id]
        assert roles == [("owner", True, 1), ("rater", False, 1), ("talker", False, 0), ("", False, 0)]
        assert found.count == len(found.people)
        assert (await seen(bot, "rater")).accounts[0].granted == ["Rater by the config."]
        german = await bot.chat.host.people(replace(user("owner"), language="de"), PeopleWanted())
        [rater] = [one for one in german.people if one.id == "loopback:rater"]
        assert rater.accounts[0].granted == ["Darf bewerten – durch die Konfiguration."]
        await bot.command("people", "grant rater loopback:guest")
        [account] = (await seen(bot, "guest")).accounts
        assert account.granted[0].startswith("Rater by loopback:owner on ")
        assert [one.id for one in (await page(bot, text="GUEST")).people] == ["loopback:guest"]
        assert [one.role for one in (await page(bot, role="talker")).people] == ["talker"]
        await bot.store.write(lambda db: people.link(db, "loopback:guest", "loopback:rater", 1.0))
        linked = await seen(bot, "guest")
        assert [one.who for one in linked.accounts] == ["loopback:guest", "loopback:rater"]
        assert [one.unlink for one in linked.accounts] == ["", ""]
        await bot.store.write(lambda db: people.link(db, "loopback:owner", "loopback:talker", 1.0))
        mine = await seen(bot, "talker")
        assert (mine.role, [one.unlink for one in mine.accounts]) == ("owner", ["/rl unlink", ""])


async def test_pages_hold_everybody_once_and_in_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(people_page, "PAGE", 2)
    async with open_bot(tmp_path) as bot:
        for number in range(5):
            await bot.command("people", f"grant talker loopback:new{number}")
        ids: list[str] = []
        after = ""
        while True:
            found = await page(bot, after=after)
            assert 1 <= len(found.people) <= 2
            ids += [one.id for one in found.people]
            if not (after := found.after):
                break
        assert len(ids) == len(set(ids)) == found.count
        assert ids[-6:] == [*(f"loopback:new{number}" for number in range(5)), "loopback:talker"]
        for wrong in ({"after": "x"}, {"role": "king"}):
            with pytest.raises(UsageError):
                await page(bot, **wrong)


async def test_who_asks_is_listed_until_an_owner_answers(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        for number in range(7):  # five of them are told to an owner in a chat
            await ask(bot, number)

        async def all_here() -> bool:
            return [one.name for one in (await page(bot)).asking] == [f"Ann {n}" for n in range(6, -1, -1)]

        await connector_base.eventually(all_here)
        assert (await page(bot)).ask == 7
        await bot.command("people", "grant talker loopback:s1")
        await bot.command("people", "refuse loopback:s2")
        await bot.command("people", "grant rater loopback:s3")
        await bot.command("people", "revoke loopback:s3")
        left = [one.who for one in (await page(bot)).asking]
        assert left == [f"loopback:s{number}" for number in (6, 5, 4, 0)]
    async with open_bot(tmp_path) as bot:  # a restart forgot what they call themselves, and their order
        found = [(one.who, one.name) for one in (await page(bot)).asking]
        assert found == [(f"loopback:s{number}", f"Ann {number}") for number in (6, 5, 4, 0)]
        for sure in ("", " yes"):
            await bot.command("forget", f"loopback:s5{sure}")
        kept = await rows(bot.store, "SELECT person FROM join_requests ORDER BY seq")
        assert kept == [("loopback:s0",), ("loopback:s4",), ("loopback:s6",)]
        await bot.store.write(lambda db: joining.expire(db, time.time() + 31 * 86400))
        assert await rows(bot.store, "SELECT * FROM join_requests") == [], "for a month"
        assert [one.name for one in (await page(bot)).asking] == [""] * 3, "they are listed all the same"


async def test_who_asks_is_remembered_of_the_newest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(joining, "_KEPT", 3)
    async with open_bot(tmp_path) as bot:
        for number in range(6):
            await ask(bot, number)
        found = await bot.store.read(joining.asked)
        assert [one.person for one in found] == [f"loopback:s{number}" for number in (3, 4, 5)]


async def test_shares_agreement_and_who_turned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agreement, "FEWEST", 4)
    async with open_bot(tmp_path) as bot:
        assert (await seen(bot, "owner")).taught is None
        await bot.command("enable", channel="#team")
        for number in range(8):
            answer = await bot.say(f"question {number}", channel="#team")
            sign, other = ("👍", "👎") if number % 2 else ("👎", "👍")
            await bot.react(answer, sign)
            await bot.react(answer, sign, user="rater")
            if number % 2:
                await bot.command("people", "grant rater loopback:third")
                await bot.react(answer, sign, user="third")
        await bot.train()
        owner, rater, third = [await seen(bot, who) for who in ("owner", "rater", "third")]
        assert owner.taught is not None
        assert owner.taught == pytest.approx(rater.taught)
        assert sum(one.taught or 0 for one in (owner, rater, third)) == pytest.approx(1.0)
        assert owner.agreement is not None
        assert (owner.agreement.kappa, owner.agreement.answers) == (1.0, 8)
        assert third.agreement is None  # never bad
        for number in range(40):
            answer = await bot.say(f"more {number}", channel="#team")
            sign, other = ("👍", "👎") if number % 2 else ("👎", "👍")
            for who, said in (("owner", sign), ("third", sign), ("rater", other)):
                await bot.react(answer, said, user=who)
        turned = (await page(bot)).people[0]
        assert turned.id == "loopback:rater"
        assert "say the opposite of what others say" in turned.alarms["others"]
        assert turned.agreement is not None
        assert turned.agreement.kappa < 0


async def test_what_somebody_rated_is_left_out_and_taken_in_again(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        await bot.command("enable", channel="#team")
        for number in range(3):
            answer = await bot.say(f"question {number}", channel="#team")
            await bot.react(answer, "👍", user="rater")
            if not number:
                await bot.react(answer, "👎")
        await bot.react(await bot.say("mine", channel="#team"), "👍")
        asked = await bot.command("rollback", "person loopback:rater")
        assert "loopback:rater rated 3 answers. This leaves out all that they said of them, and" in asked
        assert (await seen(bot, "rater")).left_out == 0
        assert "3 ratings of 3 answers left out." in await bot.command(
            "rollback", "person loopback:rater yes"
        )
        left = await seen(bot, "rater")
        assert (left.ratings, left.left_out) == (0, 3)
        assert (await seen(bot, "owner")).ratings == 2, "what others said counts"
        assert (await seen(bot, "owner")).left_out == 0
        [first] = await rows(bot.store, "SELECT min(turn) FROM events WHERE rater = 'loopback:rater'")
        await bot.command("rollback", f"answers {first[0]}")
        assert "1 rating of 1 answer left out." in await bot.command("rollback", f"answers {first[0]} yes")
        assert "2 ratings of 3 answers count again." in await bot.command(
            "rollback", "person loopback:rater never"
        )
        assert ((await seen(bot, "rater")).ratings, (await seen(bot, "rater")).left_out) == (2, 0)
        assert "left out for another reason" not in await bot.command("rollback", f"answers {first[0]} never")
        assert (await seen(bot, "rater")).ratings == 3
        for wrong in ("person", "person loopback:nobody", "person loopback:rater maybe"):
            assert (
                "say whose" in (told := await bot.command("rollback", wrong)) or "has rated no answer" in told
            )
        assert await bot.command("rollback", "person loopback:owner", user="rater") != ""
        assert (await seen(bot, "owner")).left_out == 0


async def test_who_may_rate_by_a_group_is_found_by_its_name(tmp_path: Path) -> None:
    async with open_bot(tmp_path, grants=replace(GRANTS, rater_groups=("mods",))) as bot:
        bot.chat.groups = {"mods": {"grace"}}
        assert await bot.app.groups.refresh("loopback")
        found = (await page(bot, text="MODS")).people
        assert [(one.id, one.role, *one.groups) for one in found] == [("loopback:grace", "rater", "mods")]
        assert [list(one.groups) for one in (await page(bot, text="owner")).people][:1] == [[]]


async def test_a_rater_and_a_talker_get_nothing(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        for who in ("rater", "talker", "stranger"):
            with pytest.raises(UsageError, match="Only owners"):
                await page(bot, who)
        wire = json.dumps(asdict(await page(bot)))
        assert "loopback:rater" in wire


@pytest.mark.slow
async def test_ten_times_the_people_cost_no_more_than_ten_times_as_much(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:

        async def calls(people: int) -> int:
            """How many calls in Python a page takes when there are so many."""
            count = 0

            def seen(_: Any, event: str, __: Any) -> None:
                nonlocal count
                count += event in ("call", "c_call")

            async def many(db: Any) -> None:
                await db.executemany(
                    "INSERT OR IGNORE INTO grants VALUES (?, 'rater', 'loopback:owner', 1)",
                    [(f"loopback:p{number}",) for number in range(people)],
                )

            await bot.store.write(many)
            await bot.app.authorization.refresh(bot.store)
            sys.setprofile(seen)
            try:
                found = await page(bot)
            finally:
                sys.setprofile(None)
            assert found.count >= people
            assert len(found.people) == people_page.PAGE
            return count

        few, most = await calls(1000), await calls(10_000)
        assert most < 11 * few
