# SPDX-License-Identifier: Apache-2.0
"""Looking at chats and who is in them."""

from __future__ import annotations

from goodbot_fakes.telegram.account import BotAccount
from goodbot_fakes.telegram.chats import member
from goodbot_fakes.telegram.errors import Json, bad_request


def get_chat(account: BotAccount, *, chat_id: int | str = 0) -> Json:
    """getChat."""
    chat = account.chat(chat_id)
    gifts = (
        "unlimited_gifts",
        "limited_gifts",
        "unique_gifts",
        "premium_subscription",
        "gifts_from_channels",
    )
    return chat.json | {
        "accent_color_id": 0,
        "max_reaction_count": 11,
        "accepted_gift_types": dict.fromkeys(gifts, False),
    }


def get_chat_member(account: BotAccount, *, chat_id: int | str = 0, user_id: int = 0) -> Json:
    """getChatMember: oneself always, others where the bot may look."""
    chat = account.chat(chat_id)
    user = account.users.get(user_id)
    if user is None:
        raise bad_request("user not found")
    if chat.private:
        return member(user, "member")
    return member(user, chat.members.get(user_id, "left"))


def get_chat_administrators(account: BotAccount, *, chat_id: int | str = 0) -> list[Json]:
    """getChatAdministrators."""
    chat = account.chat(chat_id)
    if chat.private:
        raise bad_request("there are no administrators in the private chat")
    return [
        member(account.users[user], status)
        for user, status in chat.members.items()
        if status in ("creator", "administrator")
    ]


METHODS = (get_chat, get_chat_member, get_chat_administrators)
