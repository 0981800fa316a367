"""The connectors of a running goodbot: what each may ask of the core, and their start and stop."""

from __future__ import annotations

import asyncio
import logging
from collections import ChainMap
from collections.abc import Callable, Coroutine, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from goodbot.access.authorization import WEB, Authorization
from goodbot.access.inbox import Inbox
from goodbot.access.login import Logins, default_grants
from goodbot.api.completions import NoModel, OwnModel
from goodbot.api.connector import Capability, Connector, ConnectorSpec
from goodbot.api.events import (
    CommandEvent,
    Event,
    PressEvent,
    RatingEvent,
    Receipt,
    UserRef,
    Waiting,
)
from goodbot.api.plugins import missing_modules
from goodbot.api.turns import OwnTurn
from goodbot.base.clock import Clock
from goodbot.base.errors import (
    ConfigError,
    FatalConnectorError,
    GoodbotError,
    MissingExtraError,
    RetriableError,
    boundary,
    message_of,
    unexpected,
)
from goodbot.base.platform_time import PlatformTime
from goodbot.base.suggest import instead
from goodbot.config import Config, Grants
from goodbot.config.secrets import Secrets, SecretStore
from goodbot.conversation.ingest import Dispatcher
from goodbot.conversation.own_answers import own_turn
from goodbot.daemon.http.http import Http
from goodbot.learning.training import progress
from goodbot.store import Store, inbox, turns

logger = logging.getLogger(__name__)

_LONGEST_PAUSE = 60.0
"""Seconds between two attempts to reach a platform that is down."""


class Host:
    """One connector's view of the core; see `goodbot.api.connector.ConnectorHost`."""

    def __init__(
        self, spec: ConnectorSpec, dispatcher: Dispatcher, store: Store, clock: Clock, state_dir: Path,
        connectors: Connectors, logins: Logins, environ: Mapping[str, str],
    ) -> None:  # fmt: skip
        self.address = connectors.http.address
        self.model = connectors.model
        self._progress = connectors.progress
        self.clock = clock
        self.secrets = Secrets(spec.secrets, environ)
        self.stopping, self.state_dir = asyncio.Event(), state_dir
        self._name = spec.name
        self._dispatcher, self._store = dispatcher, store
        self._errors, self._troubles = connectors.errors, connectors.troubles
        self._time, self._title = connectors.time, spec.title or spec.name
        self._authorization = connectors.authorization
        self._inbox = Inbox(store, connectors.authorization)
        self._shows_inbox = Capability.INBOX in spec.capabilities
        self._logins = logins
        self._tasks: set[asyncio.Task[None]] = set()
        state_dir.mkdir(mode=0o700, parents=True, exist_ok=True)

    async def submit(
        self, events: Sequence[Event], *, cursor: str | None = None
    ) -> tuple[Receipt, ...]:
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
                self._errors[self._name] = str(error)
            except Exception as error:
                logger.exception("%s: %s failed", self._name, name, extra=ids)
                self._errors[self._name] = f"{name} failed: {message_of(error)}"

        spawned = asyncio.create_task(guarded(), name=f"{self._name}: {name}")
        self._tasks.add(spawned)
        spawned.add_done_callback(self._tasks.discard)
        # A task that is cancelled before its first step never awaits what it was given.
        spawned.add_done_callback(lambda _: task.close())
        return spawned

    def told_time(self, seconds: float) -> None:
        self._time.note(self._title, seconds, self.clock.now())

    def trouble(self, text: str) -> None:
        if text == self._troubles.get(self._name, ""):
            return
        if text:
            self._troubles[self._name] = text
            logger.warning("%s: %s", self._name, text, extra={"connector": self._name})
        else:
            del self._troubles[self._name]
            logger.info("%s works again", self._name, extra={"connector": self._name})

    async def inbox(
        self, user: UserRef, *, connector: str = "", since: float | None = None, text: str = "",
        rated: bool = False, before: str = "", limit: int = 50,
    ) -> Sequence[Waiting]:  # fmt: skip
        self._require_inbox(user)
        return await self._inbox.page(
            user, connector=connector, since=since, text=text, rated=rated, before=before,
            limit=limit,
        )  # fmt: skip

    async def inbox_connectors(self, user: UserRef) -> Sequence[str]:
        self._require_inbox(user)
        return await self._inbox.connectors(user)

    def _require_inbox(self, user: UserRef) -> None:
        if not self._shows_inbox or user.connector != self._name:
            raise ValueError(f"{self._name} declares no INBOX, or asks for somebody else's")

    def learning(self) -> str:
        now = self._progress()
        return progress.brief(now) if now else ""

    def may_rate(self, user: UserRef) -> bool:
        return self._authorization.may_rate(user)

    async def own_turn(self, user: UserRef, turn: str, *, all_here: bool = False) -> OwnTurn | None:
        if user.connector != self._name:
            raise ValueError(f"{self._name} asks for somebody else's")
        return await self._store.read(
            lambda db: own_turn(db, self._authorization, user, turn, all_here=all_here)
        )

    async def log_in(self, code: str) -> str:
        if self._name != WEB:
            raise ValueError(f"there are no codes for {self._name}")
        return await self._logins.redeem(code)

    async def close(self) -> None:
        """Cancel the connector's tasks."""
        self.stopping.set()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


class Connectors:
    """Builds, starts and stops the connectors, and carries acknowledgements to them."""

    def __init__(
        self, config: Config, specs: Mapping[str, ConnectorSpec], grants: Mapping[str, Grants],
        clock: Clock | None = None, http: Http | None = None,
    ) -> None:  # fmt: skip
        """`http` is the process's, which outlives us; without one, ours is stopped with us."""
        self._config = config
        self.http = http or Http(config.http, home=config.home)
        self._stops_http = http is None
        self._hosts: dict[str, Host] = {}
        self._answering: set[str] = set()
        """Whose routes are open: those that have started and not stopped."""
        self.running: dict[str, Connector] = {}
        self.errors: dict[str, str] = {}
        """Why a connector did not start, or has stopped."""
        self.troubles: dict[str, str] = {}
        """Why one that runs does not work at the moment."""
        self.time = PlatformTime()
        self.problems: Mapping[str, str] = ChainMap(self.errors, self.troubles)
        self.authorization = Authorization(
            {**configured_grants(config, specs), **grants}, clock,
            local=[name for name, spec in specs.items() if spec.local],
        )  # fmt: skip
        self.model: OwnModel = NoModel()
        """What answers, set before `build`."""
        self.progress: Callable[[], Mapping[str, Any] | None] = lambda: None
        """What the training under way said last, set before `build`."""
        self._specs = {name: specs[name] for name in {*config.connectors, *grants}}

    def build(self, dispatcher: Dispatcher, store: Store, clock: Clock, logins: Logins) -> None:
        """Import and construct each configured connector. Raises MissingExtraError, ConfigError."""
        names = [name for spec in self._specs.values() for name in spec.secrets]
        environ = SecretStore(self._config.home).environment(names)
        for name, spec in sorted(self._specs.items()):
            if missing_modules(spec.requires):
                raise MissingExtraError(f"the {name} connector", spec.extra or name)
            host = Host(
                spec, dispatcher, store, clock, self._config.home / "connectors" / name, self, logins,
                environ,
            )  # fmt: skip
            _, settings = self._config.connector(name, spec.settings)
            if missing := [one for one in spec.needs(settings) if not host.secrets.get(one)]:
                raise ConfigError(
                    f"the {name} connector has no token: run `goodbot connect {name}`, or set the "
                    f"environment variable {missing[0]}"
                )
            module, _, cls = spec.factory.partition(":")
            self._hosts[name] = host
            self.running[name] = getattr(import_module(module), cls)(host, settings)

    async def start(self) -> None:
        """Start all; one that fails is reported in `errors` and the others run.

        Raises ConfigError when the port for their routes cannot be had.
        """
        routes = {name: connector.routes() for name, connector in self.running.items()}
        await self.http.mount(routes, self._answering.__contains__)
        for name in self.running:
            if (wait := await self._start_one(name)) is not None:
                self._hosts[name].spawn(self._keep_trying(name, wait), "start")

    async def _start_one(self, name: str) -> float | None:
        """Start one connector; returns after how many seconds to try again, None for never."""
        ids = {"connector": name}
        try:
            await self.running[name].start()
        except RetriableError as error:
            logger.warning("%s did not start, it is tried again: %s", name, error, extra=ids)
            self.errors[name] = f"{error} (trying again)"
            return error.retry_after
        except GoodbotError as error:
            logger.error("%s did not start: %s", name, error, extra=ids)
            self.errors[name] = str(error)
        except Exception as error:
            logger.exception("%s did not start", name, extra=ids)
            self.errors[name] = unexpected(error)
        else:
            self.errors.pop(name, None)
            self._answering.add(name)
        return None

    async def _keep_trying(self, name: str, wait: float | None) -> None:
        """A platform that was down when we started is connected to once it is back."""
        pause = 1.0
        while wait is not None:
            await self._hosts[name].clock.sleep(max(wait, pause))
            pause = min(2 * pause, _LONGEST_PAUSE)
            wait = await self._start_one(name)

    async def stop(self) -> None:
        """Stop all, then their tasks, then what they answer."""
        self._answering.clear()
        for name, connector in self.running.items():
            self._hosts[name].stopping.set()
            with boundary(logger, "stopping %s", name):
                await connector.stop()
            await self._hosts[name].close()
        await (self.http.stop() if self._stops_http else self.http.unmount())

    async def reconcile(self, store: Store, since: float) -> None:
        """Read the reactions of open turns again, on the platforms that can be asked."""
        for name, connector in self.running.items():
            if Capability.RECONCILE not in connector.spec.capabilities or name in self.errors:
                continue
            open_turns = await store.read(lambda db, n=name: turns.open_turns(db, n, since))
            with boundary(logger, "reconciling %s", name):
                if open_turns and (events := await connector.reconcile(open_turns)):
                    await self._hosts[name].submit(events)

    async def acknowledge(self, event: Event, receipt: Receipt) -> None:
        """Let the connector tell that person what became of their rating or command."""
        connector = self.running.get(event.user.connector)
        if connector is not None and (
            receipt.text or isinstance(event, (RatingEvent, CommandEvent, PressEvent))
        ):
            with boundary(logger, "acknowledging on %s", event.user.connector):
                await connector.acknowledge(event, receipt)


def configured_grants(config: Config, specs: Mapping[str, ConnectorSpec]) -> dict[str, Grants]:
    """The grants of every configured connector. Raises ConfigError for one that is not installed."""
    grants: dict[str, Grants] = {}
    for name in config.connectors:
        if name not in specs:
            raise config.where("connectors").error(
                name, f"no connector is named {name!r}; {instead(name, specs)}"
            )
        grants[name] = default_grants(name, config.connector(name, specs[name].settings)[0])
        if grants[name].rater_groups and Capability.GROUPS not in specs[name].capabilities:
            raise config.where(f"connectors.{name}").error(
                "rater_groups", f"{name} has no groups that could be asked for: name the raters"
            )
    return grants
