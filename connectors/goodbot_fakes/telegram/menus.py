# SPDX-License-Identifier: Apache-2.0
"""Command menus by scope and language (core.telegram.org/bots/api#botcommandscope)."""

from __future__ import annotations

from typing import Any, cast

from goodbot_fakes.telegram.errors import Json, bad_request

_KINDS = {
    "default": (),
    "all_private_chats": (),
    "all_group_chats": (),
    "all_chat_administrators": (),
    "chat": ("chat_id",),
    "chat_administrators": ("chat_id",),
    "chat_member": ("chat_id", "user_id"),
}
_LETTERS = frozenset("abcdefghijklmnopqrstuvwxyz0123456789_")
_MOST = 100

Key = tuple[str, int, int, str]
"""The kind of scope, its chat, its user, and the language."""


class Menus:
    """What clients suggest after a slash."""

    def __init__(self) -> None:
        self._menus: dict[Key, list[Json]] = {}

    def set(self, scope: Any, language: str, commands: Any) -> None:
        """setMyCommands. Raises `BotApiError`."""
        key = _key(scope, language)
        found = [_command(one) for one in cast("list[Any]", commands)]
        if len(found) > _MOST:
            raise bad_request("BOT_COMMANDS_TOO_MUCH")
        self._menus[key] = found

    def get(self, scope: Any, language: str) -> list[Json]:
        """getMyCommands: those of exactly this scope and language."""
        return self._menus.get(_key(scope, language), [])

    def delete(self, scope: Any, language: str) -> None:
        """deleteMyCommands."""
        self._menus.pop(_key(scope, language), None)

    def shown(
        self, chat_id: int, user_id: int, *, private: bool, admin: bool, language: str = ""
    ) -> list[Json]:
        """What one person sees in one chat: the narrowest scope wins, then their language."""
        scopes: list[tuple[str, int, int]] = []
        if private:
            scopes += [("chat", chat_id, 0), ("all_private_chats", 0, 0)]
        else:
            scopes += [("chat_member", chat_id, user_id)]
            scopes += [("chat_administrators", chat_id, 0)] if admin else []
            scopes += [("chat", chat_id, 0)]
            scopes += [("all_chat_administrators", 0, 0)] if admin else []
            scopes += [("all_group_chats", 0, 0)]
        for kind, chat, user in (*scopes, ("default", 0, 0)):
            for spoken in dict.fromkeys((language, "")):
                if found := self._menus.get((kind, chat, user, spoken)):
                    return found
        return []


def _key(scope: Any, language: str) -> Key:
    found = cast("Json", scope) if isinstance(scope, dict) else {"type": "default"}
    kind = str(found.get("type"))
    if kind not in _KINDS:
        raise bad_request("can't parse BotCommandScope: unsupported type specified")
    if any(not found.get(name) for name in _KINDS[kind]):
        raise bad_request("chat_id is empty")
    if language and not (len(language) == 2 and language.isascii() and language.islower()):
        raise bad_request("invalid language code specified")
    return kind, int(found.get("chat_id") or 0), int(found.get("user_id") or 0), language


def _command(one: Any) -> Json:
    command, description = str(one.get("command", "")), str(one.get("description", ""))
    if not 1 <= len(command) <= 32 or not set(command) <= _LETTERS:
        raise bad_request("BOT_COMMAND_INVALID")
    if not 1 <= len(description) <= 256:
        raise bad_request("BOT_COMMAND_DESCRIPTION_INVALID")
    return {"command": command, "description": description}
