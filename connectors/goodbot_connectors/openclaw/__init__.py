# SPDX-License-Identifier: Apache-2.0
"""OpenClaw: a plugin in its gateway tells us what was asked and answered, and how people rate it."""

from __future__ import annotations

from goodbot.api.connector import Capability, ConnectorSpec
from goodbot.api.hookspecs import hookimpl

from goodbot_connectors.openclaw.config import OpenClawSettings

SPEC = ConnectorSpec(
    name="openclaw",
    title="OpenClaw",
    factory="goodbot_connectors.openclaw.connector:OpenClawConnector",
    capabilities=(Capability.REACTIONS | Capability.BUTTONS | Capability.COMMENTS | Capability.ROUTES),
    settings=OpenClawSettings,
    message_limit=20_000,
    requires=("aiohttp",),
    setup="goodbot_connectors.openclaw.setup:OpenClawSetup",
    backup_values=("names",),
)


@hookimpl
def register_connector() -> ConnectorSpec:
    """Offer OpenClaw."""
    return SPEC
