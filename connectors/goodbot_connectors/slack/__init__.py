# SPDX-License-Identifier: Apache-2.0
"""goodbot on Slack: Socket Mode, nothing to open to the internet, or HTTP behind a proxy."""

from __future__ import annotations

from goodbot.api.connector import Capability, ConnectorSpec
from goodbot.api.hookspecs import hookimpl

from goodbot_connectors.slack.config import APP_TOKEN, BOT_TOKEN, SIGNING_SECRET, SlackSettings

SPEC = ConnectorSpec(
    name="slack",
    priority=2,
    factory="goodbot_connectors.slack.connector:SlackConnector",
    capabilities=(
        Capability.REACTIONS
        | Capability.BUTTONS
        | Capability.NATIVE_FEEDBACK
        | Capability.EPHEMERAL
        | Capability.EDITS
        | Capability.STREAMING
        | Capability.THREADS
        | Capability.RECONCILE
        | Capability.GROUPS
        | Capability.COMMENTS
        | Capability.ATTACHMENTS
    ),
    settings=SlackSettings,
    message_limit=4000,  # what Slack advises for a message; it cuts at 12,000 characters
    requires=("slack_bolt", "slack_sdk", "aiohttp"),
    extra="slack",
    secrets=(BOT_TOKEN, APP_TOKEN, SIGNING_SECRET),
    setup="goodbot_connectors.slack.setup:SlackSetup",
    backup_values=("threads", "connected_at"),
)


@hookimpl
def register_connector() -> ConnectorSpec:
    """Offer Slack."""
    return SPEC
