# SPDX-License-Identifier: Apache-2.0
"""Settings of `[connectors.telegram]`. The token is no setting: it comes from the environment."""

from __future__ import annotations

from dataclasses import dataclass

TOKEN = "GOODBOT_TELEGRAM_TOKEN"  # noqa: S105  the variable's name
"""The environment variable with the token that @BotFather gave."""
POLLING, WEBHOOK = "polling", "webhook"


@dataclass(frozen=True, kw_only=True)
class TelegramSettings:
    """How goodbot behaves on Telegram. Times in seconds.

    The emoji are from Telegram's standard set (core.telegram.org/bots/api#reactiontypeemoji), or
    ids of custom emoji; any other reaction is no rating. Clear verdicts only: 😢 or 🤯 on an
    answer may be about its content.
    """

    good: tuple[str, ...] = ("👍", "❤", "❤\u200d🔥", "🔥", "👏", "🎉", "🤩", "😍", "🏆", "💯", "👌")
    """Reactions that call an answer good: emoji of Telegram's standard set, or ids of custom ones."""
    bad: tuple[str, ...] = ("👎", "💩", "🤮", "😡", "🤬", "🖕")
    """Reactions that call it bad."""
    mark: str = "👌"
    """Our own reaction that says "counted" in a group, for ten seconds; empty for none."""
    mode: str = POLLING
    """`polling` asks Telegram for updates; with `webhook` Telegram calls `webhook_url`."""
    webhook_url: str = ""
    """The https address that Telegram calls; something in front of us ends the TLS there."""
    webhook_host: str = "127.0.0.1"
    """Where we listen for what comes from there; the path is that of `webhook_url`."""
    webhook_port: int = 8787
    """The port there."""
    api_base: str = ""
    """Where a Bot API server of your own listens, up to the token: `http://127.0.0.1:8081/bot`."""
    poll_timeout: int = 30
    """How long Telegram holds a poll open while nothing happens."""
    drafts: bool = True
    """In private chats, show an answer that is being written as a draft, not by edits."""
    edit_interval: float = 1.0
    """The least time between two edits in a private chat while an answer is written."""
    group_edit_interval: float = 3.0
    """The same in groups, where Telegram bears 20 messages a minute."""
    group_buttons: bool = False
    """Rating buttons under answers in groups too, not only in private chats."""

    def __post_init__(self) -> None:
        """Raises ValueError, which the config reports with its file and line."""
        if self.mode not in (POLLING, WEBHOOK):
            raise ValueError(f'mode is "{POLLING}" or "{WEBHOOK}", not "{self.mode}"')
        if self.mode == WEBHOOK and not self.webhook_url.startswith("https://"):
            raise ValueError(
                'mode = "webhook" needs webhook_url = "https://…", the address that Telegram calls'
            )
        if self.api_base and not self.api_base.endswith("/bot"):
            raise ValueError("api_base ends in /bot, for example http://127.0.0.1:8081/bot")
