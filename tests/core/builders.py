# SPDX-License-Identifier: Apache-2.0
"""What the tests of the core share: events, a whole goodbot on a fake model, the invariants."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import inspect
import json
import time
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import goodbot_connectors.terminal
from goodbot import BackendSpec, hookimpl
from goodbot.api.adapters.manifest import verify
from goodbot.api.labels import Opinion
from goodbot.api.model import ResolvedModel
from goodbot.api.plugins import PluginHost
from goodbot.api.server import AdapterFormat, ServerParts
from goodbot.base import spawn
from goodbot.base.clock import Clock, SystemClock
from goodbot.base.spawn import child_environment
from goodbot.config import Config, Grants, ModelConfig, ServingConfig, TrainingConfig
from goodbot.config.secrets import Secrets
from goodbot.daemon import loopback
from goodbot.daemon.app import App
from goodbot.daemon.connectors import local_owner
from goodbot.daemon.loopback import Answer
from goodbot.inference.servers import plugin as own_servers
from goodbot.learning.idle import Readings
from goodbot.store import Store, adapters, ledger, runs
from goodbot.store.postgres.opened import PostgresStore
from goodbot.store.query import fetch
from goodbot.testing import Pilot
from goodbot_training.objectives import rewards

import tests.children  # noqa: F401  the fake is a module of the tests
from tests.core.made import CHANNEL, GRANTS, OWNER, add_turn, copied, rate, rebuild, retract, turn
from tests.support import patience

# -- a fake model

_through = spawn._through


def _with_a_door(
    command: Sequence[str],
    environ: Mapping[str, str],
    cage: spawn.Cage | None = None,
    scratch: Path | None = None,
) -> tuple[str, ...]:
    """The fake keeps its switches and its diary in its model's directory, which no real one writes."""
    if cage and SPEC.worker in command:
        cage = dataclasses.replace(cage, writes=(*cage.writes, *cage.reads))
    return _through(command, environ, cage, scratch)


spawn._through = _with_a_door


@dataclass(frozen=True, kw_only=True)
class FakeSettings:
    """The fake backend's settings."""

    note: str = ""
    objective: str = "tapered"
    note_weight: float = 1.0
    tokens_per_forward: int = 8192
    max_sequence_tokens: int = 4096


SPEC = BackendSpec(
    name="fake",
    factory="tests.core.fake_worker:Fake",
    requires=(),
    extra="",
    settings=FakeSettings,
    priority=100,
    worker="tests.core.fake_worker",
)


class FakePlugin:
    """Registers the fake backend."""

    @hookimpl
    def register_backend(self) -> BackendSpec:
        return SPEC


def server_parts(backend: BackendSpec, model: Path, **changes: Any) -> ServerParts:
    """What a driver is given, on a model directory."""

    async def convert(directory: Path, to: AdapterFormat) -> Path:
        return directory

    parts = ServerParts(
        model=ResolvedModel(name=model.name, path=model),
        backend=backend,
        url="",
        served_model="",
        key=Secrets(("KEY",), {}).get("KEY"),
        home=model.parent / "serving",
        clock=SystemClock(),
        environ=child_environment(),
        adapters=model.parent,
        path_on_server="",
        convert=convert,
    )
    return dataclasses.replace(parts, **changes)


class Fake:
    """A model directory for `fake_worker`, and the switches of its behaviour."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.mkdir(parents=True, exist_ok=True)
        if not (path / "config.json").exists():  # a test may say more of its model
            (path / "config.json").write_text('{"model_type": "fake"}')
        (path / "model.safetensors").write_bytes(b"")
        self._modes: dict[str, Any] = {}

    def set(self, **modes: Any) -> None:
        """`train=` and `generate=` a mode, `refused=` versions that will not load."""
        self._modes.update(modes)
        partial = self.path / "fake.json.new"
        partial.write_text(json.dumps(self._modes))
        partial.rename(self.path / "fake.json")

    def steps(self) -> list[tuple[int, int, int]]:
        """What the mode `steps` has done so far: run, step, attempt at a memory plan."""
        if not (done := self.path / "steps").exists():
            return []
        lines = [line for line in done.read_text().splitlines() if not line.startswith("dies")]
        return [(int(run), int(step), int(n)) for run, step, n in map(str.split, lines)]

    def go(self) -> None:
        """Let a `slow` training finish."""
        (self.path / "go").touch()

    def forget(self) -> None:
        """Let the server lose its adapters at its next request."""
        (self.path / "forget").touch()

    def ignore(self) -> None:
        """Let the server answer like the base model whatever it has loaded, until that is loaded anew."""
        (self.path / "ignore").touch()


class Bot(Pilot):
    """A Pilot on a fake model, with a few more things to do and to ask."""

    def __init__(self, app: App, fake: Fake) -> None:
        super().__init__(app)
        self.fake = fake
        self.answers: list[Answer] = []

    @property
    def store(self) -> Store:
        return self.app.store

    async def rated(self, count: int, **fields: Any) -> list[Answer]:
        """Ask `count` questions and rate the answers, good and bad in turn."""
        made: list[Answer] = []
        for number in range(count):
            answer = await self.say(f"question {len(self.answers)}", **fields)
            await self.react(answer, "👍" if number % 2 == 0 else "👎")
            self.answers.append(answer)
            made.append(answer)
        return made

    async def labels(self, answer: Answer) -> dict[str, Opinion]:
        return await self.store.read(lambda db: ledger.labels(db, answer.turn))

    async def last_run(self) -> runs.Run:
        return (await self.store.read(lambda db: runs.last_runs(db, "default")))[0]

    async def trained(self, version: int) -> dict[str, float]:
        """Turn → reward, as the files of this version and of its ancestors say."""
        found: dict[str, float] = {}
        while version:
            found |= await self.trained_by(version)
            version = (await self.app.registry.row(version)).parent
        return found

    async def trained_by(self, version: int) -> dict[str, float]:
        """Turn → reward of this version's own run."""
        directory = await self.app.registry.path(version)
        return json.loads((directory / "adapter_config.json").read_text())["trained"]

    async def start_training(self) -> None:
        """Start a `slow` run and wait until its child has claimed and works."""
        self.fake.set(train="slow")
        if "`/rl train yes`" in await self.command("train"):  # of few ratings it asks first
            await self.command("train", "yes")
        await until(lambda: (self.app.trainer.progress or {}).get("steps") == 2)
        self._slow = (await self.last_run()).id

    async def finish_training(self) -> runs.Run:
        """Let the `slow` run finish and wait for its end; what it sets off trains at once."""
        self.fake.set(train="ok")
        self.fake.go()

        async def ended() -> bool:
            return (await self.run(self._slow)).state != "running"

        await until(ended)
        return await self.run(self._slow)

    def is_slow(self, id_: int) -> bool:
        """Whether this run waits for `finish_training`."""
        return id_ == self._slow

    async def run(self, id_: int) -> runs.Run:
        found = await self.store.read(lambda db: runs.last_runs(db, "default", 1000))
        return next(run for run in found if run.id == id_)

    async def rollback(self, to: str = "") -> str:
        """Say it, and once more when asked back."""
        await self.command("rollback", to)
        return await self.command("rollback", f"{to} yes".strip())

    async def settle(self) -> None:
        """Wait until nothing trains or is about to, and no tainted version waits to be replaced."""

        async def at_rest() -> bool:
            name = adapters.retrain_switch(self.app.registry.scope, self.app.model.name)
            waiting = await rows(self.store, "SELECT 1 FROM switches WHERE name = ?", (name,))
            begun = await rows(self.store, INTERRUPTED)
            return not waiting and not begun and not self.app.scheduler.training

        await until(at_rest)


def plugins(*extra: object) -> PluginHost:
    """A plugin host with the fake backend, the platform in memory and the rewards."""
    host = PluginHost()
    host.register(FakePlugin(), "fake")
    host.register(loopback, "loopback")
    host.register(rewards, "rewards")
    host.register(own_servers, "servers")
    for number, plugin in enumerate(extra):
        host.register(plugin, f"extra-{number}")
    return host


def config(home: Path, fake: Fake, history: int = 0, **training: Any) -> Config:
    """8 ratings a run, 2 of them held out, on command."""
    given = {"schedule": "manual", "min_ratings": 8, "held_out": 2, "idle_seconds": 0.0}
    return Config(
        home=home,
        model=ModelConfig(path=str(fake.path)),
        serving=ServingConfig(history=history, ask="never"),
        training=TrainingConfig(**{**given, **training}),
    )


@contextlib.asynccontextmanager
async def open_bot(
    home: Path,
    *,
    clock: Clock | None = None,
    extra: tuple[object, ...] = (),
    grants: Grants = GRANTS,
    serve: bool = True,
    sections: Mapping[str, Any] | None = None,
    terminal: bool = False,
    machine: Callable[[bool], Readings] | None = None,
    **training: Any,
) -> AsyncGenerator[Bot]:
    """A whole goodbot in `home/bot` on the fake model in `home/fake`; `machine` as in `App`.

    `sections` of the config beside those that `config` makes; with `terminal` the local one, too.
    """
    local = local_owner() if terminal else {}
    extra = (*extra, goodbot_connectors.terminal) if terminal else extra
    fake = Fake(home / "fake")
    made = dataclasses.replace(config(home / "bot", fake, **training), **(sections or {}))
    async with App.open(
        made, plugins(*extra), clock=clock, grants={"loopback": grants, **local}, serve=serve, machine=machine
    ) as app:
        yield Bot(app, fake)


async def until(done: Callable[[], Any], seconds: float = 10.0) -> None:
    """Wait for something that happens by itself."""
    end = time.monotonic() + patience(seconds)
    while not (await found if inspect.isawaitable(found := done()) else found):
        assert time.monotonic() < end, "it never happened"
        await asyncio.sleep(0.005)


INTERRUPTED = (
    "SELECT id FROM runs WHERE state = 'running'"
    " AND NOT EXISTS (SELECT 1 FROM switches WHERE name IN ('paused', 'off') AND value <> '')"
)
"""Runs without a verdict that nobody has paused."""


# -- the invariants of reliability.md


async def rows(store: Store, sql: str, values: Any = ()) -> list[Any]:
    return await store.read(lambda db: fetch(db, sql, values))


async def check(bot: Bot) -> None:
    """I3, I4, I5, I8, I9, I12 and rule 3, once it has come to rest."""
    await bot.settle()
    await check_store(bot.store)
    registry = bot.app.registry
    versions = {row.version: row for row in await registry.rows()}
    for row in versions.values():  # I3: what is not tainted has learnt nothing that was taken back
        if not row.tainted:
            for id_, claimed in await _claimed(bot.store, row.version, versions):
                lost = await bot.store.read(lambda db, i=id_, before=claimed: ledger.lost(db, i, before))
                assert not lost, f"v{row.version} has learnt {id_}"
    active = await registry.active()
    if active:  # I4
        row = versions[active]
        verify(registry.root, row.directory, row.sha256)
        assert not row.tainted
    on_disk = {entry.name for entry in registry.root.iterdir()}
    erased = await rows(bot.store, "SELECT directory FROM adapters WHERE erased_at IS NOT NULL")
    kept = {row.directory for row in versions.values()} - {name for (name,) in erased}
    assert on_disk == kept  # I12
    assert await bot.app.server.served() == await registry.wanted()  # I5


async def _claimed(
    store: Store, version: int, versions: Mapping[int, adapters.AdapterRow]
) -> list[tuple[str, dict[str, Opinion]]]:
    """`(turn, labels then)` of all that a version and its ancestors were trained on."""
    found: list[tuple[str, dict[str, Opinion]]] = []
    while version:
        items = await rows(
            store,
            "SELECT turn, labels FROM run_items WHERE run = ? AND split = 'train'",
            (versions[version].run,),
        )
        found += [(id_, json.loads(labels)) for id_, labels in items]
        version = versions[version].parent
    return found


async def check_store(store: Store) -> None:
    """I8, I9 and rule 3: what is derived is what the ledger says."""
    if not isinstance(store, PostgresStore):  # whose server sees to both
        assert await rows(store, "PRAGMA integrity_check") == [("ok",)]
        assert await rows(store, "PRAGMA foreign_key_check") == []
    assert await rows(store, INTERRUPTED) == []
    used = await rows(
        store,
        "SELECT i.turn FROM run_items i JOIN runs r ON r.id = i.run WHERE i.split = 'train'"
        " AND NOT i.replayed AND r.state IN ('activated', 'refused')"
        " GROUP BY i.turn, r.model, r.scope HAVING count(*) > 1",
    )
    assert used == []
    derived = ("SELECT * FROM labels ORDER BY turn, rater", "SELECT id, rated FROM turns ORDER BY id")

    async def both(db: Any) -> list[list[Any]]:
        """Before and after, as one: nothing that is told meanwhile lies between them."""
        before = [[*await fetch(db, one)] for one in derived]
        await rebuild(db)
        return [before, [[*await fetch(db, one)] for one in derived]]

    before, after = await store.write(both)
    assert before == after


__all__ = [
    "CHANNEL",
    "GRANTS",
    "OWNER",
    "SPEC",
    "Bot",
    "Fake",
    "FakePlugin",
    "add_turn",
    "check",
    "check_store",
    "config",
    "copied",
    "open_bot",
    "plugins",
    "rate",
    "retract",
    "rows",
    "turn",
    "until",
]
