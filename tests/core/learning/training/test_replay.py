# SPDX-License-Identifier: Apache-2.0
"""`replay_share`: a round repeats some of what earlier ones learnt, and an undo reaches that too."""

from __future__ import annotations

from pathlib import Path

from goodbot.store.training_pool import replay_count

from tests.core.builders import Bot, check, open_bot, rows


async def items(bot: Bot, run: int) -> dict[str, tuple[str, bool]]:
    """Turn → its split, and whether it is replayed."""
    found = await rows(bot.store, "SELECT turn, split, replayed FROM run_items WHERE run = ?", (run,))
    return {turn: (split, bool(replayed)) for turn, split, replayed in found}


async def two_rounds(bot: Bot) -> tuple[set[str], set[str]]:
    """Eight ratings twice; returns what the first round learnt, and what the second repeats of it."""
    await bot.rated(8)
    await bot.train()
    first = {turn for turn, (split, _) in (await items(bot, 1)).items() if split == "train"}
    await bot.rated(8)
    await bot.train()
    again = {turn for turn, (_, replayed) in (await items(bot, 2)).items() if replayed}
    return first, again


def test_how_many_are_repeated() -> None:
    assert replay_count(30, 0.25) == 10, "10 of 40"
    assert replay_count(32, 0.2) == 8, "8 of 40"
    assert replay_count(10, 0.5) == 10, "as many as are new"
    assert replay_count(4, 0.9) == 36, "36 of 40"
    assert replay_count(10, 0.25) == 3, "3.33"
    assert replay_count(1, 0.25) == 0, "0.33"
    assert (replay_count(40, 0.0), replay_count(0, 0.5)) == (0, 0)


async def test_a_share_of_the_round_is_what_was_learnt_before(tmp_path: Path) -> None:
    async with open_bot(tmp_path, replay_share=0.25) as bot:
        first, again = await two_rounds(bot)
        second = await items(bot, 2)
        assert len(first) == 6
        assert again < first
        assert len(again) == 3, "beside the ten new ones: round(10 · ¼ / ¾)"
        assert {split for split, replayed in second.values() if replayed} == {"train"}
        assert (await bot.last_run()).state == "activated"
        assert set(await bot.trained_by(2)) >= again
        await check(bot)


async def test_nothing_is_replayed_unless_it_is_asked_for(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        _, again = await two_rounds(bot)
        assert again == set()


async def test_replayed_ratings_make_no_round_by_themselves_and_are_not_used_up(tmp_path: Path) -> None:
    async with open_bot(tmp_path, replay_share=0.5) as bot:
        first, again = await two_rounds(bot)
        spent = dict(await rows(bot.store, "SELECT id, spent FROM turns"))
        assert {spent[turn] for turn in first} == {1}, "they stay the first run's"
        assert again
        left = (await bot.status())["ratings"]
        bot.fake.set(train="nan")
        await bot.rated(8)
        assert (await bot.train()).state == "failed"
        assert (await bot.status())["ratings"] == left + 8
        spent = dict(await rows(bot.store, "SELECT id, spent FROM turns"))
        assert {spent[turn] for turn in first} == {1}, "nor does a failed run set them free"
        await check(bot)


async def test_an_undo_of_a_replayed_rating_taints_every_version_that_learnt_it(tmp_path: Path) -> None:
    """Also one that does not descend from the first that did."""
    async with open_bot(tmp_path, replay_share=0.25) as bot:
        await bot.rated(8)
        await bot.train()
        await bot.rollback("base")
        await bot.store.write(lambda db: db.execute("UPDATE adapters SET tainted = '' WHERE version = 1"))
        await bot.rated(8)
        await bot.train()
        again = [turn for turn, (_, replayed) in (await items(bot, 2)).items() if replayed]
        [row] = [row for row in await bot.app.registry.rows() if row.version == 2]
        assert (row.parent, bool(again)) == (0, True)
        answer = next(answer for answer in bot.answers if answer.turn == again[0])
        await bot.command("undo", answer.turn)
        tainted = {row.version for row in await bot.app.registry.rows() if row.tainted}
        assert 2 in tainted
        await check(bot)


async def test_an_undo_while_it_trains_reaches_a_run_that_only_repeats_that_rating(tmp_path: Path) -> None:
    async with open_bot(tmp_path, replay_share=0.25) as bot:
        await bot.rated(8)
        await bot.train()
        await bot.rated(8)
        await bot.start_training()
        again = [turn for turn, (_, replayed) in (await items(bot, 2)).items() if replayed]
        answer = next(answer for answer in bot.answers if answer.turn == again[0])
        await bot.command("undo", answer.turn)
        assert (await bot.finish_training()).state == "activated"
        assert answer.turn not in await bot.trained(await bot.app.registry.active())
        await check(bot)


async def test_other_ones_are_repeated_in_every_round(tmp_path: Path) -> None:
    async with open_bot(tmp_path, replay_share=0.25) as bot:
        await bot.rated(24)
        await bot.train()
        repeated: list[frozenset[str]] = []
        for run in (2, 3, 4):
            await bot.rated(8)
            await bot.train()
            found = await items(bot, run)
            repeated.append(frozenset(turn for turn, (_, replayed) in found.items() if replayed))
        assert len(set(repeated)) == 3
        held_out_later = [
            turn
            for run in (2, 3, 4)
            for turn, (split, _) in (await items(bot, run)).items()
            if split == "held_out" and turn in frozenset().union(*repeated)
        ]
        assert held_out_later == []
