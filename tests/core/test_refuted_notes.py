# SPDX-License-Identifier: Apache-2.0
"""Notes that somebody's own ratings speak against leave the prompts, and come back as retired ones do."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from goodbot.commands.notes import own_notes
from goodbot.learning.training.job_spec import make_job
from goodbot.store import distilled, progress

from tests.core.builders import Bot, check_store, rows
from tests.core.made import OWNER
from tests.core.test_news import told
from tests.core.test_notes import SHORT, chip, noting, system


@asynccontextmanager
async def rating(home: Path, *, refute: bool = True, **more: Any) -> AsyncGenerator[Bot]:
    """A goodbot whose rounds find that each note which they compare is refuted."""
    async with noting(home, held_out=0, **more) as bot:
        bot.fake.set(refute=refute)
        yield bot


async def asks(bot: Bot, user: str = "owner", **fields: Any) -> None:
    """Somebody asks for shorter answers, and rates enough for a round."""
    for n in range(7):
        await bot.react(await bot.say(f"Question {n}?", user=user, **fields), "👍", user=user)
    await chip(bot, "long", user, **fields)


async def lines(bot: Bot, home: Path, run: int = 1) -> list[dict[str, Any]]:
    """What the child of a run was given to compare."""
    core = bot.app
    items = await bot.store.read(lambda db: progress.items(db, run))
    job = await make_job(core, core.registry, core.notes, run=run, parent=0, items=items, folder=home / "job")
    return job["lines"]


async def test_a_refuted_note_leaves_the_prompts_and_a_rollback_brings_it_back(tmp_path: Path) -> None:
    """With the default objective, which teaches no note."""
    async with rating(tmp_path) as bot:
        await asks(bot)
        assert SHORT in await system(bot)
        await bot.train()
        assert await system(bot) == ""
        assert f"(off: your ratings say otherwise) “{SHORT}”" in await bot.command("notes")
        await bot.command("rollback", "base")
        await bot.command("rollback", "base yes")
        assert SHORT in await system(bot)
        await check_store(bot.store)


async def test_one_that_ratings_bear_out_stays(tmp_path: Path) -> None:
    async with rating(tmp_path, refute=False) as bot:
        await asks(bot)
        await bot.train()
        assert SHORT in await system(bot)
        assert await rows(bot.store, "SELECT * FROM run_notes") == []


async def test_a_version_that_the_check_refuses_refutes_nothing(tmp_path: Path) -> None:
    async with rating(tmp_path) as bot:
        await asks(bot)
        bot.fake.set(train="refuse")
        await bot.train()
        assert SHORT in await system(bot)


async def test_its_person_is_told_once_and_may_have_it_back(tmp_path: Path) -> None:
    async with rating(tmp_path) as bot:
        await asks(bot)
        await bot.train()
        await bot.app.news.look()
        await bot.app.news.look()
        [(who, text)] = [(who, text) for who, text in told(bot) if "do not follow" in text]
        assert who == "owner"
        assert SHORT in text
        assert not any("no longer need" in text for _, text in told(bot)), "it is not learnt"
        [(number,)] = await rows(bot.store, "SELECT id FROM notes")
        [shown] = await own_notes(bot.app, OWNER, ())
        assert (shown.used, shown.learnt) == (False, False)
        await bot.command("notes", f"on {number}")
        assert SHORT in await system(bot)


async def test_who_asks_again_gets_it_again(tmp_path: Path) -> None:
    async with rating(tmp_path) as bot:
        await asks(bot)
        await bot.train()
        assert await system(bot) == ""
        await chip(bot, "long")
        assert SHORT in await system(bot)


async def test_what_its_person_wants_while_a_round_is_under_way_stays(tmp_path: Path) -> None:
    async with rating(tmp_path) as bot:
        await asks(bot)
        await bot.start_training()
        [(number,)] = await rows(bot.store, "SELECT id FROM notes")
        await bot.command("notes", f"edit {number} no lists")
        await bot.finish_training()
        assert "no lists" in await system(bot), "its old words were compared"


async def test_a_round_that_starts_over_forgets_what_it_found(tmp_path: Path) -> None:
    async with rating(tmp_path) as bot:
        await asks(bot)
        await bot.train()
        assert await rows(bot.store, "SELECT run, ratings, state FROM run_notes") == [(1, "[]", "retired")]
        await bot.store.write(lambda db: distilled.let_go(db, 1))
        assert await rows(bot.store, "SELECT * FROM run_notes") == []


async def test_a_note_is_compared_once_with_its_own_persons_ratings(tmp_path: Path) -> None:
    async with rating(tmp_path, refute=False) as bot:
        await bot.command("share", "on", user="ada")
        await asks(bot, "ada")
        for n in range(3):
            await bot.react(await bot.say(f"And {n}?"), "👎")
        await bot.train()
        [line] = await lines(bot, tmp_path)
        assert line["text"] == f'What readers have asked of your answers: "{SHORT}"'
        rated = await rows(bot.store, "SELECT turn, value FROM labels WHERE rater LIKE '%:ada'")
        assert sorted(line["good"]) == sorted(turn for turn, value in rated if value > 0)
        assert line["bad"] == [turn for turn, value in rated if value < 0]
        assert (len(line["good"]), len(line["bad"])) == (7, 1)
        for n in range(8):
            await bot.react(await bot.say(f"Then {n}?", user="ada"), "👍", user="ada")
        await bot.train()
        assert await lines(bot, tmp_path, 2) == [], "these answers follow it"


async def test_a_child_that_names_other_notes_silences_none(tmp_path: Path) -> None:
    async with rating(tmp_path, refute=False) as bot:
        await asks(bot)
        await bot.train()
        await chip(bot, "long", "ada")
        ids = [id_ for [id_] in await rows(bot.store, "SELECT id FROM notes")]
        await bot.store.write(lambda db: distilled.refute(db, 1, ids))
        [(note,)] = await rows(bot.store, "SELECT note FROM run_notes")
        [(whose,)] = await rows(bot.store, f"SELECT key FROM notes WHERE id = {note}")
        assert whose.endswith(":owner"), "it was made of an answer of that run, the other one was not"


async def test_nothing_is_compared_where_there_are_no_notes(tmp_path: Path) -> None:
    async with rating(tmp_path, refute=False, where="never") as bot:
        await asks(bot)
        await bot.train()
        assert await lines(bot, tmp_path) == []
