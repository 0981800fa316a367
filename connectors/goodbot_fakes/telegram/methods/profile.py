# SPDX-License-Identifier: Apache-2.0
"""The bot itself, and its command menus."""

from __future__ import annotations

from typing import Any

from goodbot_fakes.telegram.account import BotAccount
from goodbot_fakes.telegram.errors import Json


def get_me(account: BotAccount) -> Json:
    """getMe."""
    return account.user | {
        "can_join_groups": True,
        "can_read_all_group_messages": account.reads_groups,
        "supports_inline_queries": False,
    }


def set_my_commands(
    account: BotAccount,
    *,
    commands: list[Any] | None = None,
    scope: Json | None = None,
    language_code: str = "",
) -> bool:
    """setMyCommands."""
    account.menus.set(scope, language_code, commands or [])
    return True


def get_my_commands(account: BotAccount, *, scope: Json | None = None, language_code: str = "") -> list[Json]:
    """getMyCommands."""
    return account.menus.get(scope, language_code)


def delete_my_commands(account: BotAccount, *, scope: Json | None = None, language_code: str = "") -> bool:
    """deleteMyCommands."""
    account.menus.delete(scope, language_code)
    return True


METHODS = (get_me, set_my_commands, get_my_commands, delete_my_commands)
