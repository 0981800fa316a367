# SPDX-License-Identifier: Apache-2.0
"""`/rl link`: several accounts of one person have one vote, and none gets a grant by it."""

from __future__ import annotations

from pathlib import Path

import pytest
from goodbot.api.commands import Grant
from goodbot.api.events import Outcome
from goodbot.testing import VirtualClock

from tests.core.builders import Bot, check, open_bot, rows
from tests.core.made import rebuild
from tests.security.test_people import user


async def link(bot: Bot, first: str = "owner", second: str = "rater") -> str:
    code = (await bot.command("link", user=first)).split()[0]
    return await bot.command("link", code, user=second)


async def test_one_person_has_one_vote_the_last_one(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        answer = await bot.say("Hello?")
        await bot.react(answer, "👍")
        await bot.react(answer, "👎", user="rater")
        assert await bot.labels(answer) == {"loopback:owner": 1.0, "loopback:rater": -1.0}
        assert "one person now" in await link(bot)
        assert await bot.labels(answer) == {"loopback:owner": -1.0}
        await bot.react(answer, "👍")
        assert await bot.labels(answer) == {"loopback:owner": 1.0}
        await check(bot)
    async with open_bot(tmp_path) as bot:
        await bot.store.write(rebuild)
        assert await bot.labels(answer) == {"loopback:owner": 1.0}
        await bot.command("unlink", user="rater")
        assert await bot.labels(answer) == {"loopback:owner": 1.0, "loopback:rater": -1.0}
        await check(bot)


async def test_a_reaction_taken_away_takes_back_only_its_own_account(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        await link(bot)
        answer = await bot.say("Hello?")
        await bot.react(answer, "👍")
        await bot.react(answer, "👍", user="rater")
        await bot.unreact(answer, "👍", user="rater")
        assert await bot.labels(answer) == {"loopback:owner": 1.0}
        await bot.unreact(answer, "👍")
        assert await bot.labels(answer) == {}


async def test_undo_takes_back_all_that_the_person_said(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        await link(bot)
        answer = await bot.say("Hello?")
        await bot.react(answer, "👍")
        await bot.react(answer, "👎", user="rater")
        await bot.command("undo")  # the owner's last, in the owner's chat
        assert await bot.labels(answer) == {}


@pytest.mark.parametrize(("first", "second"), [("owner", "talker"), ("talker", "owner"), ("rater", "talker")])
async def test_linking_raises_no_grant(tmp_path: Path, first: str, second: str) -> None:
    async with open_bot(tmp_path) as bot:
        before = [bot.app.authorization.level(user(who)) for who in (first, second)]
        await link(bot, first, second)
        after = [bot.app.authorization.level(user(who)) for who in (first, second)]
        assert after == before
        answer = await bot.say("Hello?")
        assert (await bot.react(answer, "👍", user="talker")).outcome is Outcome.DENIED
        assert bot.app.authorization.level(user("talker")) is Grant.TALK


async def test_three_accounts_and_the_first_one_leaves(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        await bot.command("people", "grant rater loopback:ada")
        await link(bot, "owner", "rater")
        await link(bot, "rater", "ada")
        answer = await bot.say("Hello?")
        for who in ("owner", "rater", "ada"):
            await bot.react(answer, "👍", user=who)
        assert await bot.labels(answer) == {"loopback:owner": 1.0}
        await bot.command("unlink")
        assert await bot.labels(answer) == {"loopback:owner": 1.0, "loopback:ada": 1.0}
        await bot.command("unlink", user="ada")
        assert len(await bot.labels(answer)) == 3
        assert await rows(bot.store, "SELECT * FROM links") == []
        assert "linked with no other" in await bot.command("unlink")


async def test_an_adapter_that_learnt_a_vote_that_merges_away_is_tainted(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        answers = await bot.rated(8)
        for number, answer in enumerate(answers):
            await bot.react(answer, "👍" if number % 2 == 0 else "👎", user="rater")
        await bot.train()
        await link(bot)  # both had said the same of everything: nothing changes
        assert not (await bot.status())["tainted"]
        await check(bot)
        await bot.command("unlink", user="rater")
        trained = await bot.trained(1)
        target = next(answer for answer in answers if answer.turn in trained)
        other = "👎" if (await bot.labels(target))["loopback:owner"] > 0 else "👍"
        await bot.react(target, other, user="rater")  # a later opinion taints by itself
        await bot.settle()
        await check(bot)


async def test_merging_votes_that_differ_taints_what_learnt_both(tmp_path: Path) -> None:
    async with open_bot(tmp_path, min_ratings=2, held_out=1) as bot:
        await bot.command("people", "grant rater loopback:ada")
        answers = [await bot.say(f"{n}?") for n in range(4)]
        for answer in answers:
            for who, emoji in (("owner", "👍"), ("ada", "👍"), ("rater", "👎")):
                await bot.react(answer, emoji, user=who)
        await bot.train()
        await link(bot)  # the owner's 👍 merges into the rater's later 👎
        [first, *_] = await bot.app.registry.rows()
        assert first.tainted == "kept_joined"
        await bot.settle()
        await check(bot)


async def test_wrong_codes_lock_the_guesser_and_nobody_else(tmp_path: Path) -> None:
    clock = VirtualClock(waits=True)
    async with open_bot(tmp_path, clock=clock) as bot:
        code = (await bot.command("link")).split()[0]
        for n in range(4):
            assert "no code" in await bot.command("link", f"AAAA222{n + 2}", user="talker")
        assert "too many" in await bot.command("link", "AAAA2229", user="talker")
        assert "too many" in await bot.command("link", code, user="talker")
        assert "one person now" in await bot.command("link", code, user="rater")
        second = (await bot.command("link")).split()[0]
        clock.advance(899)
        clock.advance(2)
        assert "no code" in await bot.command("link", second, user="talker")  # it has expired
        third = (await bot.command("link")).split()[0]
        assert "one person now" in await bot.command("link", third, user="talker")


@pytest.mark.parametrize("args", ["x", "AAAA-2222", "everyday", "1 2 3", "\u202e"])
async def test_odd_codes_are_told(tmp_path: Path, args: str) -> None:
    async with open_bot(tmp_path) as bot:
        await bot.command("link")
        assert "no code that holds" in await bot.command("link", args, user="rater")
        assert await rows(bot.store, "SELECT * FROM links") == []


async def test_ones_own_code_links_nothing_and_a_channel_is_no_place_for_it(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        code = (await bot.command("link")).split()[0]
        assert "in private" in await bot.command("link", code, user="rater", channel="#room")
        assert "no code that holds" in await bot.command("link", code, user="rater"), "others have read it"
        assert "private chat" in await bot.command("link", user="rater", channel="#room")
        code = (await bot.command("link")).split()[0]
        assert "*other* account" in await bot.command("link", code)
        assert await bot.command("link", user="stranger") != ""
        assert await rows(bot.store, "SELECT * FROM links") == []


async def test_the_code_is_shown_and_not_kept(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        code = (await bot.command("link")).split()[0]
        stored = str(await rows(bot.store, "SELECT * FROM inbox"))
        assert code not in stored
        assert "shown_once" in stored
