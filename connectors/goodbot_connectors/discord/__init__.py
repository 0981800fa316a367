# SPDX-License-Identifier: Apache-2.0
"""goodbot on Discord: over the gateway, with nothing to open to the internet."""

from __future__ import annotations

from goodbot.api.connector import Capability, ConnectorSpec
from goodbot.api.hookspecs import hookimpl

from goodbot_connectors.discord.config import TOKEN, DiscordSettings

SPEC = ConnectorSpec(
    name="discord",
    priority=3,
    factory="goodbot_connectors.discord.connector:DiscordConnector",
    capabilities=(
        Capability.REACTIONS
        | Capability.BUTTONS
        | Capability.EPHEMERAL
        | Capability.EDITS
        | Capability.STREAMING
        | Capability.THREADS
        | Capability.RECONCILE
        | Capability.GROUPS
        | Capability.COMMENTS
        | Capability.ATTACHMENTS
    ),
    settings=DiscordSettings,
    message_limit=2000,  # discord.com/developers/docs/resources/message#create-message
    requires=("discord", "aiohttp"),
    extra="discord",
    secrets=(TOKEN,),
    setup="goodbot_connectors.discord.setup:DiscordSetup",
    backup_values=("session", "catch-up", "actions", "offers", "places", "commands"),
)


@hookimpl
def register_connector() -> ConnectorSpec:
    """Offer Discord."""
    return SPEC
