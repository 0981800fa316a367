# SPDX-License-Identifier: Apache-2.0
"""Rules 6, 7 and 10: what a child process does to a run, and what a late one cannot do."""

from __future__ import annotations

import asyncio
import os
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from goodbot import hookimpl
from goodbot.api.sentences import in_words
from goodbot.base import spawn
from goodbot.base.errors import StoreError, TrainingError, UsageError
from goodbot.learning import worker_process
from goodbot.store import runs

from tests.core.builders import SPEC, Fake, check, open_bot, rows, until
from tests.support import patience

FAILURES = {
    "nan": "The loss was nan.",
    "memory": "The loss was memory.",
    "crash": "the trainer was killed by SIGKILL (out of memory?)",
    "exit": "the trainer ended without a result (exit code 3)",
    "garbage": "the trainer wrote something that is not its protocol",
    "bad adapter": "bytes that belong to no tensor",
    "no weights": "instead of an adapter",
    "extra file": "instead of an adapter",
    "link": "is no plain file",
}


def children() -> int:
    """Workers of this process that still live; other tests' peers are none of ours."""
    listed = Path(f"/proc/self/task/{os.getpid()}/children")
    if not listed.exists():  # no Linux
        found = subprocess.run(
            ["pgrep", "-P", str(os.getpid()), "-f", "fake_worker"], capture_output=True, text=True
        )
        return len(found.stdout.split())
    commands = [Path(f"/proc/{pid}/cmdline") for pid in listed.read_text().split()]
    return sum(b"fake_worker" in path.read_bytes() for path in commands if path.exists())


@pytest.mark.parametrize("mode", FAILURES)
async def test_a_run_that_fails_says_why_and_the_bot_goes_on(tmp_path: Path, mode: str) -> None:
    async with open_bot(tmp_path) as bot:
        await bot.rated(8)
        bot.fake.set(train=mode)
        verdict = await bot.train()
        assert verdict.state == "failed"
        assert FAILURES[mode].split("bytes")[-1] in verdict.reason
        status = await bot.status()
        assert status["ratings"] == 8
        assert verdict.reason in str(status["last_run"])
        assert (await bot.say("Hello?")).text == "v0 says: Hello?"
        assert not list((tmp_path / "bot" / "staging").iterdir())
        bot.fake.set(train="ok")
        assert (await bot.train()).state == "activated"
        await check(bot)


@pytest.mark.parametrize("mode", ["refuse", "no gate"])
async def test_without_a_passed_gate_nothing_goes_live(tmp_path: Path, mode: str) -> None:
    async with open_bot(tmp_path) as bot:
        await bot.rated(8)
        bot.fake.set(train=mode)
        verdict = await bot.train()
        assert verdict.state == "refused"
        assert verdict.reason in ("no better", "the trainer reported no verdict")
        assert await bot.app.registry.rows() == []
        await check(bot)


async def test_the_last_runs_gate_does_not_speak_for_this_one(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        await bot.rated(8)
        assert (await bot.train()).state == "activated"
        await bot.rated(8)
        bot.fake.set(train="no gate")
        assert (await bot.train()).state == "refused"


class Veto:
    """A plugin that objects."""

    def __init__(self, **objections: str) -> None:
        self.objections = objections

    @hookimpl
    def veto_activation(self, version: int) -> str | None:
        return self.objections.get("activation")

    @hookimpl
    def veto_training(self, items: int) -> str | None:
        if "broken" in self.objections:
            raise LookupError
        return self.objections.get("training")


async def test_a_plugin_can_refuse_an_adapter(tmp_path: Path) -> None:
    async with open_bot(tmp_path, extra=(Veto(activation="not on a Friday"),)) as bot:
        await bot.rated(8)
        verdict = await bot.train()
        assert (verdict.state, verdict.reason) == ("refused", "not on a Friday")
        await check(bot)


async def test_the_bot_answers_and_rates_while_it_trains(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        await bot.rated(8)
        await bot.start_training()
        assert (await bot.status())["training"]["steps"] == 2
        for number in range(20):
            answer = await bot.say(f"still there {number}?")
            await bot.react(answer, "👍")
        assert (await bot.status())["training"]["steps"] == 2, "it would train on for ever"
        assert (await bot.finish_training()).state == "activated"


async def test_only_one_trains(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        await bot.rated(8)
        await bot.start_training()
        assert "already under way" in await bot.command("train")
        with pytest.raises(UsageError):
            await bot.app.scheduler.start(in_words("again"))
        with pytest.raises(StoreError, match="UNIQUE"):  # nor through the trainer itself
            await bot.app.trainer._claimed(0, in_words("again"), 1, False)
        await bot.finish_training()
        assert await rows(bot.store, "SELECT count(*) FROM runs") == [(1,)]


async def test_who_waits_in_a_chat_holds_nobody_up(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        await bot.rated(8)
        bot.fake.set(train="slow")
        waits = asyncio.create_task(bot.command("train", "wait"))
        await until(lambda: (bot.app.trainer.progress or {}).get("steps") == 2)
        assert "loading" in await asyncio.wait_for(bot.command("status"), patience(5))
        assert not waits.done()
        bot.fake.go()
        assert "v1 answers now" in await asyncio.wait_for(waits, patience(5))
        await bot.rated(8)
        waits = asyncio.create_task(bot.command("train", "wait"))
        await until(lambda: (bot.app.trainer.progress or {}).get("steps") == 2)
        await bot.command("pause")
        assert "was stopped" in await asyncio.wait_for(waits, patience(5))
        assert "paused" in await asyncio.wait_for(bot.command("status"), patience(5))


async def test_pause_off_and_resume_say_for_programs_what_holds_now(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        await bot.rated(8)
        await bot.train()

        async def data(command: str) -> Any:
            return (await bot.app.commands.execute(bot.chat.typed(command))).data

        on = {"off": False, "paused": False, "training": True, "version": 1}
        assert await data("pause") == {**on, "paused": True, "training": False}
        off = {"off": True, "paused": True, "training": False, "version": 0}
        assert await data("off") == off
        assert await data("resume") == on


@pytest.mark.parametrize("mode", ["hang", "slow", "stubborn"])
@pytest.mark.parametrize("command", ["pause", "off"])
async def test_it_stops_on_command_and_leaves_no_process(tmp_path: Path, mode: str, command: str) -> None:
    async with open_bot(tmp_path) as bot:
        await bot.rated(8)
        bot.fake.set(train=mode)
        await bot.command("train")
        await until(lambda: (bot.app.trainer.progress or {}).get("steps") == 2)
        assert children() == 2
        await bot.command(command)
        assert not bot.app.scheduler.training
        assert children() == 1
        assert (await bot.last_run()).state == "running", "it waits"
        assert (await bot.status())["ratings"] == 2
        await bot.command("cancel")
        run = await bot.last_run()
        assert (run.state, run.reason) == ("superseded", "it was cancelled")
        assert (await bot.status())["ratings"] == 8
        await check(bot)


async def test_a_stop_in_the_middle_of_the_claim_leaves_no_run_behind(tmp_path: Path) -> None:
    """It is committed after the stop: nobody would ever end it, and none could start beside it."""
    async with open_bot(tmp_path) as bot:
        await bot.rated(8)
        trainer = bot.app.trainer
        began = asyncio.Event()
        real = trainer._claim

        async def claim(*args: Any) -> Any:
            began.set()
            return await real(*args)

        trainer._claim = claim  # type: ignore[method-assign]
        await bot.app.scheduler.start(in_words("a test"))
        await began.wait()
        await bot.app.scheduler.stop()
        assert (await bot.last_run()).state == "superseded"
        assert (await bot.train()).state == "activated"


@pytest.mark.parametrize("ended", ["failed", "superseded", "released"])
async def test_a_late_trainer_changes_nothing(tmp_path: Path, ended: str) -> None:
    """Its run was ended meanwhile, by whoever: the id is compared in the commit."""
    async with open_bot(tmp_path) as bot:
        await bot.rated(8)
        await bot.start_training()

        async def end(db: Any) -> None:
            await db.execute("UPDATE runs SET state = ?, reason = 'by a test'", (ended,))

        await bot.store.write(end)
        bot.fake.set(train="ok")
        bot.fake.go()
        await until(lambda: not bot.app.scheduler.training)
        run = await bot.last_run()
        assert (run.state, run.reason) == (ended, "by a test")
        assert await bot.app.registry.rows() == []
        assert list(bot.app.registry.root.iterdir()) == []
        assert not await bot.store.write(lambda db: runs.finish(db, run.id, "activated", (), {}, 0.0))
        await check(bot)


async def test_a_verdict_that_could_not_be_stored_does_not_block_the_next_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_bot(tmp_path) as bot:
        await bot.rated(8)
        bot.fake.set(train="nan")
        with monkeypatch.context() as patch:

            async def full(*args: Any) -> bool:
                raise StoreError("the disk is full")

            patch.setattr(runs, "finish", full)
            await bot.command("train", "wait")
        assert (await bot.last_run()).state == "running"
        bot.fake.set(train="ok")
        assert (await bot.train()).state == "activated"
        assert (await bot.run(1)).state == "failed"
        await check(bot)


async def test_a_run_that_a_crash_left_before_its_child_began_goes_on(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        await bot.rated(8)
        await bot.app.trainer._claimed(0, in_words("a test"), 1, False)
        assert (await bot.status())["ratings"] == 2
    async with open_bot(tmp_path) as bot:
        await bot.settle()
        run = await bot.last_run()
        assert (run.id, run.state, run.why) == (1, "activated", "a test")


async def test_with_nothing_but_ties_nothing_is_claimed(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        for answer in await bot.rated(4):
            number = bot.answers.index(answer)
            await bot.react(answer, "👎" if number % 2 == 0 else "👍", user="rater")
        assert (await bot.status())["ratings"] == 0
        assert "0 ratings are not enough" in await bot.command("train", "wait")
        await bot.rated(1)
        assert "1 rating is not enough" in await bot.command("train", "wait")
        assert await rows(bot.store, "SELECT * FROM runs") == []


async def test_the_job_says_what_the_protocol_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[dict[str, Any]] = []
    real = worker_process.train

    async def train(spec: Any, job: Any, on_event: Any) -> Any:
        seen.append(job)
        return await real(spec, job, on_event)

    monkeypatch.setattr(worker_process, "train", train)
    async with open_bot(tmp_path) as bot:
        await bot.rated(8)
        await bot.train()
        await bot.rated(8)
        await bot.train()
        assert (await bot.app.registry.row(2)).baseline == {"mean": 0.25, "weight": 1.0}
        job = seen[1]
        path = str(await bot.app.registry.path(1))
        assert (job["protocol"], job["run"], job["parent"]) == (1, 2, path)
        assert job["baseline"] == {"mean": 0.25, "weight": 1.0}
        assert job["behaviour"] == {"1": path}
        assert {item["version"] for item in job["items"]} == {0, 1}
        assert sum(item["split"] == "held_out" for item in job["items"]) == 3  # of ten
        assert job["items"][0]["logprobs"] == (-0.5, -0.25)


# -- the child alone


async def alone(tmp_path: Path, mode: str) -> Any:
    fake = Fake(tmp_path / "fake")
    fake.set(train=mode)
    output = tmp_path / "out"
    output.mkdir(exist_ok=True)
    job = {"model": str(fake.path), "output": str(output), "run": 1, "parent": None, "items": []}

    async def ignore(event: Any) -> None:
        pass

    return await worker_process.train(SPEC, job, ignore)


@pytest.mark.parametrize(("mode", "kind"), [("nan", "nan"), ("oom", "oom"), ("crash", "killed")])
async def test_errors_have_a_kind(tmp_path: Path, mode: str, kind: str) -> None:
    with pytest.raises(TrainingError) as error:
        await alone(tmp_path, mode)
    assert error.value.kind == kind


async def test_a_child_that_says_nothing_any_more_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Stopped as it is, it does not even hear SIGTERM."""
    monkeypatch.setattr(worker_process, "_SILENT_SECONDS", 0.6)
    monkeypatch.setattr(worker_process, "_TERMINATE_SECONDS", 0.2)
    with pytest.raises(TrainingError, match=r"said nothing for 0\.01 min") as error:
        await alone(tmp_path, "stopped")
    assert error.value.kind == "silent"
    assert children() == 0


async def test_a_child_that_never_reads_its_job_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def ignore(event: Any) -> None:
        pass

    (tmp_path / "deaf_worker.py").write_text("import time\ntime.sleep(3600)\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setattr(worker_process, "_SILENT_SECONDS", 0.6)
    with pytest.raises(TrainingError, match="said nothing") as error:
        async with asyncio.timeout(patience(10)):
            await worker_process.train(replace(SPEC, worker="deaf_worker"), {"big": "x" * 10**7}, ignore)
    assert error.value.kind == "silent"


async def test_a_child_that_cannot_even_start(tmp_path: Path) -> None:
    async def ignore(event: Any) -> None:
        pass

    with pytest.raises(TrainingError, match="without a result"):
        await worker_process.train(replace(SPEC, worker="tests.core.no_such"), {"big": "x" * 10**6}, ignore)


async def test_no_secret_reaches_a_child(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TELEGRAM_BOT_TOKEN", "12345:secret")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    assert not any("secret" in value for value in spawn.child_environment().values())
    assert spawn.child_environment()["HF_HUB_OFFLINE"] == "1"


# -- B12: a directory that is missing


async def test_b12_adapters_that_were_removed_while_it_trained_are_a_directory_again(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        await bot.rated(8)
        await bot.start_training()
        (bot.app.config.home / "adapters").rmdir()
        assert (await bot.finish_training()).state == "activated"

        async def switched_over() -> bool:
            return await bot.app.server.served() == 1

        await until(switched_over)
        assert (await bot.say("and now?")).text.startswith("v1")


async def test_b12_what_cannot_be_written_is_told_before_the_round_and_not_after_it(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        await bot.rated(8)
        bot.fake.set(train="hang")
        adapters = bot.app.config.home / "adapters"
        adapters.rmdir()
        adapters.write_text("no directory")
        verdict = await bot.train()
        assert (verdict.state, verdict.reason) == ("failed", f"{adapters} cannot be made: File exists")
