# SPDX-License-Identifier: Apache-2.0
"""A whole goodbot in this process, beside a chat platform on loopback."""

from __future__ import annotations

import contextlib
import os
from collections.abc import AsyncGenerator, Mapping
from pathlib import Path
from typing import Any
from unittest import mock

from goodbot.base.clock import Clock
from goodbot.config import Config, ModelConfig, ServingConfig, TrainingConfig
from goodbot.daemon.app import App, open_plugins
from goodbot.learning.idle import Readings

from tests.core.builders import Fake, plugins


@contextlib.asynccontextmanager
async def goodbot(
    home: Path,
    plugin: Any,
    section: Mapping[str, Any],
    environ: Mapping[str, str],
    *,
    fake: Fake | None = None,
    clock: Clock | None = None,
    serving: Mapping[str, Any] | None = None,
    **training: Any,
) -> AsyncGenerator[App]:
    """Start it in `home`, with `[connectors.NAME]` as `section` says, on a `fake` model or the tiny one.

    It trains on command, unless `training` says otherwise; what else the machine does, it does not
    look at.
    """
    spec = plugin.register_connector()
    config = Config(
        home=home,
        model=ModelConfig(path=str(fake.path)) if fake else ModelConfig(),
        serving=ServingConfig(
            **{"history": 0, "messages_per_minute": 10_000, "ask": "never", **(serving or {})}
        ),
        training=TrainingConfig(
            **{"schedule": "manual", "min_ratings": 8, "held_out": 2, "idle_seconds": 0.0, **training}
        ),
        connectors={spec.name: section},
    )
    host = plugins() if fake else open_plugins(config)
    if fake:
        host.register(plugin, spec.name)
    with mock.patch.dict(os.environ, environ):
        async with App.open(
            config, host, clock=clock, grants={}, demo_model=fake is None, machine=_at_leisure
        ) as app:
            assert app.connectors.errors == {}
            yield app


def _at_leisure(_: bool) -> Readings:
    return Readings()
