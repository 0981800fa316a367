# SPDX-License-Identifier: Apache-2.0
"""The features that are switched on: each is made at start, heard, and ended with the rest."""

from __future__ import annotations

import logging
from collections.abc import Coroutine, Iterator, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

from goodbot.api.feature import Feature, FeatureSpec, Figures
from goodbot.api.registry import registered
from goodbot.base.errors import ConfigError, MissingExtraError, boundary
from goodbot.base.installed import missing_modules
from goodbot.commands.services import Services
from goodbot.config.secrets import Secrets, SecretStore
from goodbot.config.toml import section
from goodbot.daemon.figures import figures

if TYPE_CHECKING:
    from aiohttp.web import AbstractRouteDef

logger = logging.getLogger(__name__)


class Looking:
    """One feature's view of the core; see `goodbot.api.feature.FeatureHost`."""

    def __init__(self, services: Services, secrets: Secrets) -> None:
        self.clock, self.secrets = services.clock, secrets
        self._services = services

    async def figures(self) -> Figures:
        return await figures(self._services)


class Features:
    """All that `[features.NAME]` names, by name."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._made: dict[str, Feature] = {}

    def build(self) -> None:
        """Import and construct them. Raises ConfigError, MissingExtraError."""
        config, plugins = self._services.config, self._services.plugins
        specs = plugins.features()
        for name in sorted(config.features):
            spec = registered(specs, name, "feature", config.where("features"), name)
            settings = section(spec.settings, config.features[name], config.where(f"features.{name}"))
            module, _, cls = spec.factory.partition(":")
            host = Looking(self._services, self._secrets(spec))
            made = getattr(import_module(module), cls)(host, settings)
            plugins.attach(made)
            self._made[name] = made

    def routes(self) -> dict[str, Sequence[AbstractRouteDef]]:
        """What each answers over HTTP, by the name of its section."""
        return {f"features.{name}": feature.routes() for name, feature in self._made.items()}

    def work(self) -> Iterator[tuple[Coroutine[Any, Any, None], str]]:
        """What each does as long as goodbot runs, and what its task is called."""
        for name, feature in self._made.items():
            yield _guarded(name, feature), f"feature {name}"

    def _secrets(self, spec: FeatureSpec) -> Secrets:
        if missing_modules(spec.requires):
            raise MissingExtraError(f"[features.{spec.name}]", spec.extra or spec.name)
        environ = SecretStore(self._services.config.home).environment(spec.secrets)
        secrets = Secrets(spec.secrets, environ)
        if missing := secrets.missing():
            raise ConfigError(
                f"[features.{spec.name}] needs {missing[0]}: set it in the environment, or in "
                f"{SecretStore(self._services.config.home).path}"
            )
        return secrets


async def _guarded(name: str, feature: Feature) -> None:
    with boundary(logger, "the feature %s", name):
        await feature.run()
