# SPDX-License-Identifier: Apache-2.0
"""Settings of `[connectors.discord]`. The token is no setting: it comes from the environment."""

from __future__ import annotations

from dataclasses import dataclass

TOKEN = "GOODBOT_DISCORD_TOKEN"  # noqa: S105  the variable's name
"""The environment variable with the bot's token."""


@dataclass(frozen=True, kw_only=True)
class DiscordSettings:
    """How goodbot behaves on Discord. Times in seconds.

    Emoji as they are, or ids of custom ones; any other reaction is no rating. Clear verdicts only:
    😢 or 🤯 on an answer may be about its content.
    """

    good: tuple[str, ...] = ("👍", "❤", "❤\u200d🔥", "🔥", "👏", "🎉", "🤩", "😍", "🏆", "💯", "👌", "🙌")
    """Reactions that call an answer good: emoji, or ids of custom ones."""
    bad: tuple[str, ...] = ("👎", "💩", "🤮", "😡", "🤬", "🖕")
    """Reactions that call it bad."""
    mark: str = "✅"
    """Our own reaction that says that a reaction was counted, for ten seconds; empty for none."""
    message_content: bool = False
    """Ask for the privileged intent: replies without a ping and later words in threads are read too."""
    edit_interval: float = 1.2
    """The least time between two edits while an answer is written; Discord bears 5 in 5 seconds."""
    group_buttons: bool = False
    """Rating buttons under answers in servers too, not only in direct messages."""
    api_base: str = ""
    """Where the REST API is, if not at Discord: `http://127.0.0.1:8080/api/v10`, for tests."""
    gateway: str = ""
    """Where the gateway is, if not at Discord: `ws://127.0.0.1:8080/`, for tests."""

    def __post_init__(self) -> None:
        """Raises ValueError, which the config reports with its file and line."""
        if self.api_base and not self.api_base.startswith(("http://", "https://")):
            raise ValueError("api_base is an address such as http://127.0.0.1:8080/api/v10")
        if self.gateway and not self.gateway.startswith(("ws://", "wss://")):
            raise ValueError("gateway is an address such as ws://127.0.0.1:8080/")
