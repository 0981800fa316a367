# SPDX-License-Identifier: Apache-2.0
"""A running goodbot: the order in which its parts start and stop, and its tasks."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncGenerator, Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from typing import Any

from goodbot.access import linking
from goodbot.api.events import Event
from goodbot.api.plugins import PluginHost
from goodbot.base.errors import boundary
from goodbot.base.tasks import end_tasks
from goodbot.config import Config, clear, vault
from goodbot.config.layout import DATABASE
from goodbot.config.lock import HomeLock, prepare_home
from goodbot.conversation import sanitize
from goodbot.conversation.connectors import CONNECTING
from goodbot.conversation.note_trial import FollowTrial
from goodbot.daemon import wiring
from goodbot.daemon.http.http import Http
from goodbot.daemon.parts import OperatingParts
from goodbot.learning.core import Chosen
from goodbot.learning.idle import Readings
from goodbot.store import Store, inspection, renames, trail, workshop
from goodbot.store.opening import open_store

logger = logging.getLogger(__name__)

_DRAIN_SECONDS = 10.0


@dataclass(frozen=True, kw_only=True)
class App(OperatingParts):
    """One goodbot on one state directory, whole: made by `App.open(...)` or `App.on(...)`."""

    _tasks: dict[str, asyncio.Task[None]] = field(default_factory=dict[str, asyncio.Task[None]])

    @classmethod
    @contextlib.asynccontextmanager
    async def open(
        cls,
        config: Config,
        plugins: PluginHost,
        *,
        serve: bool = True,
        machine: Callable[[bool], Readings] | None = None,
        **kwargs: Any,
    ) -> AsyncGenerator[App]:
        """Build it, and with `serve` answer people; stop at the end, whatever happened.

        Arguments as for `wiring.choose`, and `machine` as for `wiring.learning`. Raises what that and
        `made` raise.
        """
        async with cls.made(wiring.choose(config, plugins, **kwargs), machine=machine) as app:
            if serve:
                await app.serve()
            yield app

    @classmethod
    @contextlib.asynccontextmanager
    async def made(
        cls,
        chosen: Chosen,
        *,
        lock: HomeLock | None = None,
        machine: Callable[[bool], Readings] | None = None,
        http: Http | None = None,
    ) -> AsyncGenerator[App]:
        """Take the directory, open the store, build the parts, recover; at the end undo what was done.

        `lock` and `http` are the caller's, who lets go of them himself. Each part is stopped whatever
        became of the ones before: answers under way are still sent, and the store is closed last.
        Raises BusyError, NewerDataError, StoreError.
        """
        home = chosen.config.home
        async with contextlib.AsyncExitStack() as last_to_first:
            prepare_home(home)
            if lock is None:
                lock = HomeLock(home)
                last_to_first.callback(lock.release)
            lock.acquire()
            last_to_first.callback(clear.leave, home)
            await asyncio.to_thread(clear.sweep, home)
            await asyncio.to_thread(workshop.sweep, home)
            vault.register(home, chosen.config.encryption)
            store = await open_store(home / DATABASE, chosen.config.store, chosen.policy)
            last_to_first.push_async_callback(store.close)
            await _adopt(chosen, store)
            core = wiring.opened(chosen, store)
            core.steady.started(await store.read(inspection.last_seen))
            learning = wiring.learning(core, machine)
            app = cls(**vars(wiring.operating(wiring.answering(learning), http)))
            for stop in (
                app.server.stop,
                app.registry.stop,
                app.presence.stop,
                app.tracking.stop,
                app.scheduler.suspend,
                app.commands.stop,
                app._stop_tasks,
                app.manager.stop,
                app._drain,
            ):
                last_to_first.push_async_callback(stop)
            await app.registry.sweep(home / "staging", keep=await app.trainer.recover())
            yield app

    async def serve(self, *, behind: bool = False) -> None:
        """Start the connectors and answer people.

        `behind`: return once what people say at this machine is taken; platforms (`connected`) and the
        model (`loaded`) come up behind that. Raises ConfigError, MissingExtraError, ServerError.
        """
        self.manager.build()
        self._spawn(self._load(), "loading")
        self.commands.late.left(unfinished := await self.dispatcher.unfinished())
        since = await self.store.read(trail.newest)
        self._spawn(self.dispatcher.loop(self.commands.handle), "commands")
        await self.manager.start()
        waits = {name for name, why in self.connectors.errors.items() if why == CONNECTING}
        self.dispatcher.resume([event for event in unfinished if event.channel.connector not in waits])
        for place in self.connectors.running:
            left = [event for event in unfinished if event.channel.connector == place and place in waits]
            undone = [event for event in left if not sanitize.is_rating_command(event)]  # those are stored
            self.commands.late.wait(undone, since)
            self._spawn(self._go_on(place, left), f"{place}: going on")
        self._spawn(self._at_start(), "at start")
        self._spawn(self.news.loop(), "news")
        self._spawn(self.courier.loop(), "telling again")
        for work, name in self.manager.features.work():
            self._spawn(work, name)
        if not behind:
            await self.connected()
            await self.loaded()

    async def connected(self) -> None:
        """Return once each connector has started, or has failed to for now."""
        await self.manager.tried(self.connectors.running)

    async def loaded(self) -> None:
        """Return once the model answers. Raises ServerError where it does not come up."""
        await asyncio.shield(self._tasks["loading"])

    async def start_server(self) -> None:
        """Bring the model up with the version that should answer."""
        await self.presence.come(first=True)

    async def _load(self) -> None:
        await self.start_server()
        self._spawn(self.ab_test.loop(), "comparing")
        self._spawn(self.own_questions.loop(), "comparing versions of people's own")
        self._spawn(self.scheduler.loop(), "scheduler")
        self._spawn(self.scopes.loop(self.scheduler), "scopes")
        self._spawn(self.maintenance.loop(), "maintenance")
        self._spawn(self.judging.loop(), "judging")
        self._spawn(FollowTrial(self).loop(), "trying notes")

    async def _go_on(self, place: str, left: Sequence[Event]) -> None:
        """Do what was left undone at a place, once it has been connected to or cannot be for now."""
        await self.manager.tried([place])
        self.dispatcher.resume(left)
        self.news.soon.set()
        await self.groups.loop(place)

    async def _at_start(self) -> None:
        await self.connected()
        with boundary(logger, "notices"):
            await self.notices.post()
        with boundary(logger, "who asks to join"):
            await self.join_requests.again(self.store)
        with boundary(logger, "progress"):
            await self.ratings.progress.catch_up(self.store, self.courier, self.config.serving.language)

    def _spawn(self, work: Coroutine[Any, Any, None], name: str) -> None:
        self._tasks[name] = asyncio.create_task(work, name=name)

    async def _drain(self) -> None:
        self.memory.closing = True  # nobody waits for the model to come back
        await self.dispatcher.drain(0.0 if self.presence.away else _DRAIN_SECONDS)

    async def _stop_tasks(self) -> None:
        await end_tasks(*self._tasks.values())


async def _adopt(chosen: Chosen, store: Store) -> None:
    """Bring what is stored together with the config as it is now."""
    pool = chosen.pool
    if await store.write(lambda db: renames.adopt(db, pool.scope, pool.model)):
        logger.info("what was learnt under the model's old name belongs to %s", pool.model)
    await linking.adopt_own(store, chosen.authorization, pool.scope, chosen.clock.now())


def open_plugins(config: Config) -> PluginHost:
    """A plugin host with everything that is installed and enabled."""
    plugins = PluginHost()
    plugins.load_entry_points(config.plugins.enable, config.where("plugins"))
    return plugins
