# SPDX-License-Identifier: Apache-2.0
"""The modal: good or bad, what was wrong, and what should have been said."""

from __future__ import annotations

from typing import Any

from goodbot.api.actions import thumbs
from goodbot.api.texts import say

from goodbot_connectors.slack.presses import MODAL, Opening

_LONGEST = 3000
"""Characters of one field; Slack's own limit."""


def modal(opening: Opening) -> dict[str, Any]:
    """The view for views.open."""
    view: dict[str, Any] = {
        "type": "modal",
        "callback_id": MODAL,
        "private_metadata": opening.about.dump(),
        "title": _plain(say("form_rate" if opening.rate else "form_wrong")),
        "close": _plain(say("button_cancel")),
    }
    if not opening.ours:
        text = say("not_mine")
        return view | {"blocks": [{"type": "section", "text": _plain(text)}]}
    fields = [_field("reason", say("form_reason")), _field("better", say("form_better"))]
    blocks = [_verdict(), *fields] if opening.rate else fields
    return view | {"submit": _plain(say("button_send")), "blocks": blocks}


def _verdict() -> dict[str, Any]:
    options = [{"text": _plain(button.label), "value": button.action} for button in thumbs()]
    element = {"type": "radio_buttons", "action_id": "verdict", "options": options}
    return {"type": "input", "block_id": "verdict", "label": _plain(say("form_verdict")), "element": element}


def _field(name: str, label: str) -> dict[str, Any]:
    element = {"type": "plain_text_input", "action_id": name, "multiline": True, "max_length": _LONGEST}
    return {"type": "input", "block_id": name, "optional": True, "label": _plain(label), "element": element}


def _plain(text: str) -> dict[str, Any]:
    return {"type": "plain_text", "text": text}
