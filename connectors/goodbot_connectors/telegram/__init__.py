# SPDX-License-Identifier: Apache-2.0
"""goodbot on Telegram. By long polling, with nothing to open to the internet, or by a webhook."""

from __future__ import annotations

from goodbot.api.connector import Capability, ConnectorSpec
from goodbot.api.hookspecs import hookimpl

from goodbot_connectors.telegram.config import TOKEN, TelegramSettings

SPEC = ConnectorSpec(
    name="telegram",
    priority=4,
    factory="goodbot_connectors.telegram.connector:TelegramConnector",
    capabilities=(
        Capability.REACTIONS
        | Capability.BUTTONS
        | Capability.EDITS
        | Capability.STREAMING
        | Capability.THREADS
        | Capability.COMMENTS
        | Capability.ATTACHMENTS
    ),
    settings=TelegramSettings,
    message_limit=4096,  # core.telegram.org/bots/api#sendmessage, in UTF-16 code units
    requires=("telegram",),
    extra="telegram",
    secrets=(TOKEN,),
    setup="goodbot_connectors.telegram.setup:TelegramSetup",
    backup_values=("data", "prompts", "offers", "parts", "row", "menus", "webhook"),
)


@hookimpl
def register_connector() -> ConnectorSpec:
    """Offer Telegram."""
    return SPEC
