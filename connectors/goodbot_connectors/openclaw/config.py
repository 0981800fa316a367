# SPDX-License-Identifier: Apache-2.0
"""Settings of `[connectors.openclaw]`. It has no secret: `goodbot connect` makes the plugin's token."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class OpenClawSettings:
    """How goodbot works with OpenClaw.

    Reactions are emoji, or names without colons as Slack has them; any other reaction is no rating.
    """

    good: tuple[str, ...] = (
        "👍",
        "❤",
        "❤\u200d🔥",
        "🔥",
        "👏",
        "🎉",
        "💯",
        "👌",
        "+1",
        "thumbsup",
        "heart",
        "tada",
        "100",
        "like",
    )
    """Reactions that call an answer good: emoji, or names as Slack has them."""
    bad: tuple[str, ...] = ("👎", "💩", "🤮", "😡", "-1", "thumbsdown", "angry")
    """Reactions that call it bad."""
    program: str = ""
    """The `openclaw` program, where it is not on PATH."""
    state_dir: str = ""
    """Where OpenClaw keeps `openclaw.json`; empty: as OpenClaw itself decides (`~/.openclaw`)."""
    buttons: bool = True
    """Rating buttons under answers, where the channel has buttons."""
    group_buttons: bool = False
    """The same in groups."""
    system_prompt: bool = False
    """Whether OpenClaw's own long prompt (some 50 KB) is stored with each answer."""
