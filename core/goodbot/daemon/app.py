"""A running goodbot: builds the parts, owns the tasks, knows the order of start and stop."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import logging
from collections.abc import AsyncGenerator, Callable, Coroutine, Mapping
from typing import Any

from goodbot.access import linking
from goodbot.access.direct_message import Courier
from goodbot.access.groups import RaterGroups
from goodbot.access.limits import Quotas
from goodbot.access.login import Logins
from goodbot.access.notices import Notices
from goodbot.api.plugins import PluginHost, choose_backend
from goodbot.base import sampling
from goodbot.base.clock import Clock, SystemClock
from goodbot.base.errors import boundary
from goodbot.commands.base import Services
from goodbot.commands.confirm import Confirmations
from goodbot.commands.runner import CommandRunner
from goodbot.config import Config, Grants
from goodbot.config.lock import HomeLock, prepare_home
from goodbot.conversation.completions import ServedModel
from goodbot.conversation.generate import Generator
from goodbot.conversation.ingest import Dispatcher
from goodbot.conversation.notifications import OwnerNews
from goodbot.conversation.presence import Presence
from goodbot.conversation.replies import Answers
from goodbot.daemon.connectors import Connectors
from goodbot.daemon.http.http import Http
from goodbot.daemon.maintenance import Maintenance
from goodbot.daemon.wiring import SCOPE, Assembly, local_owner
from goodbot.inference.models import resolve
from goodbot.inference.prompts import Room
from goodbot.inference.servers import choice, thinking
from goodbot.learning.adapters.erasure import Eraser
from goodbot.learning.canary import Canary
from goodbot.learning.evaluation.ab_test import AbTest
from goodbot.learning.evaluation.idle import SpareTime
from goodbot.learning.evaluation.preparing import Preparing
from goodbot.learning.evaluation.side_by_side import SideBySide
from goodbot.learning.idle import Gauge, Limits, Readings
from goodbot.learning.model_switch import ModelSwitch
from goodbot.learning.tracking.observer import Tracking
from goodbot.learning.training.memory_sharing import MemorySharing
from goodbot.learning.training.scheduler import Scheduler
from goodbot.learning.training.settings import shape, training_settings, vocabulary
from goodbot.store import Store, renames

logger = logging.getLogger(__name__)

_DRAIN_SECONDS = 10.0


class App:
    """One goodbot on one state directory. Use `async with App.open(...)`."""

    def __init__(
        self,
        config: Config,
        plugins: PluginHost,
        *,
        clock: Clock | None = None,
        demo_model: bool = False,
        grants: Mapping[str, Grants] | None = None,
        lock: HomeLock | None = None,
        machine: Callable[[bool], Readings] | None = None,
        http: Http | None = None,
    ) -> None:
        """`lock` and `http` are the caller's, who lets go of them himself; `machine` reads what the
        machine does beside us (`goodbot.learning.idle.read_machine`)."""
        self.config = config
        self.plugins = plugins
        self.clock = clock or SystemClock()
        self.model = resolve(config.model.path, plugins.models(), demo=demo_model)
        self.backend = choose_backend(plugins.backends(), config.training.backend, config.where("training"))
        self.settings, self.learning = training_settings(
            config, self.backend, plugins.objectives(), self.model.path
        )
        about = {"model": self.model.name, "backend": self.backend.name}
        about |= dataclasses.asdict(self.settings)
        self._tracking = Tracking(config, plugins.trackers(), about)
        plugins.attach(self._tracking)
        owners = local_owner() if grants is None else grants
        self.connectors = Connectors(config, plugins.connectors(), owners, self.clock, http)
        self._lock = lock or HomeLock(config.home)
        self._lets_go = lock is None
        self.gauge = Gauge(limits=Limits.of(config.training), clock=self.clock, read=machine)
        self.restart = asyncio.Event()
        """Set when this one is to stop, and another on the config as it is then to take over."""
        self._tasks: list[asyncio.Task[None]] = []
        self._assembly = Assembly(
            config,
            plugins,
            clock=self.clock,
            backend=self.backend,
            authorization=self.connectors.authorization,
        )
        self.server = self._assembly.server(self.model)
        self.sampling = sampling.of(self.model.path, config.serving.drawn_with)

    @classmethod
    @contextlib.asynccontextmanager
    async def open(cls, *args: Any, serve: bool = True, **kwargs: Any) -> AsyncGenerator[App, None]:
        """Build and start; stop at the end, whatever happened. Arguments as for `App`."""
        app = cls(*args, **kwargs)
        try:
            await app.start(serve=serve)
            yield app
        finally:
            await app.stop()

    async def start(self, *, serve: bool = True, behind: bool = False) -> None:
        """Take the directory, open the store, recover; with `serve` also answer people.

        `behind`: return once what people say is taken; the model comes up behind that, see `loaded`.
        Raises BusyError, NewerDataError, StoreError, ConfigError, MissingExtraError, ServerError.
        """
        prepare_home(self.config.home)
        self._lock.acquire()
        self.store = await Store.open(self.config.home / "goodbot.db", self._assembly.policy)
        if await self.store.write(lambda db: renames.adopt(db, SCOPE, self.model.name)):
            logger.info("what was learnt under the model's old name belongs to %s", self.model.name)
        await linking.adopt_own(self.store, self.connectors.authorization, SCOPE, self.clock.now())
        self._build()
        await self.registry.sweep(self.config.home / "staging", keep=await self.trainer.recover())
        if serve:
            self.connectors.build(self.dispatcher, self.store, self.clock, self.logins)
            self._loading = self._spawn(self._load(), "loading")
            unfinished = await self.dispatcher.unfinished()
            await self.connectors.start()
            self.dispatcher.resume(unfinished)
            self._spawn(self.dispatcher.loop(), "commands")
            self._spawn(self.groups.loop(), "groups")
            self._spawn(self._at_start(), "at start")
            self._spawn(self.news.loop(), "news")
            if not behind:
                await self.loaded()

    async def loaded(self) -> None:
        """Return once the model answers. Raises ServerError where it does not come up."""
        await asyncio.shield(self._loading)

    async def _load(self) -> None:
        await self.start_server()
        self._spawn(self.ab_test.loop(), "comparing")
        self._spawn(self.scheduler.loop(), "scheduler")
        self._spawn(self.maintenance.loop(), "maintenance")

    def _build(self) -> None:
        config, store, clock, plugins = self.config, self.store, self.clock, self.plugins
        running, authorization = self.connectors.running, self.connectors.authorization
        make, pool = self._assembly, self._assembly.pool(self.model)
        make.store = store
        self.registry = make.registry(self.model, self.server)
        self.canary = Canary(
            store=store,
            registry=self.registry,
            pool=pool,
            clock=clock,
            stop=lambda reason: self.scheduler.stop(reason),
        )
        self.memory = MemorySharing(
            server=self.server,
            served=self.model.path,
            wanted=config.serving.memory,
            url=config.serving.url or make.server_spec.url,
            ours=not make.server_spec.url,
            backend=self.backend.name,
            store=store,
            scope=SCOPE,
            clock=clock,
        )
        self.presence = Presence(self.server, self.registry, self.memory, clock)
        self.dispatcher = Dispatcher(
            store=store,
            authorization=authorization,
            plugins=plugins,
            clock=clock,
            pool=pool,
            min_ratings=config.training.min_ratings,
            schedule=config.training.schedule,
            quotas=Quotas(config.serving, config.home, clock),
            vocabulary=vocabulary(self.model.path),
        )
        self.logins = Logins(store=store, clock=clock, authorization=authorization, scope=SCOPE)
        make.memory = self.memory
        self.trainer = make.trainer(self.model, self.registry, ask=config.serving.ask)
        self.scheduler = Scheduler(
            store=store,
            registry=self.registry,
            trainer=self.trainer,
            plugins=plugins,
            clock=clock,
            config=config.training,
            pool=pool,
            gauge=self.gauge,
            objection=choice.objection(make.server_spec),
        )
        self.model_switch = ModelSwitch(
            config=config,
            current=self.model,
            store=store,
            scheduler=self.scheduler,
            pool=make.pool,
            rehearse=make.rehearse,
            restart=self.restart,
            backend=self.backend.name,
            settings=dataclasses.asdict(self.settings),
        )
        writer = Generator(
            store=store,
            server=self.server,
            dispatcher=self.dispatcher,
            plugins=plugins,
            clock=clock,
            config=config.serving,
            sampling=self.sampling,
            model=self.model,
            connectors=running,
            presence=self.presence,
            version_for=self.canary.version_for,
            may_rate=authorization.may_rate,
        )
        self.connectors.model = ServedModel(
            server=self.server,
            model=self.model,
            config=config.serving,
            sampling=self.sampling,
            presence=self.presence,
            authorization=authorization,
            clock=clock,
            talked=self.scheduler.somebody_talks,
            active=self.registry.active,
            version_for=self.canary.version_for,
        )
        self.connectors.progress = lambda: self.scheduler.progress
        answers = Answers(store=store, writer=writer, dispatcher=self.dispatcher, model=self.model)
        self.courier = Courier(store=store, clock=clock, connectors=running)
        self.news = OwnerNews(
            store=store,
            registry=self.registry,
            courier=self.courier,
            clock=clock,
            owners=authorization.owners,
            readiness=self.scheduler.readiness,
            pool=pool,
        )
        plugins.attach(self.news)
        spare = SpareTime(server=self.server, clock=clock, busy=lambda: self.dispatcher.answering)
        self.ab_test = AbTest(
            store=store,
            registry=self.registry,
            scheduler=self.scheduler,
            courier=self.courier,
            preparing=Preparing(
                store=store,
                registry=self.registry,
                spare=spare,
                pool=pool,
                config=config.serving,
                sampling=self.sampling,
            ),
            authorization=authorization,
            clock=clock,
            pool=pool,
        )
        plugins.attach(self.ab_test)
        self.groups = RaterGroups(connectors=running, clock=clock, authorization=authorization)
        self.notices = Notices(
            store=store,
            clock=clock,
            authorization=authorization,
            connectors=running,
            days=config.privacy.unrated_days,
            errors=self.connectors.errors,
        )
        self.eraser = Eraser(
            store=store,
            registry=self.registry,
            server=self.server,
            clock=clock,
            connectors=running,
            home=config.home,
        )
        self.maintenance = Maintenance(
            config=config,
            store=store,
            clock=clock,
            registry=self.registry,
            canary=self.canary,
            scheduler=self.scheduler,
            memory=self.memory,
            presence=self.presence,
            connectors=self.connectors,
            notices=self.notices,
            eraser=self.eraser,
        )
        services = Services(
            config=config,
            store=store,
            clock=clock,
            authorization=authorization,
            plugins=plugins,
            dispatcher=self.dispatcher,
            registry=self.registry,
            server=self.server,
            scheduler=self.scheduler,
            trainer=self.trainer,
            memory=self.memory,
            news=self.news,
            presence=self.presence,
            model_switch=self.model_switch,
            courier=self.courier,
            logins=self.logins,
            confirmations=Confirmations(clock),
            notices=self.notices,
            eraser=self.eraser,
            connectors=running,
            connector_errors=self.connectors.problems,
            canary=self.canary,
            platform_time=self.connectors.time,
            http=self.connectors.http,
            model=self.model.name,
            spare=spare,
            backend=self.backend.name,
            learning=self.learning,
            thinks=thinking.told(self.model.path, thinking=config.serving.thinking),
            sampling=self.sampling,
            started_at=clock.now(),
            ab_test=self.ab_test,
            side_by_side=SideBySide(
                registry=self.registry,
                spare=spare,
                config=config.serving,
                sampling=self.sampling,
                room=Room.of(shape(self.model.path), config.serving),
            ),
        )
        self.commands = CommandRunner(services)
        self.dispatcher.wire(
            answer=answers.answer,
            put_back=answers.put_back,
            command=self.commands.handle,
            acknowledge=self.connectors.acknowledge,
            rated=self.scheduler.wake,
            talked=self.scheduler.somebody_talks,
            tell=self.courier.tell,
        )

    async def start_server(self) -> None:
        """Bring the model up with the version that should answer."""
        await self.presence.come(first=True)

    async def _at_start(self) -> None:
        with boundary(logger, "notices"):
            await self.notices.post()
        with boundary(logger, "progress"):
            await self.dispatcher.progress.catch_up(self.store, self.courier)

    def _spawn(self, work: Coroutine[Any, Any, None], name: str) -> asyncio.Task[None]:
        self._tasks.append(task := asyncio.create_task(work, name=name))
        return task

    async def stop(self) -> None:
        """Answers under way are still sent; the store is closed last. Idempotent.

        Each part is stopped whatever became of the ones before, and of `start`.
        """
        async with contextlib.AsyncExitStack() as last_to_first:
            if self._lets_go:
                last_to_first.callback(self._lock.release)
            if hasattr(self, "store"):
                last_to_first.push_async_callback(self.store.close)
            last_to_first.push_async_callback(self.server.stop)
            if hasattr(self, "presence"):
                last_to_first.push_async_callback(self.registry.stop)
                last_to_first.push_async_callback(self.presence.stop)
            last_to_first.push_async_callback(self._tracking.stop)
            if hasattr(self, "scheduler"):
                last_to_first.push_async_callback(self.scheduler.suspend)
            if hasattr(self, "commands"):
                last_to_first.push_async_callback(self.commands.stop)
            last_to_first.push_async_callback(self._stop_tasks)
            last_to_first.push_async_callback(self.connectors.stop)
            if hasattr(self, "dispatcher"):
                self.memory.closing = True  # nobody waits for the model to come back
                seconds = 0.0 if self.presence.away else _DRAIN_SECONDS
                last_to_first.push_async_callback(self.dispatcher.drain, seconds)

    async def _stop_tasks(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


def open_plugins(config: Config) -> PluginHost:
    """A plugin host with everything that is installed and enabled."""
    plugins = PluginHost()
    plugins.load_entry_points(config.plugins.enable, config.where("plugins"))
    return plugins
