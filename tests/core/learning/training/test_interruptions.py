# SPDX-License-Identifier: Apache-2.0
"""A run that is killed, paused or stopped in the middle goes on: same run, same items, next step."""

from __future__ import annotations

import asyncio
import os
import re
import signal
from pathlib import Path
from typing import Any

import pytest
from goodbot import hookimpl
from goodbot.api.sentences import in_words
from goodbot.daemon.app import App
from goodbot.learning import worker_process
from goodbot.learning.training import attempts
from goodbot.learning.training.scheduler import CANCELLED
from goodbot.learning.training.trainer import RunOutcome
from goodbot.store import runs, settings

from tests.core.builders import GRANTS, Bot, check, config, open_bot, plugins, rows, until
from tests.core.learning.training.test_trainer import children
from tests.support import patience


async def held_at(bot: Bot, step: int) -> None:
    """A run of six steps is under way and waits before this one."""
    bot.fake.set(train="steps", hold=step)
    await bot.command("train")
    await until(lambda: (bot.app.trainer.progress or {}).get("phase") == "train")
    await until(lambda: (bot.app.trainer.progress or {}).get("step") == step)


async def claimed(bot: Bot) -> list[Any]:
    query = "SELECT run, turn, split, reward, weight, position FROM run_items ORDER BY run, position"
    return await rows(bot.store, query)


def each_step_once(run: int = 1) -> list[tuple[int, int]]:
    return [(run, step) for step in range(6)]


def done(bot: Bot) -> list[tuple[int, int]]:
    return [(run, step) for run, step, _ in bot.fake.steps()]


# -- children that die


async def test_a_child_that_dies_is_followed_by_one_that_goes_on(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        await bot.rated(8)
        bot.fake.set(train="steps", deaths=[2, 4, 4])
        verdict = await bot.train()
        assert verdict.state == "activated", verdict
        assert done(bot) == each_step_once()
        assert await rows(bot.store, "SELECT id, state FROM runs") == [(1, "activated")]
        await check(bot)


async def test_a_child_that_always_dies_at_the_same_step_ends_the_run(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        await bot.rated(8)
        bot.fake.set(train="steps", deaths=[3] * 9)
        verdict = await bot.train()
        assert (verdict.state, verdict.reason[-27:]) == ("failed", "by SIGKILL (out of memory?)")
        assert done(bot) == each_step_once()[:3]
        assert (bot.fake.path / "steps").read_text().count("dies") == 1 + attempts.MOST
        assert (await bot.status())["ratings"] == 8, "nothing says that the answers are to blame"
        await check(bot)


@pytest.mark.parametrize(
    ("deaths", "state", "steps"), [([2, 4], "activated", 6), ([1, 2, 3], "failed", 3), ([2] * 3, "failed", 2)]
)
async def test_one_that_computes_for_too_long_is_followed_by_one_that_goes_on_but_not_for_ever(
    tmp_path: Path, deaths: list[int], state: str, steps: int
) -> None:
    """Its checkpoint was lost with the run. That it says that it gets on gives it no more than three."""
    async with open_bot(tmp_path) as bot:
        await bot.rated(8)
        bot.fake.set(train="steps", deaths=deaths, by="SIGXCPU")
        verdict = await bot.train()
        assert verdict.state == state, verdict.reason
        assert done(bot) == each_step_once()[:steps]
        assert ("longer than it may" in verdict.reason) == (state == "failed")
        assert (await bot.status())["ratings"] == (8 if state == "failed" else 2)
        await check(bot)


async def test_a_child_after_one_that_was_killed_gets_a_smaller_memory_plan(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        await bot.rated(8)
        bot.fake.set(train="steps", deaths=[3, 3, 5])
        assert (await bot.train()).state == "activated"
        attempts = [attempt for _, _, attempt in bot.fake.steps()]
        assert attempts == [0, 0, 0, 1, 1, 0]  # it had got on before it died once more


async def test_memory_that_never_suffices_sets_the_answers_aside(tmp_path: Path) -> None:
    async with open_bot(tmp_path, schedule="auto") as bot:
        bot.fake.set(train="oom")
        await bot.rated(8)
        await until(lambda: bot.app.scheduler.training)
        await bot.settle()
        run = await bot.last_run()
        assert (run.id, run.state) == (1, "failed"), "it does not begin over and over"
        assert "out of memory 3 times" in run.reason
        status = await bot.status()
        assert status["ratings"] == 0
        assert "8 answers left out since training 1: it ran out" in await bot.command("status")
        bot.fake.set(train="ok")
        await bot.rated(8)
        await until(bot.app.registry.active)
        assert len(await bot.trained(1)) == 6, "new answers train"
        assert "8 answers train again" in await bot.command("release")

        async def all_of_them() -> bool:
            return await bot.app.registry.active() == 2

        await until(all_of_them)
        assert len(await bot.trained(2)) > 12
        assert "No training has left answers out" in await bot.command("release")
        await check(bot)


async def test_other_settings_let_in_what_ran_out_of_memory(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        await bot.rated(8)
        bot.fake.set(train="oom")
        await bot.train()
        assert (await bot.status())["ratings"] == 0
    async with open_bot(tmp_path) as bot:
        assert (await bot.status())["ratings"] == 0
    async with open_bot(tmp_path, settings={"tokens_per_forward": 512}) as bot:
        assert (await bot.status())["ratings"] == 8


async def test_a_kill_by_the_kernel_for_memory_counts_as_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts = iter(range(100))
    monkeypatch.setattr(attempts, "kernel_kills", lambda: next(counts))
    async with open_bot(tmp_path) as bot:
        await bot.rated(8)
        bot.fake.set(train="steps", deaths=[3] * 9)
        verdict = await bot.train()
        assert "out of memory 3 times" in verdict.reason
        assert (await bot.status())["ratings"] == 0


def test_the_kernel_tells_its_kills(tmp_path: Path) -> None:
    assert attempts.kernel_kills(tmp_path) == 0
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/vmstat").write_text("nr_free_pages 5\noom_kill 12\noom_kill_x 3\n")
    assert attempts.kernel_kills(tmp_path) == 12


async def test_too_little_memory_from_the_start_is_told_and_not_tried_again(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        await bot.rated(8)
        bot.fake.set(train="memory")
        verdict = await bot.train()
        assert (verdict.state, verdict.reason) == ("failed", "The loss was memory.")
        assert (await bot.status())["ratings"] == 8


async def test_an_answer_that_breaks_the_training_is_left_out_from_then_on(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        await bot.rated(8)
        bot.fake.set(train="guilty")
        assert (await bot.train()).state == "activated"
        [(guilty,)] = await rows(bot.store, "SELECT turn FROM set_aside")
        assert await rows(bot.store, "SELECT 1 FROM run_items WHERE turn = ?", (guilty,)) == []
        text = await bot.command("status")
        assert "1 answer left out since training 1: its gradient explodes" in text
        before = (await bot.status())["ratings"]
        assert "1 answer trains again" in await bot.command("release")
        assert (await bot.status())["ratings"] == before + 1, "nothing has learnt from it"
        await check(bot)


async def test_what_is_let_in_while_the_run_goes_on_without_it_trains_later(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        await bot.rated(8)
        bot.fake.set(train="guilty slow")
        await bot.command("train")

        async def set_aside_() -> bool:
            return bool(await rows(bot.store, "SELECT 1 FROM set_aside"))

        await until(set_aside_)
        assert "1 answer trains again" in await bot.command("release")
        bot.fake.go()
        await until(lambda: not bot.app.scheduler.training)
        assert (await bot.last_run()).state == "activated"
        assert (await bot.status())["ratings"] == 2 + 1, "what was held out, and what it did not learn"


async def test_who_is_forgotten_while_memory_runs_out_sets_nobodys_answers_aside(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        await bot.rated(8)
        verdict = RunOutcome(run=1, state="failed", ending=in_words("it ran out of memory"), kind="oom")
        await held_at(bot, 3)
        await bot.store.write(lambda db: db.execute("UPDATE runs SET state = 'released' WHERE id = 1"))
        await bot.app.trainer._finish(verdict)
        assert await rows(bot.store, "SELECT 1 FROM set_aside") == []


# -- pause, resume, cancel


@pytest.mark.parametrize("command", ["pause", "cancel"])
async def test_a_stop_in_the_moment_of_going_live_leaves_nothing_behind(tmp_path: Path, command: str) -> None:
    ended: list[tuple[int, str]] = []

    class Observer:
        @hookimpl
        def on_training_finished(self, run: int, state: str) -> None:
            ended.append((run, state))

    async with open_bot(tmp_path, extra=(Observer(),)) as bot:
        await bot.rated(8)
        moved, go_on = asyncio.Event(), asyncio.Event()
        switch_over = bot.app.registry._switch_over

        async def slowly() -> None:
            moved.set()
            await go_on.wait()
            await switch_over()

        bot.app.registry._switch_over = slowly  # type: ignore[method-assign]
        await bot.command("train")
        await moved.wait()
        await bot.command(command)
        bot.app.registry._switch_over = switch_over  # type: ignore[method-assign]
        assert (await bot.last_run()).state == "activated"
        assert not list((tmp_path / "bot" / "staging").iterdir())
        assert ended == [(1, "activated")]
        await bot.app.registry.reconcile()
        await check(bot)


@pytest.mark.parametrize("command", ["pause", "off"])
async def test_pause_keeps_the_run_and_resume_goes_on_with_it(tmp_path: Path, command: str) -> None:
    async with open_bot(tmp_path) as bot:
        await bot.rated(8)
        await held_at(bot, 4)
        shown = "learning: 4/6, loss 0.250, 30 s left, 94% of tokens, 88% of answers fit"
        assert shown in await bot.command("status", "--details")
        brief = await bot.command("status")
        assert "learning: 4/6, 30 s left" in brief
        assert not re.search("loss|fit", brief)
        before = await claimed(bot)
        told = await bot.command(command)
        assert children() == 1, "the child is gone"
        if command == "pause":
            assert "paused at step 4 of 6" in told
            assert "paused at step 4 of 6" in await bot.command("status")
        await check(bot)
        bot.fake.set(hold=None)
        await bot.command("resume")
        await bot.settle()
        assert done(bot) == each_step_once()
        assert await claimed(bot) == before
        assert (await bot.last_run()).state == "activated"
        await check(bot)


async def test_a_run_may_be_paused_as_often_as_one_likes(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        await bot.rated(8)
        await held_at(bot, 0)
        for _ in range(attempts.MOST + 1):
            await bot.command("pause")
            await bot.command("resume")
            await until(lambda: (bot.app.trainer.progress or {}).get("phase") == "train")
        bot.fake.set(hold=None)
        await bot.command("pause")
        await bot.command("resume")
        await bot.settle()
        assert (await bot.last_run()).state == "activated"


async def test_train_goes_on_with_a_paused_run(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        await bot.rated(8)
        await held_at(bot, 2)
        await bot.command("pause")
        bot.fake.set(hold=None)
        said = await bot.command("train")
        assert "goes on at step 2 of 6, although training is paused." in said
        await until(lambda: not bot.app.scheduler.training)
        assert done(bot) == each_step_once()


async def test_train_while_it_is_off_says_so_and_when_the_version_answers(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        await bot.rated(8)
        await bot.command("off")
        assert "although goodbot is paused." in await bot.command("train")
        await until(lambda: not bot.app.scheduler.training)
        assert (await bot.app.registry.active(), await bot.app.registry.wanted()) == (1, 0)
        await bot.rated(8)
        assert "v2 answers after `resume`" in await bot.command("train", "wait")
        await bot.command("resume")
        assert await bot.app.registry.wanted() == 2


@pytest.mark.parametrize("paused", [True, False])
async def test_cancel_drops_the_run_and_frees_its_ratings(tmp_path: Path, paused: bool) -> None:
    async with open_bot(tmp_path, schedule="auto") as bot:
        bot.fake.set(train="steps", hold=2)
        await bot.rated(8)
        await until(lambda: (bot.app.trainer.progress or {}).get("step") == 2)
        if paused:
            await bot.command("pause")
        assert "dropped" in await bot.command("cancel")
        assert children() == 1
        run = await bot.last_run()
        assert (run.state, run.ending) == ("superseded", (CANCELLED,))
        assert run.reason == "it was cancelled"
        assert (await bot.status())["ratings"] == 8
        assert not list((tmp_path / "bot" / "staging").iterdir())
        assert "No training" in await bot.command("cancel")
        bot.fake.set(train="ok")
        await bot.command("resume")
        await bot.settle()
        assert len(await rows(bot.store, "SELECT 1 FROM runs")) == 1, "not at once again"
        assert "was cancelled; 1 new rating until" in (await bot.status())["next"]
        assert (await bot.train()).state == "activated"
        await check(bot)


@pytest.mark.parametrize("mode", ["hang", "stubborn", "stopped"])
async def test_within_a_second_the_child_is_gone(tmp_path: Path, mode: str) -> None:
    assert worker_process._TERMINATE_SECONDS < 1, "then it is killed, which it cannot refuse"
    async with open_bot(tmp_path) as bot:
        await bot.rated(8)
        bot.fake.set(train=mode)
        await bot.command("train")
        await until(lambda: (bot.app.trainer.progress or {}).get("steps") == 2)
        async with asyncio.timeout(patience(3)):
            await bot.command("pause")
        assert children() == 1, "the command has waited for its end"
        await bot.command("cancel")


# -- goodbot itself stops or dies


@pytest.mark.parametrize("how", ["stop", "crash"])
async def test_the_next_start_goes_on_with_the_run(tmp_path: Path, how: str) -> None:
    async with open_bot(tmp_path) as bot:
        await bot.rated(8)
        await held_at(bot, 3)
        before = await claimed(bot)
        if how == "crash":  # nothing of the orderly end reaches the store

            async def lost(*args: Any) -> Any:
                raise OSError("the process is dead")

            bot.store._writer.write = lost  # type: ignore[method-assign]
    assert children() == 0
    bot.fake.set(hold=None)
    async with open_bot(tmp_path) as bot:
        await bot.settle()
        assert done(bot) == each_step_once()
        assert await claimed(bot) == before
        assert (await bot.last_run()).state == "activated"
        await check(bot)


async def test_a_run_that_kills_goodbot_each_time_is_given_up(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        await bot.rated(8)
    bot.fake.set(train="steps", hold=3)
    for start in range(attempts.MOST + 1):
        async with open_bot(tmp_path) as bot:
            if start == 0:
                await bot.command("train")
            await until(lambda: (bot.app.trainer.progress or {}).get("step") == 3)

            async def lost(*args: Any) -> Any:
                raise OSError("the process is dead")

            bot.store._writer.write = lost  # type: ignore[method-assign]
    async with open_bot(tmp_path) as bot:

        async def given_up() -> bool:
            return (await bot.run(1)).state == "failed"

        await until(given_up)
        assert (await bot.run(1)).reason == "goodbot ended 3 times while it trained at step 3 of 6"
        assert (await bot.status())["ratings"] == 8, "nothing says that the answers are to blame"
        await check(bot)


async def test_b2_what_changed_meanwhile_costs_that_answer_not_the_run(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        await bot.rated(8)
        await held_at(bot, 3)
        await bot.command("pause")
        await bot.unreact(bot.answers[0], "👍")
        bot.fake.set(hold=None)
        await bot.command("resume")

        async def live() -> bool:
            return (await bot.run(1)).state == "activated"

        await until(live)
        assert bot.answers[0].turn not in {turn for _, turn, *_ in await claimed(bot)}
        assert (await bot.run(1)).reason.endswith("since its rating changed during this one.")
        await bot.settle()
        assert done(bot)[3:] == each_step_once(), "from the first step on, without it"
        await check(bot)


async def test_b2_a_run_that_is_interrupted_again_and_again_starts_over_only_so_often(tmp_path: Path) -> None:
    async with open_bot(tmp_path, min_ratings=32) as bot:
        await bot.rated(32)
        given: list[int] = []
        await held_at(bot, 3)
        for _ in range(5):
            given.append(len(await claimed(bot)))
            await bot.command("pause")
            turn = (await claimed(bot))[0][1]
            await bot.command("undo", turn)
            before = len(done(bot))
            await bot.command("resume")

            async def goes_on_or_ends(before: int = before) -> bool:
                ended = (await bot.run(1)).state == "superseded"
                return ended or len(done(bot)) >= before + 3

            await until(goes_on_or_ends)
        assert (await bot.run(1)).state == "superseded"
        assert given == [32, 31, 15, 7, 3]
        bot.fake.set(hold=None)


async def test_other_settings_let_the_run_go(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        await bot.rated(8)
        await held_at(bot, 3)
    bot.fake.set(train="ok")
    async with open_bot(tmp_path, settings={"note": "another"}) as bot:

        async def released() -> bool:
            return (await bot.run(1)).state == "superseded"

        await until(released)
        assert "settings have changed" in (await bot.run(1)).reason
        await bot.settle()
        assert (await bot.status())["ratings"] == 8, "they are free, and nothing begins unasked"
        assert (await bot.train()).state == "activated"


async def test_a_rollback_lets_the_run_go(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        await bot.rated(8)
        await bot.train()
        await bot.rated(8)
        await held_at(bot, 3)
        await bot.command("pause")
        await bot.rollback("base")
        assert (await bot.run(2)).state == "superseded"
        assert not list((tmp_path / "bot" / "staging").iterdir())
        await check(bot)


async def test_a_command_without_a_daemon_leaves_the_run_as_it_is(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        await bot.rated(8)
        await held_at(bot, 3)
    given = config(tmp_path / "bot", bot.fake)
    async with App.open(given, plugins(), grants={"loopback": GRANTS}, serve=False) as app:
        assert "goes on at step 3 of 6" in (await app.scheduler.readiness()).condition.for_owners()
        assert (await app.store.read(lambda db: runs.last_runs(db, "default")))[0].state == "running"
        assert [entry.name for entry in (tmp_path / "bot" / "staging").iterdir()] == ["run-1"]


async def test_checkpoints_are_for_their_owner_alone_and_go_with_the_run(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        await bot.rated(8)
        await held_at(bot, 3)
        folder = tmp_path / "bot" / "staging" / "run-1"
        for directory in (folder, folder / "checkpoints", folder / "output"):
            assert directory.stat().st_mode & 0o777 == 0o700
        bot.fake.set(hold=None)
        await bot.command("pause")
        await bot.command("resume")
        await bot.settle()
        assert not folder.exists()


async def test_a_switch_to_off_and_a_kill_of_the_child_meet(tmp_path: Path) -> None:
    """The child is dead when `pause` comes; the run waits all the same."""
    async with open_bot(tmp_path) as bot:
        await bot.rated(8)
        await held_at(bot, 3)
        listed = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
        for pid in map(int, listed):
            if b"train" in Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0"):
                os.kill(pid, signal.SIGKILL)
        await bot.command("pause")
        assert await bot.store.read(lambda db: settings.switch(db, "paused"))
        assert (await bot.last_run()).state == "running"
        bot.fake.set(hold=None)
        await bot.command("resume")
        await bot.settle()
        assert done(bot) == each_step_once()


async def test_who_is_forgotten_is_forgotten_by_a_paused_run_too(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        await bot.command("share", "on", user="owner")
        await bot.rated(8)
        await held_at(bot, 3)
        await bot.command("pause")
        await bot.command("forget", "me")
        assert "deleted" in await bot.command("forget", "me yes")
        assert (await bot.last_run()).state == "released"
        assert not list((tmp_path / "bot" / "staging").iterdir())
