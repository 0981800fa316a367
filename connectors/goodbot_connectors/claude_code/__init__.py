# SPDX-License-Identifier: Apache-2.0
"""goodbot in Claude Code: it keeps the answers of the sessions there, and `/rl good` rates one."""

from __future__ import annotations

from goodbot.api.connector import Capability, ConnectorSpec
from goodbot.api.hookspecs import hookimpl

from goodbot_connectors.claude_code.config import ClaudeCodeSettings

SPEC = ConnectorSpec(
    name="claude_code",
    title="Claude Code",
    factory="goodbot_connectors.claude_code.connector:ClaudeCodeConnector",
    capabilities=Capability.ROUTES,
    settings=ClaudeCodeSettings,
    requires=("aiohttp",),
    setup="goodbot_connectors.claude_code.setup:ClaudeCodeSetup",
    local=True,
    backup_values=("sessions", "session *"),
)


@hookimpl
def register_connector() -> ConnectorSpec:
    """Offer Claude Code."""
    return SPEC
