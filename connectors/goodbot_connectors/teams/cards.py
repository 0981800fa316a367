# SPDX-License-Identifier: Apache-2.0
"""Adaptive Cards: what is said to one person and can be pressed, and the form for a reason. Pure.

adaptivecards.io, version 1.5; learn.microsoft.com/microsoftteams/platform/task-modules-and-cards.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from goodbot.api.events import Button
from goodbot.api.texts import say
from goodbot.base.text import one_way

from goodbot_connectors.teams.presses import EXPLAIN, AnswerRef, data

CONTENT_TYPE = "application/vnd.microsoft.card.adaptive"
_ROW = 6
"""Teams shows so many actions of a set, and hides the others in a menu."""
_LABEL = 60
_LONGEST = 4000


def card(
    about: AnswerRef, *, notice: str = "", buttons: Sequence[Button] = (), offer: Sequence[Button] = ()
) -> dict[str, Any]:
    """A text for its reader, and what they can press.

    It is a message of its own: Teams makes two of one that has a text and a card, and edits no such.
    """
    text = {"type": "TextBlock", "id": "notice", "text": _paragraphs(notice), "wrap": True}
    body = [*([text] if notice else []), *_rows("buttons", about, buttons)]
    body += _rows("offer", about, offer)
    return _card({"body": body, "msteams": {"width": "full"}})


def notice(card: dict[str, Any]) -> str:
    """The text of a card."""
    return next((part["text"] for part in card["content"]["body"] if part["id"] == "notice"), "")


def why(language: str = "") -> Button:
    """Opens the form; offered with whatever else is offered to somebody who called an answer bad."""
    return Button(action=EXPLAIN, label=say("button_why", language))


def form(about: AnswerRef, language: str = "") -> dict[str, Any]:
    """What was wrong, and what should have been said."""
    body = [_field("reason", say("form_reason", language)), _field("better", say("form_better", language))]
    sent = {name: value for name, value in data("form", about).items() if name != "msteams"}
    send = {"type": "Action.Submit", "title": say("button_send", language), "data": sent}
    return _card({"body": body, "actions": [send]})


def _card(content: dict[str, Any]) -> dict[str, Any]:
    head = {
        "type": "AdaptiveCard",
        "version": "1.5",
        "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
    }
    return {"contentType": CONTENT_TYPE, "content": {**head, **content}}


def _rows(name: str, about: AnswerRef, buttons: Sequence[Button]) -> list[dict[str, Any]]:
    actions = [
        {"type": "Action.Submit", "title": one_way(b.label)[:_LABEL], "data": data(b.action, about)}
        for b in buttons
    ]
    return [
        {"type": "ActionSet", "id": f"{name}-{n}" if n else name, "actions": actions[n : n + _ROW]}
        for n in range(0, len(actions), _ROW)
    ]


def _field(name: str, label: str) -> dict[str, Any]:
    return {"type": "Input.Text", "id": name, "label": label, "isMultiline": True, "maxLength": _LONGEST}


def _paragraphs(text: str) -> str:
    """A text block joins lines that no empty line parts."""
    lines = (line.rstrip() for line in one_way(text).split("\n"))
    return "\n\n".join(filter(None, lines))
