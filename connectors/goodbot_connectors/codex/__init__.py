# SPDX-License-Identifier: Apache-2.0
"""Codex, OpenAI's coding agent in the terminal: its hooks call us, and `+1` in its prompt rates an answer."""

from __future__ import annotations

from goodbot.api.connector import Capability, ConnectorSpec
from goodbot.api.hookspecs import hookimpl

from goodbot_connectors.codex.config import CodexSettings

SPEC = ConnectorSpec(
    name="codex",
    title="Codex",
    factory="goodbot_connectors.codex.connector:CodexConnector",
    capabilities=Capability.COMMENTS | Capability.ROUTES,
    settings=CodexSettings,
    message_limit=20_000,
    requires=("aiohttp",),
    setup="goodbot_connectors.codex.setup:CodexSetup",
    local=True,
    backup_values=("sessions", "session:*"),
)


@hookimpl
def register_connector() -> ConnectorSpec:
    """Offer Codex."""
    return SPEC
