# SPDX-License-Identifier: Apache-2.0
"""The application under test, as the developer portal has it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from goodbot_fakes.discord import intents, payloads
from goodbot_fakes.discord.records import User
from goodbot_fakes.discord.registry import Commands

Json = dict[str, Any]


@dataclass(kw_only=True)
class Application:
    """One application with its bot; both have the same id."""

    bot: User
    owner: User
    token: str
    commands: Commands
    privileged: set[int] = field(default_factory=set[int])
    """The privileged intents that are switched on, such as `intents.MESSAGE_CONTENT`."""
    settings: Json = field(default_factory=dict[str, Any])
    """What the application has changed of itself: `install_params`, `tags` …"""

    @property
    def id(self) -> str:
        return self.bot.id

    @property
    def flags(self) -> int:
        """Has the bits of the intents that are switched on, those for few servers."""
        return sum(intents.PRIVILEGED[intent] for intent in self.privileged)

    @property
    def reads_content(self) -> bool:
        return intents.MESSAGE_CONTENT in self.privileged

    def json(self, guilds: int) -> Json:
        """The application as it sees itself."""
        return {
            "id": self.id,
            "name": self.bot.name,
            "icon": None,
            "description": "",
            "type": None,
            "bot": payloads.user(self.bot),
            "bot_public": True,
            "bot_require_code_grant": False,
            "verify_key": "0" * 64,
            "flags": self.flags,
            "flags_new": str(self.flags),
            "redirect_uris": [],
            "interactions_endpoint_url": None,
            "role_connections_verification_url": None,
            "owner": payloads.user(self.owner),
            "approximate_guild_count": guilds,
            "approximate_user_install_count": 0,
            "approximate_user_authorization_count": 0,
            "explicit_content_filter": 0,
            "team": None,
            "eligible_oauth2_scopes": [],
            **self.settings,
        }
