# SPDX-License-Identifier: Apache-2.0
"""Notes that a round has taught are out of use while its version answers, and only so long."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from goodbot.daemon.loopback import Answer
from goodbot.learning.training import dry_run
from goodbot.learning.training.filtering import Screening
from goodbot.learning.training.job_spec import make_job
from goodbot.store import objections, progress
from goodbot_training.job.types import Job

from tests.core.builders import Bot, check_store, rows, until
from tests.core.learning.training.test_starting_over import meanwhile
from tests.core.test_news import told
from tests.core.test_notes import SHORT, chip, noting, system

TEAM = "#team"
HYBRID: dict[str, Any] = {"settings": {"objective": "hybrid"}}


@asynccontextmanager
async def taught(home: Path, *, retire: bool = True, **more: Any) -> AsyncGenerator[Bot]:
    """A goodbot whose rounds teach notes; `retire`: each that is tried is found to be learnt."""
    given: dict[str, Any] = {**HYBRID, "held_out": 0, **more}
    async with noting(home, **given) as bot:
        bot.fake.set(retire=retire)
        yield bot


async def course(bot: Bot, user: str = "owner", **fields: Any) -> Answer:
    """Somebody asks for shorter answers, and rates enough for a round; returns the answer with the chip."""
    await bot.say("Never rated?", user=user, **fields)
    for n in range(7):
        await bot.react(await bot.say(f"Question {n}?", user=user, **fields), "👍", user=user)
    answer, _ = await chip(bot, "long", user, **fields)
    return answer


async def sure(bot: Bot, command: str, text: str = "") -> None:
    """A command that asks back, and yes."""
    await bot.command(command, text)
    await bot.command(command, f"{text} yes".strip())


async def retired(bot: Bot) -> list[tuple[int, str]]:
    return await rows(bot.store, "SELECT run, state FROM run_notes ORDER BY run, note")


async def job_of(bot: Bot, home: Path, run: int = 1) -> Job:
    """What the child of a run got, or gets again."""
    core = bot.app
    items = await bot.store.read(lambda db: progress.items(db, run))
    raw = await make_job(core, core.registry, core.notes, run=run, parent=0, items=items, folder=home / "job")
    return Job.parse({**json.loads(json.dumps(raw)), "settings": {}})


async def test_a_learnt_note_leaves_the_prompts_and_a_rollback_brings_it_back(tmp_path: Path) -> None:
    async with taught(tmp_path) as bot:
        await course(bot)
        assert SHORT in await system(bot)
        await bot.train()
        assert await system(bot) == ""
        assert f"(learnt) “{SHORT}”" in await bot.command("notes")
        await sure(bot, "rollback", "base")
        assert SHORT in await system(bot), "it is data: nothing has switched it on"
        assert "(learnt)" not in await bot.command("notes")
        await sure(bot, "rollback", "1")
        assert await system(bot) == ""
        await sure(bot, "reset")
        assert await bot.app.registry.active() == 0
        assert SHORT not in await system(bot), "a reset leaves its rating out"
        await bot.command("rollback", "since never")
        assert SHORT in await system(bot)
        await check_store(bot.store)


async def test_one_that_is_not_learnt_stays(tmp_path: Path) -> None:
    async with taught(tmp_path, retire=False) as bot:
        await course(bot)
        await bot.train()
        assert await retired(bot) == [(1, "taught")]
        assert SHORT in await system(bot)


async def test_a_refused_version_retires_nothing(tmp_path: Path) -> None:
    async with taught(tmp_path) as bot:
        await course(bot)
        bot.fake.set(train="refuse")
        await bot.train()
        assert await retired(bot) == [(1, "retired")]
        assert SHORT in await system(bot)


async def test_a_start_from_the_base_brings_it_back(tmp_path: Path) -> None:
    async with taught(tmp_path) as bot:
        await course(bot)
        await bot.train()
        bot.fake.set(retire=False, gate={"score": 1.0, "start_over": 1.0})
        await bot.rated(8)
        await bot.train()
        assert await bot.app.registry.active() == 2
        assert SHORT in await system(bot), "v2 continues nothing of v1"


async def test_who_asks_again_gets_it_again(tmp_path: Path) -> None:
    async with taught(tmp_path) as bot:
        await course(bot)
        await bot.train()
        assert await system(bot) == ""
        again, _ = await chip(bot, "long")
        assert SHORT in await system(bot)
        await bot.unreact(again, "👎")
        assert await system(bot) == "", "what was asked again is taken back"


@pytest.mark.parametrize("change", ["on", "edit", "move"])
async def test_what_its_person_changes_is_a_new_line(tmp_path: Path, change: str) -> None:
    async with taught(tmp_path) as bot:
        await course(bot)
        await bot.train()
        [(number,)] = await rows(bot.store, "SELECT id FROM notes")
        said = {"on": f"on {number}", "edit": f"edit {number} no lists", "move": f"move {number} everybody"}
        await bot.command("notes", said[change])
        assert ("no lists" if change == "edit" else SHORT) in await system(bot)


@pytest.mark.parametrize("retire", [True, False])
@pytest.mark.parametrize("action", ["off", "delete"])
async def test_who_lets_go_of_a_learnt_note_hears_what_ends_it(
    tmp_path: Path, action: str, retire: bool
) -> None:
    async with taught(tmp_path, retire=retire) as bot:
        answer = await course(bot)
        await bot.train()
        [(number,)] = await rows(bot.store, "SELECT id FROM notes")
        assert "Take back the ratings" in await bot.command("notes", f"{action} {number}")
        await bot.unreact(answer, "👎")
        assert await rows(bot.store, "SELECT tainted <> '' FROM adapters") == [(1,)]


async def test_one_that_is_changed_while_it_is_taught_does_not_retire(tmp_path: Path) -> None:
    async with taught(tmp_path) as bot:
        await course(bot)
        await bot.start_training()
        [(number,)] = await rows(bot.store, "SELECT id FROM notes")
        await bot.command("notes", f"edit {number} no lists")
        await bot.finish_training()
        assert (await bot.last_run()).state == "activated"
        assert await retired(bot) == [(1, "kept")]
        assert "no lists" in await system(bot)


@pytest.mark.parametrize("interrupted", [False, True])
@pytest.mark.parametrize("action", ["delete", "off", "edit", "move"])
async def test_t8_one_that_is_changed_while_it_is_taught_is_not_learnt(
    action: str, interrupted: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a rating that changes: the run went live with what its person did not want any more."""
    said = {"delete": "delete {}", "off": "off {}", "edit": "edit {} no lists", "move": "move {} everybody"}
    async with taught(tmp_path, retire=False) as bot:
        await course(bot)
        given = meanwhile(monkeypatch, nothing)
        await bot.start_training()
        assert len(await retired(bot)) == 1
        [(number,)] = await rows(bot.store, "SELECT id FROM notes")
        if interrupted:
            await bot.command("pause")
            await until(lambda: not bot.app.scheduler.training)
        await bot.command("notes", said[action].format(number))
        if interrupted:
            bot.fake.set(train="ok")
            await bot.command("resume")
            await bot.settle()
            run = await bot.last_run()
        else:
            run = await bot.finish_training()
        assert (run.id, run.state) == (1, "activated"), run.reason
        assert len(given) == 2, "it has started over"
        assert len(given[0]) == len(given[1]), "without the note, with all of its answers"
        weights = await rows(bot.store, "SELECT DISTINCT notes, note_weight FROM run_items WHERE run = 1")
        assert weights == [("[]", 0.0)]
        assert (await job_of(bot, tmp_path / "job")).trials == ()
        assert await rows(bot.store, "SELECT note, ratings, state FROM run_notes") == [(number, "[]", "kept")]
        if action == "off":
            assert "Take back" not in await bot.command("notes", f"off {number}"), "no version has learnt it"
        await check_store(bot.store)


async def test_t8_a_note_that_waited_is_taught_by_the_next_run(tmp_path: Path) -> None:
    async with taught(tmp_path, retire=False) as bot:
        await course(bot)
        await bot.start_training()
        [(number,)] = await rows(bot.store, "SELECT id FROM notes")
        await bot.command("notes", f"edit {number} no lists")
        await bot.finish_training()
        await course(bot)
        await bot.train()
        assert (await bot.last_run()).state == "activated"
        assert (number,) in await rows(bot.store, "SELECT note FROM run_notes WHERE run = 2")


async def nothing(job: Any) -> None:
    """Happens."""


async def test_an_undo_of_its_rating_replaces_the_version(tmp_path: Path) -> None:
    """Of a rating that an earlier run has learnt, too: the note rests on it still."""
    async with taught(tmp_path, retire=False) as bot:
        answer = await course(bot)
        await bot.train()
        await bot.rated(8)
        await bot.train()
        [(_, first), (_, second)] = await rows(bot.store, "SELECT run, ratings FROM run_notes ORDER BY run")
        assert first == second
        # Of the items nothing is left by which they would be found.
        await bot.store.write(lambda db: db.execute("UPDATE run_items SET labels = '{}', words = '[]'"))
        await bot.unreact(answer, "👎")
        tainted = await rows(bot.store, "SELECT version, tainted <> '' FROM adapters ORDER BY version")
        assert tainted == [(1, 1), (2, 1)]
        assert await system(bot) == ""


async def test_an_undo_while_it_is_taught_leaves_no_trace(tmp_path: Path) -> None:
    """The run goes on as one without that rating: the same answers, weights and texts, and no line tried."""

    async def jobs(home: Path, *, undone: bool) -> list[dict[str, Any]]:
        async with taught(home, retire=False) as bot:
            await bot.say("Never rated?")
            for n in range(9):
                await bot.react(await bot.say(f"Question {n}?"), "👍")
            if undone:
                last, _ = await chip(bot, "long")
                await bot.start_training()
                assert len(await retired(bot)) == 1
                await bot.unreact(last, "👎")
                await bot.finish_training()
            else:
                await bot.train()
            assert (await bot.last_run()).state == "activated"
            assert await retired(bot) == []
            core = bot.app
            items = await bot.store.read(lambda db: progress.items(db, 1))
            raw = await make_job(core, core.registry, core.notes, run=1, parent=0, items=items, folder=home)
            assert raw["notes"] == []
            return [{**item, "id": ""} for item in raw["items"]]

    assert await jobs(tmp_path / "1", undone=True) == await jobs(tmp_path / "2", undone=False)


async def test_a_plan_and_why_know_of_it(tmp_path: Path) -> None:
    async with taught(tmp_path, retire=False) as bot:
        await course(bot)
        core = bot.app
        screening = Screening(core.filtering)
        items, _ = await bot.store.read(lambda db: dry_run._items(db, core, core.notes, None, 0, screening))
        await bot.train()
        claimed = await bot.store.read(lambda db: progress.items(db, 1))
        assert [(one.turn, one.notes, one.note_weight) for one in items] == [
            (one.turn, one.notes, one.note_weight) for one in claimed
        ]
        assert sum(one.note_weight for one in claimed) == 8
        assert "1 with what was wrong, 8 with a note." in await bot.command("why")


async def test_what_does_not_train_teaches_by_no_note_either(tmp_path: Path) -> None:
    """Said in private by somebody who does not share, of answers that others have rated in a channel."""
    async with taught(tmp_path, where="everywhere") as bot:
        await bot.command("enable", channel=TEAM)
        await chip(bot, "long", "ada")
        for n in range(8):
            answer = await bot.say(f"Question {n}?", user="ada", channel=TEAM)
            await bot.react(answer, "👍", user="ada")
        await bot.train()
        assert (await bot.last_run()).state == "activated"
        assert await retired(bot) == []
        await bot.command("share", "on", user="ada")
        for n in range(8):
            answer = await bot.say(f"And {n}?", user="ada", channel=TEAM)
            await bot.react(answer, "👍", user="ada")
        bot.fake.set(retire=False)
        await bot.train()
        assert await retired(bot) == [(2, "taught")]
        for n in range(8):
            answer = await bot.say(f"Then {n}?", user="ada", channel=TEAM)
            await bot.react(answer, "👍", user="ada")
        await bot.train()
        assert await retired(bot) == [(2, "taught"), (3, "taught")]

        async def withdrawn() -> bool:
            return await bot.store.read(lambda db: objections.withdrawn(db, bot.app.pool, 3))

        assert not await withdrawn()
        await bot.command("share", "off", user="ada")
        assert await withdrawn(), "an interrupted run would not go on"


async def test_a_note_is_taught_on_answers_to_whom_it_speaks_for(tmp_path: Path) -> None:
    async with taught(tmp_path, retire=False, held_out=0) as bot:
        await course(bot)
        for n in range(8):
            await bot.react(await bot.say(f"Why {n}?", user="ada"), "👍", user="ada")
        await bot.command("share", "on", user="ada")
        await bot.train()
        talker = dict(await rows(bot.store, "SELECT id, talker FROM turns"))
        job = await job_of(bot, tmp_path)
        assert {talker[item.id] for item in job.items if item.note} == {"owner"}
        assert {talker[item.id] for item in job.items} == {"owner", "ada"}
        assert all(SHORT in item.note.text for item in job.items if item.note)


async def test_the_job_says_what_to_try_it_on(tmp_path: Path) -> None:
    """On questions that are held out or were never rated, with the other notes and without it."""
    async with taught(tmp_path, retire=False) as bot:
        await chip(bot, "wrong")
        await bot.say("Never rated?")
        await bot.say("Somebody else's?", user="ada")
        await course(bot)
        await bot.train()
        job = await job_of(bot, tmp_path)
        trained = {str(item.messages[-1]["content"]) for item in job.items if item.split == "train"}
        assert len(job.trials) == 2
        for trial in job.trials:
            asked = {str(question.noted[-1]["content"]) for question in trial.questions}
            assert "Never rated?" in asked
            assert not asked & (trained | {"Somebody else's?"})
            for question in trial.questions:
                with_, without = (
                    "".join(str(m["content"]) for m in messages if m["role"] == "system")
                    for messages in (question.noted, question.without)
                )
                assert SHORT in with_
                assert len(without) < len(with_)
                assert (SHORT in without) != ("Check every fact" in without)


async def test_s5_a_question_without_words_is_not_tried(tmp_path: Path) -> None:
    """It can come in by an import; each training ended by it, and nobody was told which it was."""
    async with taught(tmp_path, retire=False) as bot:
        empty = await bot.say("Never rated?")
        await course(bot)
        await bot.train()
        [before] = (await job_of(bot, tmp_path)).trials
        await bot.store.write(
            lambda db: db.execute(
                "UPDATE turns SET messages = ? WHERE id = ?",
                (json.dumps([{"role": "system", "content": ""}]), empty.turn),
            )
        )
        [trial] = (await job_of(bot, tmp_path)).trials
        assert len(trial.questions) == len(before.questions) - 1 > 0


async def test_it_is_said_once_in_private_to_whose_note_it_is(tmp_path: Path) -> None:
    async with taught(tmp_path) as bot:
        await course(bot, "ada")
        await bot.command("share", "on", user="ada")
        await bot.train()
        await bot.app.news.look()
        await bot.app.news.look()
        said = [(who, text) for who, text in told(bot) if "no longer need" in text]
        assert [who for who, _ in said] == ["ada"]
        assert SHORT in said[0][1]
        [(number,)] = await rows(bot.store, "SELECT id FROM notes")
        assert f"`/rl notes on {number}`" in said[0][1]
        await bot.command("notes", f"on {number}", user="ada")
        assert SHORT in await system(bot, "ada"), "she may do that herself"


async def test_it_is_said_in_the_language_of_the_config(tmp_path: Path) -> None:
    async with taught(tmp_path, serving={"language": "de"}) as bot:
        await course(bot)
        await bot.train()
        await bot.app.news.look()  # or its own loop does, at the same time
        said = "Ich brauche diese Notiz nicht mehr"
        await until(lambda: any(text.startswith(said) for _, text in told(bot)))


async def test_who_is_forgotten_takes_what_was_learnt_along(tmp_path: Path) -> None:
    async with taught(tmp_path, held_out=0) as bot:
        await bot.command("share", "on", user="ada")
        await course(bot, "ada")
        await bot.train()
        await bot.rated(8)
        await bot.train()
        erased = "SELECT version FROM adapters WHERE tainted <> ''"
        assert await rows(bot.store, erased) == []
        # Of her turns nothing is in these: it is her note alone that the version knows of her.
        await bot.store.write(
            lambda db: db.execute(
                "DELETE FROM run_items WHERE turn IN (SELECT id FROM turns WHERE talker = 'ada')"
            )
        )
        await bot.command("forget", "loopback:ada")
        await bot.command("forget", "loopback:ada yes")
        assert await rows(bot.store, "SELECT 1 FROM turns WHERE talker = 'ada'") == []
        assert (1,) in await rows(bot.store, erased)


async def test_the_default_objective_teaches_none(tmp_path: Path) -> None:
    async with taught(tmp_path, settings={}) as bot:
        await course(bot)
        await bot.train()
        assert await retired(bot) == []
        assert SHORT in await system(bot)
