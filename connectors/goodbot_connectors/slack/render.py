# SPDX-License-Identifier: Apache-2.0
"""Replies → arguments of chat.postMessage and its relatives. Pure: values in, JSON out.

A model writes Markdown, and Slack's `markdown` block shows it. What would act by itself is made
inert with an invisible joiner: mentions of people, groups and whole channels, and links that hide
where they lead. The `text` beside the block, for notifications and screen readers, is escaped.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from goodbot.api.actions import RETRY, THUMBS
from goodbot.api.events import Button
from goodbot.api.texts import say
from goodbot.base.text import one_way, split

from goodbot_connectors.kit.code import markdown
from goodbot_connectors.kit.inert import broken, is_markup, settled
from goodbot_connectors.slack.presses import ACTION, EXPLAIN, AnswerRef, write

LIMIT = 4000
"""Where we cut; joiners may double it, and Slack takes 12,000 characters of Markdown."""
UNFURLED = {"unfurl_links": False, "unfurl_media": False}
"""For every message: Slack fetches what a link leads to, and what a model wrote may carry words away."""
_FALLBACK = 3900
_ROW = 5
_LABEL = 75

_ACTS = re.compile(
    r"@(?=(?:channel|here|everyone|group)\b)"
    r"|<(?=[@#!A-Za-z/?])"  # <!channel>, <@U123>, <#C123>, <https://evil.example|your bank>
    r"|\](?=[(:])"  # [your bank](https://evil.example), and what references lead to
)
_ACTS_IN_CODE = re.compile(
    r"<(?=@[UWB][A-Z0-9]|#[CDG][A-Z0-9]|!(?:channel|here|everyone|group|subteam|date)\b)"
)
_NAME = re.compile(r"@[a-z]{0,8}\Z")


def inert(text: str) -> str:
    """Markdown that mentions nobody and whose links show where they lead.

    In code only Slack's own signs for mentions are broken: people copy from there.
    """
    text = one_way(text)
    return broken(text, markdown(text).codes, _ACTS, _ACTS_IN_CODE, is_markup)


def beginning(text: str) -> str:
    """What can be shown of an answer that is being written, such that more text only adds to it."""
    text = one_way(text)
    text = text[: settled(text, markdown(text))]
    name = _NAME.search(text)
    return text[: name.start() + 1] if name else text


def fallback(text: str) -> str:
    """Words for a notification: Slack's three control characters escaped, and short enough."""
    room = _FALLBACK
    while len(escaped := _escaped(text[:room])) > _FALLBACK:
        room = room * 3 // 4
    return escaped


def fallbacks(text: str) -> tuple[str, ...]:
    """Those of the messages that an answer becomes."""
    return tuple(map(fallback, split(text, LIMIT)))


def _escaped(text: str) -> str:
    text = broken(one_way(text), (), _ACTS)
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def message(text: str, about: AnswerRef | None = None, buttons: Sequence[Button] = ()) -> dict[str, Any]:
    """`text` and `blocks` of one message, with `buttons` below."""
    text = text if text.strip() else "…"
    blocks: list[dict[str, Any]] = [{"type": "markdown", "text": inert(text)}]
    return {"text": fallback(text), "blocks": [*blocks, *rows(about or AnswerRef(), buttons)]}


def rows(about: AnswerRef, buttons: Sequence[Button]) -> list[dict[str, Any]]:
    """The blocks that hold the buttons; thumbs are Slack's own feedback element."""
    if tuple(button.action for button in buttons) == tuple(button.action for button in THUMBS):
        good, bad = buttons
        element = {
            "type": "feedback_buttons",
            "action_id": f"{ACTION}:feedback",
            "positive_button": _face(good, about),
            "negative_button": _face(bad, about),
        }
        return [{"type": "context_actions", "elements": [element]}]
    elements = [
        {"type": "button", "action_id": f"{ACTION}:{n}", **_face(button, about)}
        for n, button in enumerate(buttons)
    ]
    return [{"type": "actions", "elements": elements[at : at + _ROW]} for at in range(0, len(elements), _ROW)]


def _face(button: Button, about: AnswerRef) -> dict[str, Any]:
    return {
        "text": {"type": "plain_text", "text": button.label[:_LABEL]},
        "value": write(button.action, about),
    }


def notice(text: str, about: AnswerRef, offer: Sequence[Button], language: str = "") -> dict[str, Any]:
    """What one person alone is shown; where another answer is offered, they may also say why."""
    if any(button.action.partition(":")[0] == RETRY for button in offer):
        offer = (*offer, Button(action=EXPLAIN, label=say("button_what_was_wrong", language)))
    return message(text, about, offer)
