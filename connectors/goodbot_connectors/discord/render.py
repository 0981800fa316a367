# SPDX-License-Identifier: Apache-2.0
"""Replies → bodies of messages. Pure: values in, JSON out.

A model writes Markdown, and Discord shows it. What would act by itself is switched off: nobody is
pinged, mentions and links that hide where they lead are broken with an invisible joiner, and nothing
is unfurled (Discord's fetch of a link that a model made up can carry words of the chat away).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from goodbot.api.actions import RETRY
from goodbot.api.events import Button, Reply
from goodbot.api.texts import say
from goodbot.base.text import one_way, split

from goodbot_connectors.discord.presses import EXPLAIN, AnswerRef, write
from goodbot_connectors.kit.code import discord
from goodbot_connectors.kit.inert import broken

LIMIT = 2000
"""The longest message, in UTF-16 code units."""
EPHEMERAL = 1 << 6
SILENT = 1 << 12
_NO_EMBEDS = 1 << 2
_ROW = 5
_ROWS = 5
_LABEL = 80
_STYLES = {"good": 3, "bad": 4}
_SECONDARY = 2

_ACTS = re.compile(
    r"@(?=everyone|here)"
    r"|<(?=@[!&]?[0-9]|#[0-9]|id:\w"  # <@123>, <@&123>, <#123>
    r"|/[^\n>]{1,100}:[0-9]|a?:\w{1,64}:[0-9])"  # </rl:123>, <:emoji:123>
    r"|\](?=\(\s*+<?(?:[A-Za-z][\w+.-]{0,20}:|//|www\.))"  # [your bank](https://evil.example)
)


def inert(text: str) -> str:
    """Markdown that mentions nobody and whose links show where they lead; code stays as it is."""
    text = one_way(text)
    return broken(text, discord(text).codes, _ACTS)


def parts(text: str) -> tuple[str, ...]:
    """The texts of the messages that `text` becomes, inert and short enough; at least one."""
    text = one_way(text)
    # A sign takes three units at least and grows by one, also in code, which a cut may go through.
    room = max(LIMIT - len(_ACTS.findall(text)), LIMIT * 2 // 3)
    return tuple(inert(part) for part in split(text, room)) or ("…",)


def messages(reply: Reply, about: AnswerRef | None = None) -> tuple[dict[str, Any], ...]:
    """The body of each message that `reply` becomes, the buttons under the last one.

    Without `about`, the buttons are about the message itself.
    """
    texts = parts(reply.text)
    place = about or AnswerRef(turn=reply.turn)
    return tuple(
        message(text, place, reply.buttons if n == len(texts) - 1 else ()) for n, text in enumerate(texts)
    )


def message(text: str, about: AnswerRef, buttons: Sequence[Button] = ()) -> dict[str, Any]:
    """One body, good for a new message and for an edit."""
    return {
        "content": text,
        "allowed_mentions": {"parse": []},
        "components": rows(about, buttons),
        "flags": _NO_EMBEDS,
    }


def new(body: dict[str, Any], *, nonce: str, reply_to: str = "", silent: bool = False) -> dict[str, Any]:
    """A body for a message that is not there yet; Discord takes one `nonce` for one message."""
    flags = {"flags": body["flags"] | SILENT} if silent else {}
    reference: dict[str, Any] = {}
    if reply_to:
        reference["message_reference"] = {"message_id": reply_to, "fail_if_not_exists": False}
    return {**body, **flags, **reference, "nonce": nonce, "enforce_nonce": True}


def rows(about: AnswerRef, buttons: Sequence[Button]) -> list[dict[str, Any]]:
    """Action rows of five buttons each."""
    faces = [
        {
            "type": 2,
            "style": _STYLES.get(button.action, _SECONDARY),
            "label": button.label[:_LABEL],
            "custom_id": write(button.action, about),
        }
        for button in buttons[: _ROW * _ROWS]
    ]
    return [{"type": 1, "components": faces[at : at + _ROW]} for at in range(0, len(faces), _ROW)]


def with_form(offer: Sequence[Button], language: str = "") -> tuple[Button, ...]:
    """An offer of other answers, with the form that asks why."""
    retries = any(button.action.partition(":")[0] == RETRY for button in offer)
    return (*offer, Button(action=EXPLAIN, label=say("button_why", language))) if retries else tuple(offer)
