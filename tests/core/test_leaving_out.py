# SPDX-License-Identifier: Apache-2.0
"""`rollback answers ID…`: what was said of single answers counts no more, nor does what learnt from it."""

from __future__ import annotations

from pathlib import Path

from goodbot.store import rollback_window, settings, turns

from tests.core.builders import Bot, check, open_bot, rows


async def answers(bot: Bot, *ids: str, then: str = "yes") -> str:
    words = f"answers {' '.join(ids)}"
    if then == "yes":
        assert f"type `/rl rollback {words} yes`" in await bot.command("rollback", words)
    return await bot.command("rollback", f"{words} {then}")


async def test_what_learnt_from_one_of_them_is_withdrawn_and_the_others_count(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        await bot.rated(8)
        await bot.train()
        assert await bot.app.registry.active() == 1
        taught = next(iter(await bot.trained(1)))
        assert (
            await answers(bot, taught)
            == "1 rating of 1 answer left out. Withdrawn: v1. The base model answers."
        )
        for answer in bot.answers:
            assert bool(await bot.labels(answer)) is (answer.turn != taught)
        await check(bot)
        assert await answers(bot, taught, then="never") == "1 rating of 1 answer counts again."
        assert all([await bot.labels(answer) for answer in bot.answers])
        await check(bot)


async def test_an_opinion_that_comes_later_counts_and_words_are_left_out_too(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        first, other = await bot.say("Hello?"), await bot.say("And now?")
        for answer in (first, other):
            await bot.react(answer, "👎")
            await bot.react(answer, "👎", user="rater")
            await bot.chat.comment(answer, "Too long.")
        assert (await answers(bot, first.turn, first.turn)).startswith("2 ratings of 1 answer left out.")
        assert await bot.labels(first) == {}
        assert set(await bot.labels(other)) == {"loopback:owner", "loopback:rater"}
        exported = await bot.app.commands.execute(bot.chat.typed("export", ""))
        assert exported.data["answers"] == 1
        await bot.command("good", first.turn)
        assert await bot.labels(first) == {"loopback:owner": 1.0}
        await answers(bot, first.turn, then="never")
        assert await bot.labels(first) == {"loopback:owner": 1.0, "loopback:rater": -1.0}
        await check(bot)


async def test_of_several_all_or_none_and_the_trail_has_a_row_for_each(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        made = [await bot.say(f"Question {number}") for number in range(3)]
        for answer in made:
            await bot.react(answer, "👍")
        ids = [answer.turn for answer in made]
        assert "there is no answer 'nothing'" in (await answers(bot, *ids, "nothing")).lower()
        assert all([await bot.labels(answer) for answer in made])
        await answers(bot, *ids)
        assert not any([await bot.labels(answer) for answer in made])
        trail, whole = await bot.store.read(settings.audit)
        assert whole
        left = [one.detail for one in trail if one.action == "leave out"]
        assert left == [f'{{"answer":"{id_}"}}' for id_ in ids]
        await bot.react(await bot.say("Another"), "👍")
        said = await bot.command("rollback", "since 2000-01-01")
        assert "yes" in said
        await bot.command("rollback", "since 2000-01-01 yes")
        assert await bot.command("rollback", "since never") == (
            "1 rating that was left out counts again; the next training uses it."
        )
        assert not any([await bot.labels(answer) for answer in made]), "they were picked one by one"
        await answers(bot, *ids, then="never")
        assert all([await bot.labels(answer) for answer in made])


async def test_what_is_left_out_is_kept_as_long_as_it_may_come_back(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        picked, old, back = [await bot.say(f"Question {number}") for number in range(3)]
        for answer in (picked, old, back):
            await bot.react(answer, "👍")
        await answers(bot, picked.turn)
        await bot.unreact(back, "👍")
        await bot.store.write(lambda db: rollback_window.add(db, 0.0, "loopback:owner", bot.app.clock.now()))
        await bot.store.write(lambda db: turns.expire(db, 9e12))
        assert {id_ for (id_,) in await rows(bot.store, "SELECT id FROM turns")} == {picked.turn, old.turn}
        await answers(bot, picked.turn, then="never")
        await bot.command("rollback", "since never")
        assert await bot.labels(picked) == {"loopback:owner": 1.0}
        assert await bot.labels(old) == {"loopback:owner": 1.0}


async def test_nobody_but_an_owner_may(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        answer = await bot.say("Hello?")
        await bot.react(answer, "👍")
        await bot.command("rollback", f"answers {answer.turn}", user="rater")
        await bot.command("rollback", f"answers {answer.turn} yes", user="rater")
        assert await bot.labels(answer) == {"loopback:owner": 1.0}
