"""What is built once for each base model: its server, its registry, its trainer."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

from goodbot.access.authorization import Authorization
from goodbot.api.backend import BackendSpec
from goodbot.api.model import ResolvedModel
from goodbot.api.plugins import PluginHost, reward_policy
from goodbot.api.server import Server
from goodbot.base.clock import Clock
from goodbot.base.spawn import child_environment
from goodbot.base.suggest import TERMINAL
from goodbot.config import Config, Grants
from goodbot.inference.servers import choice
from goodbot.learning.adapters import AdapterRegistry
from goodbot.learning.adapters.formats import Formats
from goodbot.learning.model_switch import Rehearsal
from goodbot.learning.training import anchors
from goodbot.learning.training.settings import training_settings
from goodbot.learning.training.trainer import Trainer
from goodbot.store import Store, training_pool

if TYPE_CHECKING:
    from goodbot.learning.training.memory_sharing import MemorySharing

SCOPE = "default"


def local_owner() -> Mapping[str, Grants]:
    """Whoever can open our 0600 socket owns this goodbot: the terminal's user is an owner."""
    return {TERMINAL: Grants(owners=(str(os.geteuid()),))}


class Assembly:
    """Builds by one config; `store` and `memory` are set once they are there."""

    store: Store
    memory: MemorySharing

    def __init__(
        self,
        config: Config,
        plugins: PluginHost,
        *,
        clock: Clock,
        backend: BackendSpec,
        authorization: Authorization,
    ) -> None:
        """Raises ConfigError and MissingExtraError for what is configured and is not there."""
        self._config = config
        self._plugins = plugins
        self._clock = clock
        self._backend = backend
        self._authorization = authorization
        self.policy = reward_policy(plugins, config.training.reward, config.where("training"))
        self._anchors = anchors.load(config)
        self.server_spec = choice.choose(config, plugins.servers())

    def pool(self, model: ResolvedModel) -> training_pool.Pool:
        """What may be learnt from on a model."""
        owners = tuple(self._authorization.owners(granted=False))
        return training_pool.Pool(
            scope=SCOPE, model=model.name, owners=owners, others=self._config.training.from_others
        )

    def server(self, model: ResolvedModel) -> Server:
        """A driver of the configured server."""
        environ = child_environment()
        formats = Formats(self._config.home / "adapters", model.path, environ)
        return choice.make(
            self.server_spec,
            self._config,
            model=model,
            backend=self._backend,
            clock=self._clock,
            environ=environ,
            convert=formats.convert,
        )

    def registry(self, model: ResolvedModel, server: Server) -> AdapterRegistry:
        """The versions of a model and the server that answers with them."""
        return AdapterRegistry(
            store=self.store,
            server=server,
            root=self._config.home / "adapters",
            plugins=self._plugins,
            clock=self._clock,
            scope=SCOPE,
            model=model,
            share=self._config.serving.canary,
        )

    def trainer(
        self,
        model: ResolvedModel,
        registry: AdapterRegistry,
        limits: Mapping[str, int] | None = None,
        ask: str = "never",
    ) -> Trainer:
        """What trains a model; `limits` win over its settings, `ask` as in `[serving]`."""
        config = self._config
        settings, _ = training_settings(
            config, self._backend, self._plugins.objectives(), model.path
        )  # by its own shape
        return Trainer(
            store=self.store,
            registry=registry,
            plugins=self._plugins,
            clock=self._clock,
            backend=self._backend,
            policy=self.policy,
            config=config.training,
            settings={**dataclasses.asdict(settings), **(limits or {})},
            model=model.path,
            seed=config.serving.seed,
            pool=self.pool(model),
            staging=config.home / "staging",
            anchors=self._anchors,
            ask=ask,
            memory=self.memory,
        )

    def rehearse(self, model: ResolvedModel, limits: Mapping[str, int]) -> tuple[Rehearsal, Trainer]:
        """What another base model is tried and trained with while ours answers."""
        registry = Rehearsal(
            store=self.store,
            server=self.server(model),
            root=self._config.home / "adapters",
            plugins=self._plugins,
            clock=self._clock,
            scope=SCOPE,
            model=model,
        )
        return registry, self.trainer(model, registry, limits)
