# SPDX-License-Identifier: Apache-2.0
"""What a bot may read of a message: discord.com/developers/docs/events/gateway#message-content-intent."""

from __future__ import annotations

from typing import Any

Json = dict[str, Any]

_HIDDEN: Json = {"content": "", "embeds": [], "attachments": [], "components": []}


def readable(message: Json, *, bot: str, private: bool, allowed: bool) -> Json:
    """The message with no more words than the bot may read.

    It always reads what it wrote itself, what is written to it directly, and what mentions it.
    """
    found = dict(message)
    author, mentions = message["author"]["id"], [one["id"] for one in message["mentions"]]
    if not (allowed or private or author == bot or bot in mentions):
        found |= _HIDDEN
    answered: Json | None = found.get("referenced_message")
    if answered:
        found["referenced_message"] = readable(answered, bot=bot, private=private, allowed=allowed)
    return found
