# SPDX-License-Identifier: Apache-2.0
"""What a run claims is computed while ratings are stored, and is what it would be if none had waited."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import AsyncGenerator, Sequence
from pathlib import Path
from typing import Any

import pytest
from goodbot.api.sentences import in_words
from goodbot.learning.rating_quality import near_duplicates
from goodbot.learning.training import batch, claims, opening
from goodbot.learning.training.filtering import Screening
from goodbot.store import progress
from goodbot.store.runs import RunItem

from tests.core.builders import Bot, check, open_bot, until
from tests.support import patience

PHRASE = "Tell me once more how the weather will be tomorrow, please"


async def now(bot: Bot) -> Sequence[RunItem]:
    """What a run that begins now claims, all of it computed in one go."""
    core = bot.app
    taking = batch.usual(core, Screening(core.filtering), parent=0)
    return (await bot.store.snapshot(lambda db: batch.take(db, taking)))[1]


@contextlib.asynccontextmanager
async def while_computing(
    bot: Bot, monkeypatch: pytest.MonkeyPatch, at_least: int = 1
) -> AsyncGenerator[list[Any]]:
    """A run begins, and computes what it claims while the body runs; then the list holds that."""
    begun, go, found = threading.Event(), threading.Event(), list[Any]()
    real = claims.claim

    def slow(*args: Any, **more: Any) -> Any:
        begun.set()
        assert go.wait(patience(30)), "the body waits for the claim"
        return real(*args, **more)

    monkeypatch.setattr(claims, "claim", slow)
    claiming = asyncio.create_task(bot.app.trainer._claimed(0, in_words("a test"), at_least, False))
    await until(begun.is_set)
    monkeypatch.setattr(claims, "claim", real)
    try:
        async with asyncio.timeout(patience(20)):
            yield found
    finally:
        go.set()
        run, _, items = await claiming
    stored = await bot.store.read(lambda db: progress.items(db, run))
    assert stored == items
    found += items


async def asked_again(bot: Bot, count: int = 4) -> list[str]:
    """Nearly the same question, rated the same: together they weigh as few."""
    made = [await bot.say(PHRASE) for _ in range(count)]
    for answer in made:
        await bot.react(answer, "👍")
    return [answer.turn for answer in made]


async def test_t16_ratings_do_not_wait_for_what_a_run_claims(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was computed in the transaction: where thousands wait, a rating took seconds."""
    async with open_bot(tmp_path) as bot:
        await bot.rated(8)
        await asked_again(bot)
        before = await now(bot)
        async with while_computing(bot, monkeypatch) as claimed:
            late = await bot.say("Does this wait?")
            await bot.react(late, "👍")
        assert claimed == [*before], "and what came meanwhile waits for the next run"
        assert late.turn in {item.turn for item in await now(bot)}


async def test_t16_where_there_was_too_little_what_came_meanwhile_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_bot(tmp_path) as bot:
        await bot.rated(7)
        async with while_computing(bot, monkeypatch, at_least=8) as claimed:
            await bot.rated(1)
        assert len(claimed) == 8


@pytest.mark.parametrize("how", ["undone", "turned", "not shared"])
async def test_t16_what_changes_meanwhile_leaves_no_trace(
    how: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither in what is claimed nor in what the others weigh, or which of them are held out."""
    async with open_bot(tmp_path, duplicate_limit=2) as bot:
        await bot.rated(8)
        again = await asked_again(bot)
        await bot.command("share", "on", user="talker")
        private = await bot.say(PHRASE, user="talker")
        await bot.react(private, "👍")
        weights = {item.turn: item.weight for item in await now(bot)}
        async with while_computing(bot, monkeypatch) as claimed:
            if how == "undone":
                await bot.command("undo", again[0])
            elif how == "turned":
                await bot.react(bot.answers[0], "👎")
            else:
                await bot.command("share", "off", user="talker")
            expected = await now(bot)
        assert claimed == [*expected]
        if how == "turned":
            assert [item.reward for item in claimed if item.turn == bot.answers[0].turn] == [-1.0]
        else:
            gone = again[0] if how == "undone" else private.turn
            assert gone not in {item.turn for item in claimed}
            left = {item.turn: item.weight for item in claimed}
            assert any(left[turn] > weights[turn] for turn in again if turn in left), (
                "it made them weigh less"
            )


@contextlib.contextmanager
def restless(bot: Bot, turn: int, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Somebody changes this rating each time that a claim is computed ahead; yields how many it was given."""
    loop, real, given = asyncio.get_running_loop(), claims.claim, list[int]()

    def claim(found: Any, *args: Any, **more: Any) -> Any:
        given.append(len(found))
        if len(given) <= opening.TRIES:
            turned = bot.react(bot.answers[turn], "👎" if len(given) % 2 else "👍")
            asyncio.run_coroutine_threadsafe(turned, loop).result(patience(20))
        return real(found, *args, **more)

    with monkeypatch.context() as patch:
        patch.setattr(claims, "claim", claim)
        yield given


async def test_t16_who_changes_their_mind_all_the_time_holds_nobody_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_bot(tmp_path) as bot:
        await bot.rated(9)
        with restless(bot, 0, monkeypatch) as given:
            _, _, items = await bot.app.trainer._claimed(0, in_words("a test"), 8, False)
        assert given == [9, 9, 8]
        assert {item.turn for item in items} == {answer.turn for answer in bot.answers[1:]}


async def test_t16_where_nothing_can_be_left_out_all_is_taken_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_bot(tmp_path) as bot:
        await bot.rated(8)
        with restless(bot, 0, monkeypatch) as given:
            _, _, items = await bot.app.trainer._claimed(0, in_words("a test"), 8, False)
        assert given == [8, 8, 7, 8], "the last time in the transaction"
        assert {item.turn: item.reward for item in items}[bot.answers[0].turn] == -1.0


async def test_t16_a_run_that_starts_over_has_prepared_what_it_compares(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """That takes nearly all of the time, and while it claims ratings wait."""
    async with open_bot(tmp_path) as bot:
        await bot.rated(8)
        await bot.start_training()
        await bot.command("undo", bot.answers[0].turn)
        real, prepared = claims.claim, list[bool]()

        def claim(found: Any, *args: Any, **more: Any) -> Any:
            known = more.get("sketches", {})
            prepared.append(all(near_duplicates.exchange(one.turn) in known for one in found))
            return real(found, *args, **more)

        monkeypatch.setattr(claims, "claim", claim)
        assert (await bot.finish_training()).state == "activated"
        assert prepared == [True]
        await check(bot)


async def test_a_snapshot_shows_one_moment(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        await bot.rated(2)

        async def counted(db: Any) -> list[int]:
            found: list[int] = []
            for _ in range(2):
                async with db.execute("SELECT count(*) FROM labels") as rows:
                    found.append((await rows.fetchone())[0])
                await bot.rated(1)
            return found

        assert await bot.store.snapshot(counted) == [2, 2]
        assert await bot.store.snapshot(counted) == [4, 4]
