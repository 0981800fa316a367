# SPDX-License-Identifier: Apache-2.0
"""Rule 4: what is taken back leaves the training too, whenever it is taken back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from goodbot.learning.training.publish import Publisher
from goodbot.store.ledger import took_back

from tests.core.builders import Bot, check, open_bot, until


async def undo(bot: Bot, number: int) -> str:
    """Take back what `rated` said of an answer; returns its turn."""
    answer = bot.answers[number]
    await bot.unreact(answer, "👍" if number % 2 == 0 else "👎")
    return answer.turn


async def a_trained_one(bot: Bot, version: int = 1) -> int:
    """The index of an answer that this version was trained on (not held out)."""
    trained = await bot.trained(version)
    return next(i for i, answer in enumerate(bot.answers) if answer.turn in trained)


async def test_learning_and_answering_with_what_was_learnt(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        await bot.rated(8)
        verdict = await bot.train()
        assert (verdict.state, verdict.version) == ("activated", 1), verdict.reason
        assert (await bot.say("Who are you?")).text == "v1 says: Who are you?"
        assert len(await bot.trained(1)) == 6
        await check(bot)


async def test_an_undo_while_it_trains_is_left_out_of_what_goes_live(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        await bot.rated(8)
        await bot.start_training()
        undone = await undo(bot, 0)
        run = await bot.finish_training()
        assert run.state == "activated", run.reason
        assert undone not in await bot.trained(await bot.app.registry.active())
        await check(bot)


async def test_a_rating_changed_while_it_trains_is_left_out_of_what_goes_live(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        await bot.rated(8)
        await bot.start_training()
        await bot.react(bot.answers[0], "👎")
        assert (await bot.finish_training()).state == "activated"
        assert bot.answers[0].turn not in await bot.trained(1)
        await check(bot)


async def test_a_new_opinion_while_it_trains_takes_nothing_back(tmp_path: Path) -> None:
    """Neither does the same opinion said again, nor another person's."""
    async with open_bot(tmp_path) as bot:
        await bot.rated(8)
        await bot.start_training()
        await bot.command("good", bot.answers[0].turn)
        await bot.react(bot.answers[0], "👍", user="rater")
        assert (await bot.finish_training()).state == "activated"
        await bot.react(bot.answers[2], "👍", user="rater")
        await bot.command("good", bot.answers[2].turn)
        assert not (await bot.status())["tainted"]
        await check(bot)


class BetweenRecordAndPointer:
    """Does something at the one moment when the adapter is recorded and not yet live."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, then: Any) -> None:
        real = Publisher._activate

        async def activate(trainer: Publisher, *args: Any) -> Any:
            await then()
            return await real(trainer, *args)

        monkeypatch.setattr(Publisher, "_activate", activate)


async def test_an_undo_between_the_record_and_the_pointer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_bot(tmp_path) as bot:
        await bot.rated(8)
        with monkeypatch.context() as patch:
            undone = list[str]()

            async def once() -> None:
                if not undone:
                    undone.append(await undo(bot, 0))

            BetweenRecordAndPointer(patch, once)
            verdict = await bot.train()
        assert (verdict.run, verdict.state, verdict.version) == (1, "activated", 2)
        assert undone[0] not in await bot.trained(2)
        first, second = await bot.app.registry.rows()
        assert first.tainted
        assert first.erased_at is not None, "who is forgotten later would not be found by it"
        assert not second.tainted
        assert (await bot.command("status")).count("v1") == 0
        assert "not to be used" in await bot.command("rollback", "1")
        await check(bot)


async def test_an_undo_in_the_parents_ratings_while_the_child_trains(tmp_path: Path) -> None:
    """The child's own ratings are untouched, but its weights start from the parent's."""
    async with open_bot(tmp_path) as bot:
        await bot.rated(8)
        await bot.train()
        first = await a_trained_one(bot)
        await bot.rated(8)
        await bot.start_training()
        undone = await undo(bot, first)
        run = await bot.finish_training()
        assert (run.state, run.parent) == ("activated", 0), run.reason
        assert undone not in await bot.trained(await bot.app.registry.active())
        await check(bot)


async def test_an_undo_in_the_parents_ratings_between_record_and_pointer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_bot(tmp_path) as bot:
        await bot.rated(8)
        await bot.train()
        first = await a_trained_one(bot)
        await bot.rated(8)
        with monkeypatch.context() as patch:
            BetweenRecordAndPointer(patch, lambda: undo(bot, first))
            await bot.command("train", "wait")
        await bot.settle()
        assert (await bot.run(2)).state == "released"
        assert [bool(row.tainted) for row in await bot.app.registry.rows()] == [True, True, False]
        await check(bot)


async def test_an_undo_afterwards_taints_the_adapter_and_all_that_descend_from_it(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        for _ in range(3):
            await bot.rated(8)
            await bot.train()
        second = await a_trained_one(bot, 1)
        await bot.rated(8)
        turn = await undo(bot, second)
        assert (await bot.status())["tainted"]
        assert (
            "v3 answers until it is replaced: a rating that it was trained on has changed"
            in await bot.command("status")
        )
        await bot.settle()
        assert [row.version for row in await bot.app.registry.rows() if row.tainted] == [1, 2, 3]
        assert await bot.app.registry.active() == 4
        assert (await bot.app.registry.row(4)).parent == 0
        trained = await bot.trained(4)
        assert turn not in trained
        assert len(trained) == 31 - round(31 / 4)  # all the others, once more
        await check(bot)


async def test_an_undo_while_the_scheduler_looks_trains_anew_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It had found that nothing was due: that must not withdraw what a retraining replaces."""
    async with open_bot(tmp_path) as bot:
        for _ in range(2):
            await bot.rated(8)
            await bot.train()
        number = await a_trained_one(bot)
        scheduler, real = bot.app.scheduler, bot.app.scheduler.readiness

        async def readiness() -> Any:
            found = await real()
            monkeypatch.undo()
            await undo(bot, number)
            return found

        monkeypatch.setattr(scheduler, "readiness", readiness)
        scheduler.wake()
        await until_version(bot, 3)
        assert (await bot.app.registry.row(3)).parent == 0
        await check(bot)


async def test_it_retrains_from_the_clean_ancestor(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        await bot.rated(8)
        await bot.train()
        old = await bot.trained(1)
        await bot.rated(8)
        await bot.train()
        fresh = set(await bot.trained(2)) - set(old)
        await undo(bot, next(i for i, a in enumerate(bot.answers) if a.turn in fresh))
        await bot.settle()
        assert [row.version for row in await bot.app.registry.rows() if row.tainted] == [2]
        assert await bot.app.registry.active() == 3
        assert (await bot.app.registry.row(3)).parent == 1
        await check(bot)


async def test_by_itself_it_retrains_when_enough_is_left(tmp_path: Path) -> None:
    async with open_bot(tmp_path, schedule="auto") as bot:
        await bot.rated(8)
        await until_version(bot, 1)
        await undo(bot, await a_trained_one(bot))
        await until_version(bot, 2)
        assert not (await bot.status())["tainted"]
        await check(bot)


async def test_by_itself_it_withdraws_when_too_few_are_left(tmp_path: Path) -> None:
    async with open_bot(tmp_path, schedule="auto") as bot:
        await bot.rated(8)
        await until_version(bot, 1)
        await bot.command("pause")
        trained = await bot.trained(1)
        for number, answer in enumerate(bot.answers):
            if answer.turn in trained:
                await undo(bot, number)
        await bot.command("resume")
        await until_version(bot, 0)
        assert (await bot.say("Who?")).text == "v0 says: Who?"
        await check(bot)


async def test_paused_it_withdraws_at_once(tmp_path: Path) -> None:
    async with open_bot(tmp_path, schedule="auto") as bot:
        await bot.rated(8)
        await until_version(bot, 1)
        await bot.command("pause")
        await undo(bot, await a_trained_one(bot))
        await until_version(bot, 0)
        await check(bot)


async def until_version(bot: Bot, version: int) -> None:
    async def there() -> bool:
        return await bot.app.registry.active() == version and not bot.app.scheduler.training

    await until(there)


async def test_an_undo_of_what_was_only_held_out_taints_nothing(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        await bot.rated(8)
        await bot.train()
        trained = await bot.trained(1)
        held = next(i for i, answer in enumerate(bot.answers) if answer.turn not in trained)
        await undo(bot, held)
        assert not (await bot.status())["tainted"]
        await check(bot)


async def test_a_tainted_version_cannot_be_gone_back_to(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        await bot.rated(8)
        await bot.train()
        await bot.rollback("base")
        await undo(bot, await a_trained_one(bot))
        assert "not to be used" in await bot.command("rollback", "1")
        # Nor when the undo comes between the question and the pointer:
        assert not await bot.app.registry.activate(1, expected=0)
        assert await bot.app.registry.active() == 0
        await check(bot)


async def test_an_adapter_that_a_crash_kept_from_going_live_is_never_used(tmp_path: Path) -> None:
    """Its ratings are free for the next run: an undo would not reach it any more."""
    async with open_bot(tmp_path) as bot:
        await bot.rated(8)
        await bot.train()

        # As a crash between record and pointer leaves it:
        async def crash(db: Any) -> None:
            await db.execute("UPDATE runs SET state = 'running'")
            await db.execute("UPDATE pointers SET version = 0")

        await bot.store.write(crash)
    async with open_bot(tmp_path) as bot:
        [row] = await bot.app.registry.rows()
        assert row.tainted
        run = await bot.last_run()
        assert (run.state, run.reason[-27:]) == ("superseded", "while its adapter went live")
        assert (await bot.status())["ratings"] == 8
        await check(bot)


def test_took_back() -> None:
    assert not took_back({}, {"a": 1.0})
    assert not took_back({"a": 1.0}, {"a": 1.0, "b": -1.0})
    assert took_back({"a": 1.0}, {"a": -1.0})
    assert took_back({"a": 1.0, "b": 1.0}, {"b": 1.0})


async def test_there_may_be_nothing_to_take_back(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        rated, other = await bot.say("one"), await bot.say("two")
        await bot.react(rated, "👎")
        for word in ("undo", "stars"):
            said = await bot.command(word, "0" if word == "stars" else "", reply_to=other.message.id)
            assert said.startswith("You have nothing to take back there.")
        said = await bot.command("stars", "0", reply_to=rated.message.id)
        assert said.startswith("You have nothing to take back there"), "a thumb is no stars"
        assert await bot.labels(rated) == {"loopback:owner": -1.0}
        assert "Taken back" in await bot.command("undo")
        assert await bot.labels(rated) == {}
