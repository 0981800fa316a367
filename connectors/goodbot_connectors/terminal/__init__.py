# SPDX-License-Identifier: Apache-2.0
"""goodbot in a terminal: `goodbot chat` talks to this connector's own Unix socket."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from typing import Any

from goodbot import Capability, ConnectorSpec, hookimpl


@dataclass(frozen=True, kw_only=True)
class TerminalSettings:
    """`[connectors.terminal]` needs no settings: it is always there."""


SPEC = ConnectorSpec(
    name="terminal",
    factory="goodbot_connectors.terminal.connector:TerminalConnector",
    capabilities=Capability.BUTTONS | Capability.STREAMING | Capability.EPHEMERAL,
    settings=TerminalSettings,
    message_limit=100_000,
    local=True,
)


@hookimpl
def register_connector() -> ConnectorSpec:
    """Offer the terminal."""
    return SPEC


@hookimpl
def register_commands(subparsers: argparse._SubParsersAction[Any]) -> None:
    """Add `goodbot chat`."""
    parser = subparsers.add_parser("chat", help="talk to the bot here and rate its answers")
    parser.add_argument("--demo-model", action="store_true", help="talk to the tiny demonstration model")
    parser.set_defaults(run="goodbot_connectors.terminal.client:main", group="talk", first=True)
