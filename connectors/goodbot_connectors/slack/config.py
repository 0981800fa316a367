# SPDX-License-Identifier: Apache-2.0
"""Settings of `[connectors.slack]`. Tokens are no settings: they come from the environment."""

from __future__ import annotations

from dataclasses import dataclass

BOT_TOKEN = "GOODBOT_SLACK_BOT_TOKEN"  # noqa: S105  the variable's name
"""The environment variable with the bot token (`xoxb-…`)."""
APP_TOKEN = "GOODBOT_SLACK_APP_TOKEN"  # noqa: S105  the variable's name
"""The one with the app-level token (`xapp-…`, scope connections:write); for Socket Mode."""
SIGNING_SECRET = "GOODBOT_SLACK_SIGNING_SECRET"  # noqa: S105  the variable's name
"""The one with the signing secret; for HTTP mode."""


@dataclass(frozen=True, kw_only=True)
class SlackSettings:
    """How goodbot behaves on Slack. Times in seconds.

    Emoji by the names that Slack gives them, custom ones too, with or without colons; any other
    reaction is no rating. Clear verdicts only: 😢 may be about the content, ✅ says
    that something is done.
    """

    good: tuple[str, ...] = (
        "+1",
        "heart",
        "heart_on_fire",
        "fire",
        "clap",
        "tada",
        "star-struck",
        "heart_eyes",
        "trophy",
        "100",
        "ok_hand",
        "raised_hands",
    )
    """Reactions that call an answer good, by Slack's names for them."""
    bad: tuple[str, ...] = (
        "-1",
        "hankey",
        "face_vomiting",
        "rage",
        "face_with_symbols_on_mouth",
        "middle_finger",
    )
    """Reactions that call it bad."""
    mode: str = "socket"
    """`socket`: goodbot connects to Slack. `http`: Slack's requests come to `port`, signed."""
    port: int = 3000
    """In HTTP mode, where it listens, on 127.0.0.1 alone: put a proxy with TLS before it."""
    path: str = "/slack/events"
    """In HTTP mode, the one path for events, buttons and commands."""
    api_base: str = ""
    """Where the Web API is, if not at Slack: `http://127.0.0.1:8080/api/`, for tests."""
    append_interval: float = 0.7
    """The least time between two pieces of a streamed answer."""
    edit_interval: float = 2.0
    """The same where an answer is streamed by editing; Slack bears about 50 edits a minute."""
    group_buttons: bool = False
    """Rating buttons under answers in channels too, not only in direct messages."""

    @property
    def needed_secrets(self) -> tuple[str, ...]:
        """The secrets without which this mode cannot work."""
        return (BOT_TOKEN, SIGNING_SECRET if self.mode == "http" else APP_TOKEN)
