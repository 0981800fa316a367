# SPDX-License-Identifier: Apache-2.0
"""Who we are on Discord."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class BotIdentity:
    """Our own account, and the application that it belongs to."""

    user: str
    """The bot's id, the same for as long as it exists: the account."""
    application: str
    name: str = ""
    flags: int = 0
    """The application's, among them which privileged intents are switched on."""
