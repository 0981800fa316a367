# SPDX-License-Identifier: Apache-2.0
"""Reactions: the standard set, and what a bot may choose."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, cast

from goodbot_fakes.telegram.errors import Json, bad_request

_LISTED = (
    "❤ 👍 👎 🔥 🥰 👏 😁 🤔 🤯 😱 🤬 😢 🎉 🤩 🤮 💩 🙏 👌 🕊 🤡 🥱 🥴 😍 🐳 "
    "❤\u200d🔥 🌚 🌭 💯 🤣 ⚡ 🍌 🏆 💔 🤨 😐 🍓 🍾 💋 🖕 😈 😴 😭 🤓 👻 👨\u200d💻 👀 🎃 🙈 "
    "😇 😨 🤝 ✍ 🤗 🫡 🎅 🎄 ☃ 💅 🤪 🗿 🆒 💘 🙉 🦄 😘 💊 🙊 😎 👾 🤷\u200d♂ 🤷 🤷\u200d♀ "
    "😡 "
)
STANDARD = frozenset(_LISTED.split())
"""core.telegram.org/bots/api#reactiontypeemoji; any other emoji is a custom one, by its id."""

MOST = 3
"""Reactions of one person on one message, with Telegram Premium; without it there is one."""


def reaction(word: str) -> Json:
    """A `ReactionType` from how people call it: a standard emoji, a custom one's id, `paid`."""
    if word == "paid":
        return {"type": "paid"}
    if word in STANDARD:
        return {"type": "emoji", "emoji": word}
    if word.isdecimal():
        return {"type": "custom_emoji", "custom_emoji_id": word}
    raise ValueError(f"{word!r} is no reaction on Telegram, nor the id of a custom emoji")


def name_of(reaction: Json) -> str:
    """The other way round."""
    return reaction.get("emoji") or reaction.get("custom_emoji_id") or reaction["type"]


def chosen(reactions: Iterable[Any]) -> list[Json]:
    """The reactions that a bot asks for. Raises `BotApiError` for what a bot cannot choose."""
    found = [cast("Json", one) for one in reactions if isinstance(one, dict)]
    for one in found:
        kind = one.get("type")
        if kind == "paid":
            raise bad_request("bots can't use paid reactions")
        if kind == "emoji" and one.get("emoji") not in STANDARD:
            raise bad_request("REACTION_INVALID")
        if kind not in ("emoji", "custom_emoji"):
            raise bad_request("invalid reaction type specified")
    if len(found) > 1:
        raise bad_request("REACTIONS_TOO_MANY")
    return found
