# SPDX-License-Identifier: Apache-2.0
"""`reply_markup`: what a bot may put under a message, and what stays to be seen there."""

from __future__ import annotations

from typing import Any, cast

from goodbot_fakes.telegram.errors import Json, bad_request

DATA_LIMIT = 64
"""Bytes of `callback_data` (core.telegram.org/bots/api#inlinekeyboardbutton)."""
PLACEHOLDER_LIMIT = 64

_ACTIONS = (
    "url",
    "callback_data",
    "web_app",
    "login_url",
    "switch_inline_query",
    "switch_inline_query_current_chat",
    "switch_inline_query_chosen_chat",
    "copy_text",
    "callback_game",
    "pay",
)


def checked(markup: object) -> Json:
    """A markup of any of the four kinds; an empty one for none. Raises `BotApiError`."""
    if not markup:
        return {}
    if not isinstance(markup, dict):
        raise bad_request("object expected as reply markup")
    found = cast("Json", markup)
    if "inline_keyboard" in found:
        for row in _lists(found["inline_keyboard"]):
            for button in row:
                _check_button(button)
    elif found.get("force_reply"):
        if len(found.get("input_field_placeholder") or "") > PLACEHOLDER_LIMIT:
            raise bad_request("REPLY_MARKUP_INVALID")
    elif not ({"keyboard", "remove_keyboard"} & found.keys()):
        raise bad_request("can't parse reply keyboard markup JSON object")
    return found


def shown(markup: Json) -> Json:
    """The part of a markup that a `Message` carries: an inline keyboard that has buttons."""
    rows = [row for row in markup.get("inline_keyboard", []) if row]
    return {"inline_keyboard": rows} if rows else {}


def buttons(message: Json) -> list[Json]:
    """The buttons under a message, row by row."""
    rows = message.get("reply_markup", {}).get("inline_keyboard", [])
    return [button for row in rows for button in row]


def _lists(value: object) -> list[list[Any]]:
    if not isinstance(value, list) or not all(isinstance(row, list) for row in cast("list[object]", value)):
        raise bad_request("can't parse inline keyboard markup JSON object")
    return cast("list[list[Any]]", value)


def _check_button(button: Any) -> None:
    if not isinstance(button, dict) or not cast("Json", button).get("text"):
        raise bad_request("can't parse inline keyboard button: Can't find field \"text\"")
    found = cast("Json", button)
    if not any(name in found for name in _ACTIONS):
        raise bad_request(
            "can't parse inline keyboard button: Text buttons are unallowed in the inline keyboard"
        )
    if "callback_data" in found and not 0 < len(str(found["callback_data"]).encode()) <= DATA_LIMIT:
        raise bad_request("BUTTON_DATA_INVALID")
