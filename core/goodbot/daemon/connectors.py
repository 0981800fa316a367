# SPDX-License-Identifier: Apache-2.0
"""The connectors of a running goodbot: their start and stop; `connector_host` is what each may ask."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Iterable, Mapping
from importlib import import_module

from goodbot.access.login import default_grants
from goodbot.api.connector import Capability, ConnectorSpec
from goodbot.api.events import Event, RatingEvent
from goodbot.api.registry import registered
from goodbot.base.clock import growing
from goodbot.base.errors import (
    ConfigError,
    GoodbotError,
    MissingExtraError,
    RetriableError,
    boundary,
    unexpected,
)
from goodbot.base.installed import missing_modules
from goodbot.base.suggest import TERMINAL
from goodbot.base.tasks import end_tasks
from goodbot.base.worded import Worded, said_by
from goodbot.commands.services import Services
from goodbot.config import Config, Grants
from goodbot.config.secrets import SecretStore
from goodbot.conversation.connectors import CONNECTING
from goodbot.conversation.ingest import Dispatcher
from goodbot.daemon.connector_host import RunningHost
from goodbot.daemon.features import Features
from goodbot.daemon.http.http import Http
from goodbot.store import reconciling

logger = logging.getLogger(__name__)

_LONGEST_PAUSE = 60.0
"""Seconds between two attempts to reach a platform that is down."""


class ConnectorManager:
    """Builds, starts and stops the connectors, and builds the features, which answer where they do."""

    def __init__(self, services: Services, dispatcher: Dispatcher, http: Http, *, stops_http: bool) -> None:
        """`dispatcher` takes in what each submits."""
        self._services, self._dispatcher = services, dispatcher
        self._http, self._stops_http = http, stops_http
        self._running, self._errors = services.connectors.running, services.connectors.errors
        self._retrying = services.connectors.retrying
        self.features = Features(services)
        self._hosts: dict[str, RunningHost] = {}
        self._answering: set[str] = set()
        """Whose routes are open: those that have started and not stopped."""
        self._tried: dict[str, asyncio.Event] = {}
        """Set once a connector's first start has come to something."""
        self._starting: list[asyncio.Task[None]] = []

    def build(self) -> None:
        """Import and construct what is configured. Raises MissingExtraError, ConfigError."""
        self.features.build()
        config, installed = self._services.config, self._services.plugins.connectors()
        specs = {name: installed[name] for name in self._services.authorization.connectors}
        secrets = [name for spec in specs.values() for name in spec.secrets]
        environ = SecretStore(config.home).environment(secrets)
        for name, spec in sorted(specs.items()):
            if missing_modules(spec.requires):
                raise MissingExtraError(Worded("the {name} connector", name=name), spec.extra or name)
            host = RunningHost(spec, self._services, self._dispatcher, environ)
            _, settings = config.connector(name, spec.settings)
            if missing := [one for one in spec.needs(settings) if not host.secrets.get(one)]:
                none = (
                    "the {name} connector has no token: run `goodbot connect {name}`, or set the environment "
                    "variable {variable}"
                )
                raise ConfigError(Worded(none, name=name, variable=missing[0]))
            module, _, cls = spec.factory.partition(":")
            self._hosts[name], self._tried[name] = host, asyncio.Event()
            self._running[name] = getattr(import_module(module), cls)(host, settings)

    async def start(self) -> None:
        """Start all side by side; returns once those of this machine are up, or have failed, see `tried`.

        One that fails is reported in `errors` and the others run.
        Raises ConfigError when the port for their routes cannot be had.
        """
        if any(Capability.ROUTES in connector.spec.capabilities for connector in self._running.values()):
            await self._http.open()  # first: they may write down where they are
        routes = {name: connector.routes() for name, connector in self._running.items()}
        features = self.features.routes()
        await self._http.mount(routes | features, lambda name: name in features or name in self._answering)
        self._errors.update(dict.fromkeys(self._running, CONNECTING))  # they are told of in this order
        self._starting += [
            asyncio.create_task(self._bring_up(name), name=f"{name}: start") for name in self._running
        ]
        await self.tried(name for name, connector in self._running.items() if connector.spec.local)

    async def tried(self, names: Iterable[str]) -> None:
        """Return once each of these has started or failed to, for now; who is not configured has."""
        for name in names:
            if name in self._tried:
                await self._tried[name].wait()

    async def _start_one(self, name: str) -> float | None:
        """Start one connector; returns after how many seconds to try again, None for never."""
        ids = {"connector": name}
        try:
            await self._running[name].start()
        except RetriableError as error:
            logger.warning("%s did not start, it is tried again: %s", name, error, extra=ids)
            self._errors[name] = Worded("{why} (trying again)", why=said_by(error))
            self._retrying.add(name)
            return error.retry_after
        except GoodbotError as error:
            logger.error("%s did not start: %s", name, error, extra=ids)
            self._errors[name] = said_by(error)
        except Exception as error:
            logger.exception("%s did not start", name, extra=ids)
            self._errors[name] = unexpected(error)
        else:
            self._errors.pop(name, None)
            self._answering.add(name)
        finally:
            self._tried[name].set()
        self._retrying.discard(name)
        return None

    async def _bring_up(self, name: str) -> None:
        """Start it; a platform that is down then is connected to once it is back."""
        tries = 0
        while (wait := await self._start_one(name)) is not None:
            await self._hosts[name].clock.sleep(max(wait, growing(tries, most=_LONGEST_PAUSE)))
            tries += 1

    async def stop(self) -> None:
        """Stop all, also those that are about to start, then their tasks, then what they answer."""
        await end_tasks(*self._starting)
        self._answering.clear()
        for name, connector in self._running.items():
            self._hosts[name].stopping.set()
            with boundary(logger, "stopping %s", name):
                await connector.stop()
            await self._hosts[name].close()
        await (self._http.stop() if self._stops_http else self._http.unmount())

    async def reconcile(self, since: float) -> None:
        """Read the reactions of open turns again, on the platforms that can be asked."""
        for name, connector in self._running.items():
            if Capability.RECONCILE not in connector.spec.capabilities or name in self._errors:
                continue
            store = self._services.store
            newest = await store.read(reconciling.newest)
            open_turns = await store.read(lambda db, n=name: reconciling.open_turns(db, n, since))
            with boundary(logger, "reconciling %s", name):
                if open_turns and (events := await connector.reconcile(open_turns)):
                    # To ask takes minutes perhaps: what was said meanwhile is newer than what was seen.
                    said = await store.read(
                        lambda db, n=name, after=newest: reconciling.said_since(db, n, after)
                    )
                    await self._hosts[name].submit([e for e in events if _seen_on(e) not in said])


def _seen_on(event: Event) -> str | None:
    return event.message_id if isinstance(event, RatingEvent) else None


def configured_grants(config: Config, specs: Mapping[str, ConnectorSpec]) -> dict[str, Grants]:
    """The grants of every configured connector. Raises ConfigError for one that is not installed."""
    grants: dict[str, Grants] = {}
    for name in config.connectors:
        spec = registered(specs, name, "connector", config.where("connectors"), name)
        grants[name] = default_grants(name, config.connector(name, spec.settings)[0])
        if grants[name].rater_groups and Capability.GROUPS not in spec.capabilities:
            none = Worded("{name} has no groups that could be asked for: name the raters", name=name)
            raise config.where(f"connectors.{name}").error("rater_groups", none)
    return grants


def local_owner() -> Mapping[str, Grants]:
    """Whoever can open our 0600 socket owns this goodbot: the terminal's user is an owner."""
    return {TERMINAL: Grants(owners=(str(os.geteuid()),))}
