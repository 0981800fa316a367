# SPDX-License-Identifier: Apache-2.0
"""Rules 5 and 8: the pointer is moved last, and what is named, on disk and served agree again."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from pathlib import Path
from typing import Any

import pytest
from goodbot.api.adapters.manifest import CONFIG, MANIFEST, WEIGHTS
from goodbot.base.errors import AdapterError, ServerError
from goodbot.learning.adapters import retention
from goodbot.store import Store, adapters

from tests.core.builders import Bot, check, open_bot, rows, until
from tests.support import patience


async def versions(bot: Bot, count: int) -> None:
    """Train `count` versions, each on the one before."""
    for _ in range(count):
        await bot.rated(8)
        verdict = await bot.train()
        assert verdict.state == "activated", verdict.reason


async def directory(bot: Bot, version: int) -> Path:
    return bot.app.registry.root / (await bot.app.registry.row(version)).directory


async def who_answers(bot: Bot) -> str:
    return (await bot.say("Who?")).text.partition(" ")[0]


async def loaded(bot: Bot) -> list[int]:
    answer = await bot.app.server._sampler.call("loaded")  # type: ignore[attr-defined]
    return answer["versions"]


STEPS = {
    "publish": ("goodbot.learning.training.publish.publish", False),
    "record": ("goodbot.store.adapters.add", True),
    "load": ("goodbot.inference.servers.embedded.EmbeddedServer.load", True),
    "probe": ("goodbot.learning.adapters.registry.AdapterRegistry.prepare", True),
    "pointer": ("goodbot.store.adapters.move_pointer", True),
    "finish": ("goodbot.store.runs.finish", True),
    "switch over": ("goodbot.learning.adapters.registry.AdapterRegistry._switch_over", True),
    "activate": ("goodbot.inference.servers.embedded.EmbeddedServer.activate", True),
}


FAILURES = [
    *((step, when, OSError("no space")) for step in STEPS for when in ("before", "after")),
    *((step, "before", ServerError("gone")) for step in ("load", "probe", "switch over")),
    *((step, "before", AdapterError("bad")) for step in ("load", "probe", "switch over")),
]


@pytest.mark.parametrize(
    ("step", "when", "error"), FAILURES, ids=[f"{s}-{w}-{type(e).__name__}" for s, w, e in FAILURES]
)
async def test_a_failure_at_any_step_leaves_an_adapter_that_works(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str, when: str, error: Exception
) -> None:
    """In the process that goes on, and in the next one."""
    name, is_async = STEPS[step]
    module, _, attribute = name.rpartition(".")
    async with open_bot(tmp_path) as bot:
        await versions(bot, 1)
        await bot.rated(8)
        with monkeypatch.context() as patch:
            owner = _resolve(module)
            real: Any = getattr(owner, attribute)

            async def fails(*args: Any, **kwargs: Any) -> Any:
                if when == "after":
                    await real(*args, **kwargs)
                raise error

            def fails_now(*args: Any, **kwargs: Any) -> Any:
                if when == "after":
                    real(*args, **kwargs)
                raise error

            patch.setattr(owner, attribute, fails if is_async else fails_now)
            await bot.command("train", "wait")
            await until(lambda: not bot.app.scheduler.training)
        before = await bot.app.registry.active()
        await bot.app.registry.reconcile()
        assert await bot.app.registry.active() == before
        assert await who_answers(bot) == f"v{before}"
        # Whatever was lost trains again:
        if before == 1:
            assert (await bot.train()).state == "activated"
    async with open_bot(tmp_path) as bot:
        assert await bot.app.registry.active() >= 2
        await check(bot)


def _resolve(name: str) -> Any:
    import importlib

    try:
        return importlib.import_module(name)
    except ModuleNotFoundError:
        module, _, attribute = name.rpartition(".")
        return getattr(importlib.import_module(module), attribute)


CRASH = """
import asyncio, os, signal, sys
from pathlib import Path
import importlib
from tests.core.builders import open_bot
from tests.core.learning.adapters.test_registry import STEPS, _resolve

async def main(home, step, when):
    name, is_async = STEPS[step]
    module, _, attribute = name.rpartition(".")
    async with open_bot(Path(home)) as bot:
        await bot.rated(8)
        owner = _resolve(module)
        real = getattr(owner, attribute)
        def die():
            print("dying", await_active(), flush=True)
            os.kill(os.getpid(), signal.SIGKILL)
        def await_active():
            return ""
        async def dies(*args, **kwargs):
            if when == "after":
                await real(*args, **kwargs)
            die()
        def dies_now(*args, **kwargs):
            if when == "after":
                real(*args, **kwargs)
            die()
        setattr(owner, attribute, dies if is_async else dies_now)
        await bot.train()

asyncio.run(main(*sys.argv[1:]))
"""


@pytest.mark.parametrize(
    ("step", "when"),
    [
        ("publish", "before"),
        ("publish", "after"),
        ("record", "after"),
        ("probe", "after"),
        ("pointer", "after"),
        ("switch over", "before"),
        ("switch over", "after"),
    ],
)
async def test_kill_9_at_any_step_leaves_an_adapter_that_works(tmp_path: Path, step: str, when: str) -> None:
    import sys

    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        CRASH,
        str(tmp_path),
        step,
        when,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = await process.communicate()
    assert process.returncode == -signal.SIGKILL, err.decode()
    assert b"dying" in out
    async with open_bot(tmp_path) as bot:
        live = step == "switch over"  # the commit of the pointer is the moment
        if live:
            assert await who_answers(bot) == "v1"
        await bot.settle()  # a run that had no verdict goes on, unless its adapter was recorded
        await check(bot)
        recorded = step in ("probe", "pointer")
        assert (await bot.last_run()).state == ("superseded" if recorded else "activated")
        if recorded:
            assert await who_answers(bot) == "v0"
            assert (await bot.status())["ratings"] == 8
            assert (await bot.train()).state == "activated"
            await check(bot)
        assert await who_answers(bot) == f"v{await bot.app.registry.active()}"
        assert (await bot.status())["ratings"] == 2
        assert not list((tmp_path / "bot" / "staging").iterdir())


@pytest.mark.parametrize("name", [WEIGHTS, CONFIG, MANIFEST])
@pytest.mark.parametrize("how", ["altered", "truncated", "deleted"])
async def test_a_broken_active_adapter_falls_back_to_its_parent_and_says_so(
    tmp_path: Path, name: str, how: str
) -> None:
    async with open_bot(tmp_path) as bot:
        await versions(bot, 2)
        path = await directory(bot, 2) / name
        path.chmod(0o600)
        if how == "deleted":
            path.unlink()
        else:
            content = path.read_bytes()
            path.write_bytes(content[:-1] + (b"" if how == "truncated" else b"\x7f"))
        wrong = await bot.app.registry.reconcile()
        assert "v000002" in wrong
        assert await bot.app.registry.active() == 1
        assert await who_answers(bot) == "v1"
        assert await bot.app.registry.reconcile() == ""


async def test_with_no_ancestor_left_the_base_answers(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        await versions(bot, 3)
        for version in (1, 2, 3):
            (await directory(bot, version) / WEIGHTS).unlink()
    async with open_bot(tmp_path) as bot:
        assert await bot.app.registry.active() == 0
        assert await who_answers(bot) == "v0"
        await bot.rated(8)
        verdict = await bot.train()  # and it can learn again
        assert verdict.state == "activated"
        assert (await bot.app.registry.row(verdict.version)).parent == 0


async def test_an_adapter_that_the_server_will_not_load_falls_back_too(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        await versions(bot, 2)
    async with open_bot(tmp_path, serve=True) as bot:
        bot.fake.set(refused=[2])
        bot.fake.forget()
        assert "another shape" in await bot.app.registry.reconcile()
        assert await who_answers(bot) == "v1"


async def test_a_new_adapter_that_will_not_load_or_answer_is_not_made_active(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        await versions(bot, 1)
        for mode in ({"refused": [2]}, {"generate": "base"}):
            await bot.rated(8)
            bot.fake.set(**mode)
            verdict = await bot.train()
            bot.fake.set(refused=[], generate="ok")
            assert verdict.state == "failed", verdict.reason
            assert "did not go live" in verdict.reason
            assert await who_answers(bot) == "v1"
        assert await loaded(bot) == [1]
        assert [bool(row.tainted) for row in await bot.app.registry.rows()] == [False, True, True]


async def test_what_was_replaced_is_unloaded(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        await versions(bot, 2)
        assert await loaded(bot) == [2]
        await bot.rollback()
        assert await loaded(bot) == [1]
        await bot.command("off")
        assert await loaded(bot) == []
        assert await who_answers(bot) == "v0"
        await bot.command("resume")
        assert await who_answers(bot) == "v1"


async def test_a_pointer_that_somebody_else_has_moved_is_not_moved_back(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        await versions(bot, 2)
        assert not await bot.app.registry.activate(1, expected=0)
        assert await bot.app.registry.active() == 2
        assert await loaded(bot) == [2]  # what was loaded for nothing is gone again
        assert await who_answers(bot) == "v2"


async def test_a_rollback_while_it_trains_wins(tmp_path: Path) -> None:
    """The run that `rollback` ends, and one that starts while the pointer is still the old one."""
    async with open_bot(tmp_path) as bot:
        await versions(bot, 1)
        await bot.rated(8)
        await bot.start_training()
        assert "base model" in await bot.rollback()
        assert (await bot.run(2)).state == "superseded"
        await bot.start_training()
        assert await bot.app.registry.activate(1, expected=0)
        run = await bot.finish_training()
        assert run.state == "superseded"
        assert "another version" in run.reason
        assert await bot.app.registry.active() == 1
        await check(bot)


async def test_a_server_that_died_is_started_again_with_the_active_version(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        await versions(bot, 1)
        server: Any = bot.app.server
        os.kill(server._sampler._process.pid, signal.SIGKILL)
        await until(lambda: not server.healthy())
        bot.fake.set(**{"no start": "There was not enough memory."})
        assert "not running" in (await bot.say("Hello?")).text
        assert (await bot.status())["server"] == "down"
        bot.fake.set(**{"no start": ""})
        assert "started again" in await bot.app.registry.reconcile()
        assert await who_answers(bot) == "v1"
        assert await bot.app.registry.reconcile() == ""


async def test_a_server_that_dies_in_the_middle_of_an_answer(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        bot.fake.set(generate="die")
        assert "not running" in (await asyncio.wait_for(bot.say("Hello?"), patience(5))).text
        bot.fake.set(generate="ok")
        await bot.app.registry.reconcile()
        assert await who_answers(bot) == "v0"


async def test_a_server_that_does_not_speak_the_protocol_is_ended(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        bot.fake.set(generate="garbage")
        assert "not running" in (await asyncio.wait_for(bot.say("Hello?"), patience(5))).text
        assert not bot.app.server.healthy()
        bot.fake.set(generate="ok")
        await bot.app.registry.reconcile()
        assert await who_answers(bot) == "v0"


async def test_a_server_that_forgot_its_adapter_gets_it_again(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        await versions(bot, 2)
        bot.fake.forget()
        assert "did not serve" in await bot.app.registry.reconcile()
        assert await bot.app.registry.active() == 2
        assert await who_answers(bot) == "v2"


async def test_a_server_that_will_not_start_is_a_sentence_and_nothing_is_left(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        fake = bot.fake
    fake.set(**{"no start": "there is not enough memory for it"})
    with pytest.raises(ServerError, match="not enough memory"):
        async with open_bot(tmp_path):
            pass
    fake.set(**{"no start": ""})
    async with open_bot(tmp_path) as bot:  # the lock is free, the store was closed
        assert await who_answers(bot) == "v0"


async def test_the_daemon_reconciles_by_itself(tmp_path: Path) -> None:
    from goodbot.testing import VirtualClock

    clock = VirtualClock(waits=True)
    async with open_bot(tmp_path, clock=clock) as bot:
        server: Any = bot.app.server
        first = server._sampler._process.pid
        os.kill(first, signal.SIGKILL)
        await until(lambda: not server.healthy())
        clock.advance(31)
        await until(server.healthy)
        assert server._sampler._process.pid != first


async def test_leftovers_are_swept_at_the_start_and_adapters_are_not(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        await versions(bot, 1)
    home = tmp_path / "bot"
    (home / "staging" / "run-9").mkdir(parents=True)
    (home / "staging" / "run-9" / WEIGHTS).write_bytes(b"half")
    (home / "adapters" / "v000002-0123456789abcdef").mkdir()
    (home / "adapters" / ".DS_Store").write_bytes(b"")
    (home / "adapters" / "link").symlink_to(tmp_path / "fake")
    async with open_bot(tmp_path, serve=True) as bot:
        assert await who_answers(bot) == "v1"
        assert not list((home / "staging").iterdir())
        await check(bot)
    assert (tmp_path / "fake" / "config.json").exists()


async def test_another_model_does_not_get_this_ones_adapters(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        await versions(bot, 1)
    store = await Store.open(tmp_path / "bot" / "goodbot.db")

    async def rename(db: Any) -> None:
        await db.execute("UPDATE adapters SET model = 'another'")

    await store.write(rename)
    await store.close()
    async with open_bot(tmp_path) as bot:
        assert await who_answers(bot) == "v0"
        with pytest.raises(AdapterError, match="belongs to the model another"):
            await bot.app.registry.path(1)


async def test_compare_and_set(tmp_path: Path) -> None:
    store = await Store.open(tmp_path / "goodbot.db")
    try:
        moves = [
            store.write(lambda db, v=v: adapters.move_pointer(db, "default", "m", 0, v, 0.0))
            for v in range(1, 11)
        ]
        assert sorted(await asyncio.gather(*moves)) == [False] * 9 + [True]
        assert await rows(store, "SELECT version FROM pointers") != [(0,)]
    finally:
        await store.close()


async def test_hashing_and_loading_do_not_block_the_loop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from goodbot.learning.adapters import copies

    async with open_bot(tmp_path) as bot:
        await versions(bot, 1)
        real = copies.verify

        lively = threading.Event()

        def slow(*args: Any) -> Path:
            assert lively.wait(patience(20)), "the loop stands still meanwhile"
            return real(*args)

        monkeypatch.setattr(copies, "verify", slow)
        beats = 0
        task = asyncio.create_task(bot.app.registry.reconcile())
        while not task.done():
            await asyncio.sleep(0.01)
            beats += 1
            if beats > 10:
                lively.set()
        assert beats > 10


async def test_who_is_cancelled_while_it_loads_leaves_nothing_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_bot(tmp_path) as bot:
        await versions(bot, 2)
        registry, reached = bot.app.registry, asyncio.Event()

        async def hangs(*_: Any, **__: Any) -> bool:
            reached.set()
            return await asyncio.Event().wait()

        with monkeypatch.context() as patch:
            patch.setattr(registry, "_prove", hangs)
            task = asyncio.create_task(registry.activate(1, expected=2))
            await reached.wait()
            assert 1 in await loaded(bot)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        assert await loaded(bot) == [2]
        assert await who_answers(bot) == "v2"


async def test_files_are_not_pruned_while_a_version_goes_live(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else those of the version that is being loaded could go under it."""
    async with open_bot(tmp_path) as bot:
        await versions(bot, 3)
        registry, reached, go = bot.app.registry, asyncio.Event(), asyncio.Event()
        prepare = registry.prepare

        async def slowly(version: int) -> None:
            reached.set()
            await go.wait()
            await prepare(version)

        monkeypatch.setattr(registry, "prepare", slowly)
        going_back = asyncio.create_task(registry.activate(1, expected=3))
        await reached.wait()
        pruning = asyncio.create_task(retention.prune(bot.store, registry, keep=1, now=0.0))
        done, _ = await asyncio.wait([pruning], timeout=0.3)
        assert not done
        go.set()
        assert await going_back
        assert 1 not in await pruning
        assert await who_answers(bot) == "v1"


async def test_a_version_that_is_used_beside_keeps_its_files(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        await versions(bot, 3)
        registry = bot.app.registry
        async with registry.beside(1):
            assert await retention.prune(bot.store, registry, keep=1, now=0.0) == [2]
        assert await retention.prune(bot.store, registry, keep=1, now=0.0) == [1]
