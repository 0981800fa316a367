"""The connectors of a running goodbot: their start and stop; `connector_host` is what each may ask."""

from __future__ import annotations

import logging
from collections import ChainMap
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

from goodbot.access.authorization import Authorization
from goodbot.access.login import Logins, default_grants
from goodbot.api.completions import NoModel, OwnModel
from goodbot.api.connector import Capability, Connector, ConnectorSpec
from goodbot.api.events import CommandEvent, Event, PressEvent, RatingEvent, Receipt
from goodbot.api.plugins import missing_modules
from goodbot.base.clock import Clock
from goodbot.base.errors import (
    ConfigError,
    GoodbotError,
    MissingExtraError,
    RetriableError,
    boundary,
    unexpected,
)
from goodbot.base.platform_time import PlatformTime
from goodbot.base.suggest import instead
from goodbot.config import Config, Grants
from goodbot.config.secrets import SecretStore
from goodbot.conversation.ingest import Dispatcher
from goodbot.daemon.connector_host import Host
from goodbot.daemon.http.http import Http
from goodbot.store import Store, turns

logger = logging.getLogger(__name__)

_LONGEST_PAUSE = 60.0
"""Seconds between two attempts to reach a platform that is down."""


class Connectors:
    """Builds, starts and stops the connectors, and carries acknowledgements to them."""

    def __init__(
        self,
        config: Config,
        specs: Mapping[str, ConnectorSpec],
        grants: Mapping[str, Grants],
        clock: Clock | None = None,
        http: Http | None = None,
    ) -> None:
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
            {**configured_grants(config, specs), **grants},
            clock,
            local=[name for name, spec in specs.items() if spec.local],
        )
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
                spec, dispatcher, store, clock, self._config.home / "connectors" / name, self, logins, environ
            )
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
