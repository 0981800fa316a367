# SPDX-License-Identifier: Apache-2.0
"""The features that are switched on: each is made at start, heard, and ended with the rest."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine, Iterator, Sequence
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

from goodbot.api.feature import Feature, FeatureSpec, Figures, Happened, HappenedWanted
from goodbot.api.registry import registered
from goodbot.base.clock import growing
from goodbot.base.errors import ConfigError, GoodbotError, MissingExtraError, UsageError, unexpected
from goodbot.base.installed import missing_modules
from goodbot.base.worded import Worded, said_by
from goodbot.commands import report_parts
from goodbot.commands.base import Result
from goodbot.commands.services import Services
from goodbot.config.secrets import Secrets, SecretStore
from goodbot.config.toml import section
from goodbot.daemon.figures import figures
from goodbot.learning import reward_model
from goodbot.store import happened, inbox

if TYPE_CHECKING:
    from aiohttp.web import AbstractRouteDef

logger = logging.getLogger(__name__)

_LONGEST_PAUSE = 300.0
"""Seconds before a feature that has failed again is started anew."""
_WELL_SECONDS = 60.0
"""How long one runs before it counts as well again."""


class Looking:
    """One feature's view of the core; see `goodbot.api.feature.FeatureHost`."""

    def __init__(self, services: Services, name: str, secrets: Secrets) -> None:
        self.clock, self.secrets = services.clock, secrets
        self._services, self._store, self._pool = services, services.store, services.pool
        self._name, self._keeps_as = name, f"features.{name}"

    async def figures(self) -> Figures:
        return await figures(self._services)

    async def happened(self, wanted: HappenedWanted, mark: str) -> tuple[Happened | None, str]:
        return await self._store.read(lambda db: happened.after(db, self._pool, wanted, mark))

    async def waiting(self, wanted: HappenedWanted, mark: str) -> int:
        return await self._store.read(lambda db: happened.waiting(db, self._pool, wanted, mark))

    async def get(self, key: str) -> str | None:
        return await self._store.read(lambda db: inbox.get_value(db, self._keeps_as, key))

    async def set(self, key: str, value: str) -> None:
        await self._store.write(lambda db: inbox.set_value(db, self._keeps_as, key, value))

    async def predict(self) -> str:
        return await reward_model.predict(self._services)

    def trouble(self, part: str, text: str) -> None:
        self._services.connectors.trouble(f"{self._name}.{part}", text)


def _imported(spec: FeatureSpec, module: str) -> ModuleType:
    """Its module. Raises MissingExtraError where what it needs is there in part, or is too old."""
    try:
        return import_module(module)
    except ImportError as error:
        needs = {name.partition(".")[0] for name in spec.requires}
        if (error.name or "").partition(".")[0] not in needs:
            raise
        raise MissingExtraError(f"[features.{spec.name}]", spec.extra or spec.name) from error


class Features:
    """All that `[features.NAME]` names, by name."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._made: dict[str, Feature] = {}

    def build(self) -> None:
        """Import and construct them. Raises ConfigError, MissingExtraError."""
        config, plugins = self._services.config, self._services.plugins
        report_parts.check(config, plugins)
        specs = plugins.features()
        for name in sorted(config.features):
            spec = registered(specs, name, "feature", config.where("features"), name)
            settings = section(spec.settings, config.features[name], config.where(f"features.{name}"))
            module, _, cls = spec.factory.partition(":")
            host = Looking(self._services, name, self._secrets(spec))
            made = getattr(_imported(spec, module), cls)(host, settings)
            plugins.attach(made)
            self._made[name] = made

    def routes(self) -> dict[str, Sequence[AbstractRouteDef]]:
        """What each answers over HTTP, by the name of its section."""
        return {f"features.{name}": feature.routes() for name, feature in self._made.items()}

    def work(self) -> Iterator[tuple[Coroutine[Any, Any, None], str]]:
        """What each does as long as goodbot runs, and what its task is called."""
        for name, feature in self._made.items():
            yield self._kept_up(name, feature), f"feature {name}"

    async def asked(self, name: str, *words: str) -> Result:
        """What a feature's own command says. Raises UsageError, GoodbotError."""
        if name not in self._made:
            off = "[features.{name}] is not in the config: it says how to switch {name} on"
            raise UsageError(Worded(off, name=name))
        text, data = await self._made[name].asked(words)
        return Result(text=text, data=data)

    def _secrets(self, spec: FeatureSpec) -> Secrets:
        if missing_modules(spec.requires):
            raise MissingExtraError(f"[features.{spec.name}]", spec.extra or spec.name)
        environ = SecretStore(self._services.config.home).environment(spec.secrets)
        secrets = Secrets(spec.secrets, environ)
        if missing := secrets.missing():
            needs = "[features.{name}] needs {variable}: set it in the environment, or in {path}"
            path = SecretStore(self._services.config.home).path
            raise ConfigError(Worded(needs, name=spec.name, variable=missing[0], path=path))
        return secrets

    async def _kept_up(self, name: str, feature: Feature) -> None:
        """Run it; one that fails is started again, ever more slowly, and nothing else suffers from it."""
        clock, tries = self._services.clock, 0
        while True:
            well = asyncio.create_task(self._well(name), name=f"feature {name}: well")
            try:
                await feature.run()
                return self._trouble(name, "")
            except Exception as error:
                logger.exception("the feature %s", name)
                why = said_by(error) if isinstance(error, GoodbotError) else unexpected(error)
                self._trouble(name, Worded("it has failed and is started again: {why}", why=why))
            finally:
                tries = 0 if well.done() else tries
                well.cancel()
            await clock.sleep(growing(tries, most=_LONGEST_PAUSE))
            tries += 1

    async def _well(self, name: str) -> None:
        await self._services.clock.sleep(_WELL_SECONDS)
        self._trouble(name, "")

    def _trouble(self, name: str, text: str) -> None:
        self._services.connectors.trouble(name, text)
