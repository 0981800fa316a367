# SPDX-License-Identifier: Apache-2.0
"""What a plugin's own command gets of the program: `arguments.program`."""

from __future__ import annotations

import argparse
import asyncio
from typing import TYPE_CHECKING

from goodbot.api.connector import ConnectorSpec
from goodbot.api.control import call
from goodbot.api.setup import ConnectorSetup, GoodbotProgram
from goodbot.api.texts.terminal import phrase
from goodbot.base.errors import UsageError
from goodbot.config.secrets import Secrets

if TYPE_CHECKING:
    from goodbot.config import Grants


class ForPlugins(GoodbotProgram):
    """Of one call."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        self._home, self._path = arguments.home, arguments.config

    def connector(self, spec: ConnectorSpec) -> tuple[Grants, ConnectorSetup]:
        from goodbot import config
        from goodbot.cli.connector_setup import prepared, setup_class

        settings = config.load(self._home, self._path)
        if spec.name not in settings.connectors:
            raise UsageError(phrase("connect_first", name=spec.name))
        grants, own = settings.connector(spec.name, spec.settings)
        setup = setup_class(spec)
        assert setup is not None  # noqa: S101  its own plugin asks
        return grants, prepared(setup, Secrets((), {}), own, settings)

    def run(self, command: str, *args: str) -> str:
        answer = call(self._home, command, list(args))
        if answer is None:
            from goodbot import config
            from goodbot.cli import offline

            settings = config.load(self._home, self._path)
            answer = asyncio.run(offline.run(settings, command, list(args), server=False))
        return str(answer["text"])
