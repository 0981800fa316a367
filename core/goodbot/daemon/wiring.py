# SPDX-License-Identifier: Apache-2.0
"""How a goodbot is put together: from its config the core, then what learns, answers, and operates."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

from goodbot.access.admission import Admission
from goodbot.access.authorization import Authorization
from goodbot.access.direct_message import Courier
from goodbot.access.groups import RaterGroups
from goodbot.access.limits import Quotas
from goodbot.access.login import Logins
from goodbot.access.notices import Notices
from goodbot.access.requests import JoinRequests
from goodbot.api import marks
from goodbot.api.plugins import PluginHost
from goodbot.api.registry import choose_backend, reward_policy
from goodbot.base import sampling
from goodbot.base.clock import Clock, Steady, SystemClock
from goodbot.commands.confirm import Confirmations
from goodbot.commands.runner import CommandRunner
from goodbot.commands.services import Services
from goodbot.config import Config, Grants
from goodbot.conversation.captures import Capturing
from goodbot.conversation.completions import ServedModel
from goodbot.conversation.connectors import Connectors
from goodbot.conversation.follow_ups import FollowUps, FollowUpTasks
from goodbot.conversation.generate import Generator
from goodbot.conversation.ingest import Dispatcher
from goodbot.conversation.intake import EventIntake
from goodbot.conversation.judging import Judging
from goodbot.conversation.notes import Notes
from goodbot.conversation.notifications import OwnerNews, RoundCounter
from goodbot.conversation.parts import AnsweringParts
from goodbot.conversation.presence import Presence
from goodbot.conversation.ratings import Ratings
from goodbot.conversation.replies import Answers
from goodbot.daemon.connectors import ConnectorManager, configured_grants, local_owner
from goodbot.daemon.http.http import Http
from goodbot.daemon.maintenance import Maintenance
from goodbot.daemon.parts import OperatingParts
from goodbot.inference.models import resolve
from goodbot.inference.prompts import Room
from goodbot.inference.servers import choice
from goodbot.learning.adapters.erasure import Eraser
from goodbot.learning.adapters.registry import AdapterRegistry
from goodbot.learning.canary import Canary
from goodbot.learning.core import Chosen, Core, pool, serve
from goodbot.learning.evaluation.ab_test import AbTest
from goodbot.learning.evaluation.electorate import Electorate
from goodbot.learning.evaluation.idle import SpareTime
from goodbot.learning.evaluation.own_questions import OwnQuestions
from goodbot.learning.evaluation.preparing import Preparing
from goodbot.learning.evaluation.side_by_side import SideBySide
from goodbot.learning.idle import Limits, LoadMonitor, Readings
from goodbot.learning.model_switch import ModelSwitch
from goodbot.learning.parts import LearningParts
from goodbot.learning.scopes import Scopes
from goodbot.learning.tracking.observer import Tracking
from goodbot.learning.training import anchors, filtering, remote
from goodbot.learning.training.memory_sharing import MemorySharing
from goodbot.learning.training.scheduler import Scheduler
from goodbot.learning.training.settings import shape, training_settings, vocabulary
from goodbot.learning.training.trainer import Trainer
from goodbot.store import Store


def choose(
    config: Config,
    plugins: PluginHost,
    *,
    clock: Clock | None = None,
    demo_model: bool = False,
    grants: Mapping[str, Grants] | None = None,
) -> Chosen:
    """What a config comes to; `grants`: of connectors without a section. Raises what its parts raise."""
    clock = clock or SystemClock()
    model = resolve(config.model.path, plugins.models(), demo=demo_model)
    backend = choose_backend(plugins.backends(), config.training.backend, config.where("training"))
    remote.allowed(config, backend)  # before anything is opened: nobody's words go where no owner said so
    values, learning = training_settings(config, backend, plugins.objectives(), model.path)
    settings = dataclasses.asdict(values)
    about = {"model": model.name, "backend": backend.name, **settings}
    specs = plugins.connectors()
    authorization = Authorization(
        {**configured_grants(config, specs), **(local_owner() if grants is None else grants)},
        clock,
        local=[name for name, spec in specs.items() if spec.local],
    )
    spec = choice.choose(config, plugins.servers())
    return Chosen(
        config=config,
        plugins=plugins,
        clock=clock,
        authorization=authorization,
        backend=backend,
        policy=reward_policy(plugins, config.training.reward, config.where("training")),
        anchors=anchors.load(config),
        tracking=Tracking(config, plugins.trackers(), about),
        filtering=filtering.Filtering(config, plugins.filters()),
        spec=spec,
        server=serve(config, spec, backend, clock, model),
        model=model,
        sampling=sampling.of(model.path, config.serving.drawn_with),
        settings=settings,
        learning=learning,
        pool=pool(config, authorization, model),
    )


def opened(chosen: Chosen, store: Store) -> Core:
    """The core, now that there is a store."""
    began, steady = chosen.clock.now(), Steady(chosen.clock)
    return Core(**vars(chosen), store=store, started_at=began, restart=asyncio.Event(), steady=steady)


def learning(core: Core, machine: Callable[[bool], Readings] | None = None) -> LearningParts:
    """What learns. `machine` reads what the machine does beside us (`goodbot.learning.idle.read_machine`)."""
    config, clock = core.config, core.clock
    core.plugins.attach(core.tracking)
    registry = core.versions(AdapterRegistry, share=config.serving.canary)
    memory = MemorySharing(core)
    trainer = Trainer(core, registry, memory, ask=config.serving.ask, lines=Notes.of(core))
    load = LoadMonitor(limits=Limits.of(config.training), clock=clock, read=machine)
    scheduler = Scheduler(core, registry, trainer, load)
    return LearningParts(
        **vars(core),
        registry=registry,
        memory=memory,
        trainer=trainer,
        scheduler=scheduler,
        canary=Canary(store=core.store, registry=registry, pool=core.pool, clock=clock, stop=scheduler.stop),
        scopes=Scopes(core, registry, memory),
        model_switch=ModelSwitch(core, scheduler, memory),
    )


def answering(base: LearningParts) -> AnsweringParts:
    """What answers people, and takes in what they rate."""
    config, store, clock, authorization = base.config, base.store, base.clock, base.authorization
    connectors = Connectors()
    presence = Presence(base.server, base.registry, base.memory, clock)
    quotas = Quotas(config.serving, config.home, clock)
    admission = Admission(authorization, quotas, clock)
    notes = Notes.of(base)
    ratings = Ratings(
        authorization=authorization,
        admission=admission,
        progress=RoundCounter(base.scheduler.size, config.training.schedule, lambda: base.scheduler.held),
        clock=clock,
        pool=base.pool,
        notes=notes,
    )
    language = config.serving.language
    courier = Courier(store=store, clock=clock, connectors=connectors.running, language=language)
    generator = Generator(base, presence=presence, connectors=connectors.running, ratings=ratings)
    answers = Answers(base, generator=generator, connectors=connectors, notes=notes, still=admission.still)
    tasks, requests = FollowUpTasks(), JoinRequests(authorization, clock, courier.insist, courier.readers)
    return AnsweringParts(
        **vars(base),
        connectors=connectors,
        presence=presence,
        quotas=quotas,
        admission=admission,
        notes=notes,
        ratings=ratings,
        capturing=Capturing(
            authorization=authorization,
            admission=admission,
            plugins=base.plugins,
            clock=clock,
            pool=base.pool,
            vocabulary=vocabulary(base.model.path),
            kind=base.scopes.kind,
        ),
        courier=courier,
        join_requests=requests,
        follow_ups=FollowUps(
            answer=answers.answer,
            put_back=answers.put_back,
            acknowledge=connectors.acknowledge,
            ask=requests.ask,
            rated=base.scheduler.wake,
            talked=base.scheduler.somebody_talks,
            tell=courier.insist,
        ),
        follow_up_tasks=tasks,
        own_model=ServedModel(base, presence=presence),
        spare=SpareTime(server=base.server, clock=clock, busy=lambda: tasks.answering),
    )


def operating(base: AnsweringParts, http: Http | None = None) -> OperatingParts:
    """What keeps it in order. `http` is the process's, which outlives this goodbot; else it has its own."""
    own = Http(base.config.http, home=base.config.home) if http is None else http
    services = _services(base, own)
    base.plugins.attach(services.news)
    base.plugins.attach(services.ab_test)
    commands = CommandRunner(services)
    dispatcher = _dispatcher(base, commands)
    manager = ConnectorManager(services, dispatcher, own, stops_http=http is None)
    return OperatingParts(
        **vars(services),
        commands=commands,
        dispatcher=dispatcher,
        groups=RaterGroups(base.connectors.running, base.authorization, base.clock, base.connectors.trouble),
        judging=Judging(base),
        manager=manager,
        maintenance=Maintenance(services, manager),
    )


def _dispatcher(base: AnsweringParts, commands: CommandRunner) -> Dispatcher:
    intake = EventIntake(
        store=base.store,
        authorization=base.authorization,
        clock=base.clock,
        admission=base.admission,
        ratings=base.ratings,
        capturing=base.capturing,
        notes=base.notes,
        at_once=commands.at_once,
    )
    return Dispatcher(
        store=base.store,
        authorization=base.authorization,
        plugins=base.plugins,
        clock=base.clock,
        readers=base.courier.readers,
        intake=intake,
        follow_ups=base.follow_ups,
        tasks=base.follow_up_tasks,
    )


def _services(base: AnsweringParts, http: Http) -> Services:
    config, store, clock, authorization = base.config, base.store, base.clock, base.authorization
    registry, running = base.registry, base.connectors.running
    asking: dict[str, Any] = {"config": config.serving, "sampling": base.sampling}
    asking |= {"registry": registry, "spare": base.spare}
    news = OwnerNews(
        store=store,
        registry=registry,
        courier=base.courier,
        clock=clock,
        owners=authorization.owners,
        readiness=base.scheduler.readiness,
        pool=base.pool,
    )
    ab_test = AbTest(
        store=store,
        registry=registry,
        scheduler=base.scheduler,
        courier=base.courier,
        preparing=Preparing(store=store, pool=base.pool, **asking),
        who=Electorate(authorization),
        clock=clock,
        pool=base.pool,
    )
    eraser = Eraser(
        store=store, registry=registry, server=base.server, clock=clock, connectors=running, home=config.home
    )
    return Services(
        **vars(base),
        http=http,
        logins=Logins(store=store, clock=clock, authorization=authorization, scope=base.pool.scope),
        confirmations=Confirmations(clock),
        news=news,
        ab_test=ab_test,
        own_questions=OwnQuestions(base, base.courier, base.spare),
        side_by_side=SideBySide(**asking, room=Room.of(shape(base.model.path), config.serving)),
        notices=Notices(
            store=store,
            clock=clock,
            authorization=authorization,
            connectors=running,
            config=config,
            errors=base.connectors.errors,
        ),
        eraser=eraser,
        thinks=marks.thinks(base.model.path, thinking=config.serving.thinking),
    )
