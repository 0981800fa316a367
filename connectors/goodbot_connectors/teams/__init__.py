# SPDX-License-Identifier: Apache-2.0
"""goodbot on Microsoft Teams: personal chats, group chats and channels, through the Bot Framework."""

from __future__ import annotations

from goodbot.api.connector import Capability, ConnectorSpec
from goodbot.api.hookspecs import hookimpl

from goodbot_connectors.teams.config import APP_PASSWORD, TeamsSettings

SPEC = ConnectorSpec(
    name="teams",
    priority=1,
    factory="goodbot_connectors.teams.connector:TeamsConnector",
    capabilities=(
        Capability.REACTIONS
        | Capability.BUTTONS
        | Capability.NATIVE_FEEDBACK
        | Capability.EDITS
        | Capability.STREAMING
        | Capability.THREADS
        | Capability.COMMENTS
        | Capability.ATTACHMENTS
    ),
    settings=TeamsSettings,
    message_limit=8000,
    requires=("botbuilder.core", "botbuilder.integration.aiohttp", "aiohttp"),
    extra="teams",
    secrets=(APP_PASSWORD,),
    setup="goodbot_connectors.teams.setup:TeamsSetup",
    backup_values=("* answers", "* latest", "* conversation:*", "* chat:*", "* unsure"),
)


@hookimpl
def register_connector() -> ConnectorSpec:
    """Offer Teams."""
    return SPEC
