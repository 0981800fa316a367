# SPDX-License-Identifier: Apache-2.0
"""Replies → arguments of sendMessage and editMessageText. Pure: values in, JSON out.

No parse mode is used, so nothing that a model writes is markup; code becomes entities.
Everything else that would act by itself is switched off: mentions, link previews (a server's
fetch of a link that a model made up can carry words of the chat away), bidirectional overrides.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from goodbot.api.events import Button, ChannelKind, ChannelRef, Reply
from goodbot.base.text import one_way, split, units

from goodbot_connectors.kit.code import CodeSpan, markdown
from goodbot_connectors.kit.inert import JOINER, inserted
from goodbot_connectors.telegram import callback

LIMIT = 4096
"""The longest message, in UTF-16 code units (core.telegram.org/bots/api#sendmessage)."""
TOAST_LIMIT = 200
"""Characters that answerCallbackQuery can show."""
ROW = 32
"""Characters of the labels that fit side by side on a phone, all together."""
LABEL_LIMIT = 60
"""Characters of a label; a phone shows about forty of them in a row of its own."""
PLACEHOLDER_LIMIT = 64
_ENTITIES = 90
"""Telegram keeps a hundred a message, its own for links among them."""

# As Telegram finds it: at a word's edge, so an e-mail address is none.
_MENTION = re.compile(r"(?<!\w)@(?=[A-Za-z0-9_]{2,32}(?!\w))")


def messages(channel: ChannelRef, reply: Reply, *, group_buttons: bool = False) -> tuple[dict[str, Any], ...]:
    """The sendMessage arguments of each message that `reply` becomes; one unless it is long.

    Buttons go under the last one, in private chats and, with `group_buttons`, in groups. In a topic
    the first answers `reply.reply_to`, to say whom we talk to. In a group without one each does:
    in the comments under a channel's post nothing else says where a message belongs.
    """
    private = channel.kind is ChannelKind.PRIVATE
    text = one_way(reply.text)
    # Each mention grows by a joiner, and it takes three units at least to write one.
    room = max(LIMIT - len(_MENTION.findall(text)), LIMIT * 3 // 4)
    found: list[dict[str, Any]] = []
    for part in split(text, room):
        message: dict[str, Any] = {"chat_id": int(channel.id), **formatted(part)}
        message["link_preview_options"] = {"is_disabled": True}
        if channel.thread:
            message["message_thread_id"] = int(channel.thread)
        if reply.silent:
            message["disable_notification"] = True
        found.append(message)
    if reply.reply_to and not private:
        for message in found[:1] if channel.thread else found:
            message["reply_parameters"] = {
                "message_id": int(reply.reply_to),
                "allow_sending_without_reply": True,
            }
    if found and reply.buttons and (private or group_buttons):
        found[-1]["reply_markup"] = keyboard(reply.turn, reply.buttons)
    return tuple(found)


def edit(message: dict[str, Any], message_id: int) -> dict[str, Any]:
    """The editMessageText arguments that turn an earlier message into `message`."""
    kept = ("chat_id", "text", "entities", "link_preview_options", "reply_markup")
    return {"message_id": message_id} | {name: message[name] for name in kept if name in message}


def keyboard(turn: str, *groups: Sequence[Button]) -> dict[str, Any] | None:
    """Buttons about an answer, each group in rows of its own; None when there is none."""
    rows = [row for group in groups for row in _rows(group)]
    if not rows:
        return None
    return {
        "inline_keyboard": [
            [
                {"text": _shortened(b.label, LABEL_LIMIT), "callback_data": callback.write(b.action, turn)}
                for b in row
            ]
            for row in rows
        ]
    }


def _rows(buttons: Sequence[Button]) -> list[list[Button]]:
    """As few rows as a phone can show without cutting labels off."""
    rows: list[list[Button]] = []
    for button in buttons:
        if rows and sum(len(b.label) + 3 for b in (*rows[-1], button)) <= ROW:
            rows[-1].append(button)
        else:
            rows.append([button])
    return rows


def prompt(channel: ChannelRef, text: str, placeholder: str, reply_to: int) -> dict[str, Any]:
    """The sendMessage arguments of a question whose answer a person types at once."""
    [message] = messages(channel, Reply(text=text, silent=True))
    return message | {
        "reply_markup": {
            "force_reply": True,
            "selective": True,
            "input_field_placeholder": placeholder[:PLACEHOLDER_LIMIT],
        },
        "reply_parameters": {"message_id": reply_to, "allow_sending_without_reply": True},
    }


def formatted(part: str) -> dict[str, Any]:
    """Text and entities: code loses its backticks and becomes `pre` and `code` entities.

    Mentions mention nobody, except in code, where Telegram looks for none and people copy from.
    """
    text, done = "", 0
    found: list[tuple[int, int, CodeSpan]] = []
    for code in markdown(part).codes:
        words = _words(part, code)
        if words.strip() and len(found) < _ENTITIES:
            text += part[done : code.start].rstrip(" \t") if code.fenced else part[done : code.start]
            found.append((len(text), len(text) + len(words), code))
            text += words
            done = code.stop - (code.fenced and part[: code.stop].endswith("\n"))
    text += part[done:]
    marks = {
        mention.end(): JOINER
        for mention in _MENTION.finditer(text)
        if not any(start <= mention.start() and mention.end() < end for start, end, _ in found)
    }
    shown = inserted(text, marks)
    return {"text": shown} | ({"entities": _entities(text, found, marks)} if found else {})


def _words(part: str, code: CodeSpan) -> str:
    """What is copied: a block without the indent of its fence, a span without what pads it."""
    inside = part[code.inside : code.until]
    if code.fenced:
        indent = code.start - (part.rfind("\n", 0, code.start) + 1)
        lines = inside.removesuffix("\n").split("\n")
        return "\n".join(line[min(indent, len(line) - len(line.lstrip(" "))) :] for line in lines)
    padded = inside.startswith(" ") and inside.endswith(" ") and inside.strip(" ")
    return inside[1:-1] if padded else inside


def _entities(
    text: str, found: list[tuple[int, int, CodeSpan]], marks: Mapping[int, str]
) -> list[dict[str, Any]]:
    entities: list[dict[str, Any]] = []
    for start, end, code in found:
        offset = units(text[:start]) + sum(at <= start for at in marks)
        entity = {
            "type": "pre" if code.fenced else "code",
            "offset": offset,
            "length": units(text[start:end]) + sum(start < at < end for at in marks),
        }
        entities.append(entity | {"language": code.language} if code.language else entity)
    return entities


def toast(text: str) -> str:
    """A receipt's text as short as a toast must be."""
    return _shortened(text, TOAST_LIMIT)


def _shortened(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: limit - 1] + "…"
