# SPDX-License-Identifier: Apache-2.0
"""Whether all that is plugged in takes a changed config, too, as at the next start."""

from __future__ import annotations

from typing import TYPE_CHECKING

from goodbot.api.backend import BackendSpec
from goodbot.api.registry import choose_backend, reward_policy
from goodbot.api.server import ServerSpec
from goodbot.commands import report_parts
from goodbot.config import Config
from goodbot.config.toml import section
from goodbot.conversation import judging
from goodbot.inference.servers import choice
from goodbot.learning.training import anchors, remote
from goodbot.learning.training.settings import training_settings

if TYPE_CHECKING:
    from goodbot.commands.services import Services


def require_usable(services: Services, config: Config) -> None:
    """Ask each part for its own section. Raises GoodbotError: the next start would fail."""
    plugins, backend = services.plugins, _backend(services, config)
    training_settings(config, backend, plugins.objectives(), services.model.path)
    reward_policy(plugins, config.training.reward)
    anchors.load(config)
    config.serving_settings(_server(services, config).settings)
    if config.judge.by:
        config.judge_settings(judging.choose(config, plugins.judges()).settings)
    for name in config.connectors:
        if connector := plugins.connectors().get(name):
            config.connector(name, connector.settings)
    _require_sections(services, config)
    report_parts.check(config, plugins)


def _backend(services: Services, config: Config) -> BackendSpec:
    wanted = config.training.backend
    if wanted in ("auto", services.config.training.backend):
        return services.backend
    backend = choose_backend(services.plugins.backends(), wanted, config.where("training"))
    remote.allowed(config, backend)
    return backend


def _server(services: Services, config: Config) -> ServerSpec:
    now, wanted = services.config.serving, config.serving
    same = (now.server, now.url, now.hosts) == (wanted.server, wanted.url, wanted.hosts)
    return services.spec if same else choice.choose(config, services.plugins.servers())


def _require_sections(services: Services, config: Config) -> None:
    plugins = services.plugins
    kinds = {"features": plugins.features(), "tracking": plugins.trackers(), "filters": plugins.filters()}
    for kind, specs in kinds.items():
        for name, table in getattr(config, kind).items():
            if spec := specs.get(name):
                section(spec.settings, table, config.where(f"{kind}.{name}"))
