# SPDX-License-Identifier: Apache-2.0
"""What every part of one goodbot works with: made once, whole, and never changed."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from goodbot.access.authorization import Authorization
from goodbot.api import marks
from goodbot.api.backend import BackendSpec
from goodbot.api.events import Message
from goodbot.api.model import ResolvedModel
from goodbot.api.plugins import PluginHost
from goodbot.api.rewards import RewardPolicy
from goodbot.api.server import Server, ServerSpec
from goodbot.base import sampling
from goodbot.base.clock import Clock, Steady
from goodbot.base.sampling import Sampling
from goodbot.base.spawn import child_environment
from goodbot.config import Config, clear
from goodbot.config.sections import NotesWhere
from goodbot.inference.servers import choice
from goodbot.learning.adapters.formats import Formats
from goodbot.learning.adapters.registry import AdapterRegistry
from goodbot.learning.tracking.observer import Tracking
from goodbot.learning.training.filtering import Filtering
from goodbot.learning.training.settings import training_settings
from goodbot.store import Store
from goodbot.store.pools import SHARED, Pool

_Registry = TypeVar("_Registry", bound=AdapterRegistry)


@dataclass(frozen=True, kw_only=True)
class Chosen:
    """What a config comes to: nothing is opened yet, and nothing runs."""

    config: Config
    plugins: PluginHost
    clock: Clock
    authorization: Authorization
    backend: BackendSpec
    policy: RewardPolicy
    anchors: Sequence[Sequence[Message]]
    tracking: Tracking
    filtering: Filtering
    spec: ServerSpec
    """The kind of `server`."""
    server: Server
    model: ResolvedModel
    sampling: Sampling
    settings: Mapping[str, Any]
    """`[training.settings]` for the model, complete."""
    learning: str
    """How boldly it learns and what decided that, in one line."""
    pool: Pool
    """What may be learnt from on the model."""

    @property
    def notes_where(self) -> NotesWhere:
        """In which chats notes are kept: `never` also for a model whose template has no system message."""
        fits = marks.takes_system(marks.chat_template(self.model.path))
        return self.config.serving.notes if fits else "never"


@dataclass(frozen=True, kw_only=True)
class Core(Chosen):
    """The same, on an open store."""

    store: Store
    started_at: float
    restart: asyncio.Event
    """Set when this goodbot is to stop, and another on the config as it is then to take over."""
    steady: Steady
    """Asked before anything is deleted for its age."""

    def on(self, model: ResolvedModel, limits: Mapping[str, int]) -> Core:
        """The same on another base model, with a server of its own; `limits` win over its settings."""
        settings, _ = training_settings(self.config, self.backend, self.plugins.objectives(), model.path)
        return dataclasses.replace(
            self,
            model=model,
            settings={**dataclasses.asdict(settings), **limits},
            sampling=sampling.of(model.path, self.config.serving.drawn_with),
            server=serve(self.config, self.spec, self.backend, self.clock, model),
            pool=pool(self.config, self.authorization, model),
        )

    def versions(self, kind: type[_Registry], share: float = 0.0) -> _Registry:
        """The versions of the model and the server that answers with them."""
        return kind(
            store=self.store,
            server=self.server,
            root=self.config.home / "adapters",
            plugins=self.plugins,
            clock=self.clock,
            scope=self.pool.scope,
            model=self.model,
            share=share,
        )


def pool(config: Config, authorization: Authorization, model: ResolvedModel) -> Pool:
    """What may be learnt from on a model."""
    owners = tuple(authorization.owners(granted=False))
    return Pool(scope=SHARED, model=model.name, owners=owners, others=config.training.from_others)


def serve(
    config: Config, spec: ServerSpec, backend: BackendSpec, clock: Clock, model: ResolvedModel
) -> Server:
    """A driver of the configured server. Raises ConfigError for its settings, StoreError."""
    environ = child_environment()
    adapters = clear.of(config.home / "adapters")
    formats = Formats(adapters, model.path, environ)
    return choice.make(
        *(spec, config),
        model=model,
        backend=backend,
        clock=clock,
        environ=environ,
        adapters=adapters,
        convert=formats.convert,
    )
