# SPDX-License-Identifier: Apache-2.0
"""goodbot in a browser: a chat and an inbox of answers to rate, at the daemon's own address."""

from __future__ import annotations

from goodbot.api.connector import Capability, ConnectorSpec
from goodbot.api.hookspecs import hookimpl

from goodbot_connectors.web.config import WebSettings

SPEC = ConnectorSpec(
    name="web",
    title="the browser",
    factory="goodbot_connectors.web.connector:WebConnector",
    capabilities=(
        Capability.BUTTONS
        | Capability.EPHEMERAL
        | Capability.EDITS
        | Capability.STREAMING
        | Capability.THREADS
        | Capability.COMMENTS
        | Capability.INBOX
        | Capability.ROUTES
    ),
    settings=WebSettings,
    message_limit=20_000,
    requires=("aiohttp",),
    setup="goodbot_connectors.web.setup:WebSetup",
    local=True,
    backup_values=("people", "list *", "page *"),
)


@hookimpl
def register_connector() -> ConnectorSpec:
    """Offer the browser."""
    return SPEC
