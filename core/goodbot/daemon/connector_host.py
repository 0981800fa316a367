# SPDX-License-Identifier: Apache-2.0
"""What a connector may ask of a running goodbot."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine, Mapping, Sequence
from typing import Any

from goodbot.access.authorization import WEB
from goodbot.access.inbox import Inbox
from goodbot.api import progress
from goodbot.api.activity import ActivityPage, ActivityWanted, TrailChecked
from goodbot.api.commands import Command, allowed
from goodbot.api.connector import Capability, ConnectorSpec
from goodbot.api.events import Event, Receipt, UserRef, Waiting
from goodbot.api.overview import Overview
from goodbot.api.people import PeoplePage, PeopleWanted
from goodbot.api.queues import QueuesSeen, QueueWanted
from goodbot.api.rated import RatedPage, RatedTaught, RatedTopic, RatedWanted
from goodbot.api.report import ReportSeen
from goodbot.api.settings_page import SettingsSeen, SettingWanted
from goodbot.api.turns import OwnNote, OwnTurn
from goodbot.api.versions import Versions
from goodbot.base.errors import FatalConnectorError, message_of
from goodbot.base.tasks import end_tasks
from goodbot.base.worded import said_by
from goodbot.commands.activity import activity, check_activity
from goodbot.commands.notes import own_notes
from goodbot.commands.overview import overview
from goodbot.commands.people_page import people_page
from goodbot.commands.queues import change_queue, queues_seen
from goodbot.commands.rated import leave_out_here, rated_page, rated_topics
from goodbot.commands.report_page import ReportDesk
from goodbot.commands.services import Services
from goodbot.commands.settings_page import change_setting, settings_seen
from goodbot.commands.settings_restart import restart
from goodbot.commands.taught import taught
from goodbot.commands.versions import versions
from goodbot.config.secrets import Secrets
from goodbot.conversation.ingest import Dispatcher
from goodbot.conversation.own_answers import own_turn
from goodbot.learning import reward_model
from goodbot.store import inbox

logger = logging.getLogger(__name__)


class RunningHost:
    """A running goodbot as one connector sees it: the `goodbot.api.connector.ConnectorHost` of it."""

    def __init__(
        self, spec: ConnectorSpec, services: Services, dispatcher: Dispatcher, environ: Mapping[str, str]
    ) -> None:
        """`dispatcher` takes in what it submits; `environ` is where its secrets are."""
        self.model, self.clock = services.own_model, services.clock
        self.language = services.config.serving.language
        self.secrets = Secrets(spec.secrets, environ)
        self.stopping, self.state_dir = asyncio.Event(), services.config.home / "connectors" / spec.name
        self._name, self._title = spec.name, spec.title or spec.name
        self._services = services
        self._store, self._dispatcher = services.store, dispatcher
        self._authorization, self._logins = services.authorization, services.logins
        self._connectors, self._scheduler = services.connectors, services.scheduler
        self._inbox = Inbox(services.store, services.authorization, reward_model.shown(services))
        self._shows_inbox = Capability.INBOX in spec.capabilities
        self._tasks: set[asyncio.Task[None]] = set()
        self._reports = ReportDesk(services, self.spawn)
        self.state_dir.mkdir(mode=0o700, parents=True, exist_ok=True)

    @property
    def address(self) -> str:
        return self._services.http.address

    @property
    def steady(self) -> bool:
        return self._services.steady.look()

    async def submit(self, events: Sequence[Event], *, cursor: str | None = None) -> tuple[Receipt, ...]:
        for event in events:
            if event.user.connector != self._name or event.channel.connector != self._name:
                raise ValueError(f"{self._name} submitted an event of another connector")
        return await self._dispatcher.submit(events, self._name, cursor, anywhere=self._shows_inbox)

    async def cursor(self) -> str | None:
        return await self._store.read(lambda db: inbox.cursor(db, self._name))

    async def get(self, key: str) -> str | None:
        return await self._store.read(lambda db: inbox.get_value(db, self._name, key))

    async def set(self, key: str, value: str) -> None:
        await self._store.write(lambda db: inbox.set_value(db, self._name, key, value))

    def spawn(self, task: Coroutine[Any, Any, None], name: str) -> asyncio.Task[None]:
        ids = {"connector": self._name}

        async def guarded() -> None:
            try:
                await task
            except FatalConnectorError as error:
                logger.error("%s stopped: %s", self._name, error, extra=ids)
                self._connectors.errors[self._name] = said_by(error)
            except Exception as error:
                logger.exception("%s: %s failed", self._name, name, extra=ids)
                self._connectors.errors[self._name] = f"{name} failed: {message_of(error)}"

        spawned = asyncio.create_task(guarded(), name=f"{self._name}: {name}")
        self._tasks.add(spawned)
        spawned.add_done_callback(self._tasks.discard)
        # A task that is cancelled before its first step never awaits what it was given.
        spawned.add_done_callback(lambda _: task.close())
        return spawned

    def told_time(self, seconds: float) -> None:
        self._connectors.time.note(self._title, seconds, self.clock.now())

    def trouble(self, text: str) -> None:
        self._connectors.trouble(self._name, text)

    async def inbox(
        self,
        user: UserRef,
        *,
        connector: str = "",
        since: float | None = None,
        text: str = "",
        rated: bool = False,
        before: str = "",
        limit: int = 50,
        queue: int = 0,
        unsure: bool = False,
    ) -> Sequence[Waiting]:
        self._require_inbox(user)
        return await self._inbox.page(
            user,
            connector=connector,
            since=since,
            text=text,
            rated=rated,
            before=before,
            limit=limit,
            queue=queue,
            unsure=unsure,
        )

    async def inbox_connectors(self, user: UserRef) -> Sequence[str]:
        self._require_inbox(user)
        return await self._inbox.connectors(user)

    def _require_inbox(self, user: UserRef) -> None:
        if not self._shows_inbox or user.connector != self._name:
            raise ValueError(f"{self._name} declares no INBOX, or asks for somebody else's")

    def learning(self) -> str:
        now = self._scheduler.progress
        return progress.brief(now) if now else ""

    def may_rate(self, user: UserRef) -> bool:
        return self._authorization.may_rate(user)

    def commands(self, user: UserRef) -> Sequence[Command]:
        return allowed(self._authorization.level(user))

    def _for(self, user: UserRef) -> Services:
        """The goodbot, for one of its own people."""
        if user.connector != self._name:
            raise ValueError(f"{self._name} asks for somebody else's")
        return self._services

    async def own_turn(self, user: UserRef, turn: str, *, all_here: bool = False) -> OwnTurn | None:
        authorization = self._for(user).authorization
        return await self._store.read(lambda db: own_turn(db, authorization, user, turn, all_here=all_here))

    async def notes(self, user: UserRef, *words: str) -> Sequence[OwnNote]:
        return await own_notes(self._for(user), user, words)

    async def overview(self, user: UserRef) -> Overview:
        return await overview(self._for(user), user)

    async def versions(self, user: UserRef, *two: int) -> Versions:
        return await versions(self._for(user), user, *two)

    async def rated(self, user: UserRef, wanted: RatedWanted) -> RatedPage:
        return await rated_page(self._for(user), user, wanted)

    async def leave_out(self, user: UserRef, turns: Sequence[str], *, again: bool = False) -> str:
        return await leave_out_here(self._for(user), user, turns, again=again)

    async def activity(self, user: UserRef, wanted: ActivityWanted) -> ActivityPage:
        return await activity(self._for(user), user, wanted)

    async def check_activity(self, user: UserRef) -> TrailChecked:
        return await check_activity(self._for(user), user)

    async def people(self, user: UserRef, wanted: PeopleWanted) -> PeoplePage:
        return await people_page(self._for(user), user, wanted)

    async def queues(self, user: UserRef) -> QueuesSeen:
        return await queues_seen(self._for(user), user)

    async def change_queue(self, user: UserRef, wanted: QueueWanted) -> str:
        return await change_queue(self._for(user), user, wanted)

    async def topics(self, user: UserRef) -> Sequence[RatedTopic]:
        return await rated_topics(self._for(user), user)

    async def taught(self, user: UserRef, turn: str) -> RatedTaught:
        return await taught(self._for(user), user, turn)

    async def report(self, user: UserRef, *, anew: bool = False, ask: bool = False) -> ReportSeen:
        self._for(user)
        return await self._reports.seen(user, anew=anew, ask=ask)

    async def settings(self, user: UserRef) -> SettingsSeen:
        return await settings_seen(self._for(user), user)

    async def change_setting(self, user: UserRef, wanted: SettingWanted) -> str:
        return await change_setting(self._for(user), user, wanted)

    async def begin_anew(self, user: UserRef) -> str:
        return await restart(self._for(user), user)

    async def log_in(self, code: str) -> str:
        if self._name != WEB:
            raise ValueError(f"there are no codes for {self._name}")
        return await self._logins.redeem(code)

    async def close(self) -> None:
        """Cancel the connector's tasks."""
        self.stopping.set()
        await end_tasks(*self._tasks)
