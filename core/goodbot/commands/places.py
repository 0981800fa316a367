# SPDX-License-Identifier: Apache-2.0
"""Where people can talk to this bot, or could, and what is typed at its machine to connect it there.

A page only names the command. Whoever has an owner's browser is not at the machine for that: connecting
takes secrets, installs packages and decides who owns the bot.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING

from goodbot.api.settings_page import PlaceSeen
from goodbot.api.texts import reworded
from goodbot.base.suggest import TERMINAL
from goodbot.base.text import begun
from goodbot.config import Config, default_home

if TYPE_CHECKING:
    from goodbot.commands.services import Services


def places(services: Services, language: str) -> Sequence[PlaceSeen]:
    """Those that are connected first, then by name."""
    running, wrong = services.connectors.running, services.connectors.problems
    found = [
        PlaceSeen(
            name=name,
            title=begun(reworded(spec.title, language)),
            connected=name in services.config.connectors,
            works=name in running and name not in wrong,
            command=shlex.join([*program(services.config), "connect", name, "--browser"]),
        )
        for name, spec in services.plugins.connectors().items()
        if spec.setup and name != TERMINAL
    ]
    return sorted(found, key=lambda one: (not one.connected, one.title.casefold()))


def program(config: Config) -> list[str]:
    """How this goodbot is called at its machine: another directory or file is named."""
    home = [] if config.home == default_home() else ["--home", str(config.home)]
    usual = config.path is None or config.path == config.home / "config.toml"
    return ["goodbot", *home, *([] if usual else ["--config", str(config.path)])]
