# SPDX-License-Identifier: Apache-2.0
"""The modal: good or bad, what was wrong, and what should have been said."""

from __future__ import annotations

from typing import Any

from goodbot.api.actions import THUMBS

from goodbot_connectors.slack.presses import MODAL, Opening

_LONGEST = 3000
"""Characters of one field; Slack's own limit."""


def modal(opening: Opening) -> dict[str, Any]:
    """The view for views.open."""
    view: dict[str, Any] = {
        "type": "modal",
        "callback_id": MODAL,
        "private_metadata": opening.about.dump(),
        "title": _plain("Rate this answer" if opening.rate else "What was wrong?"),
        "close": _plain("Cancel"),
    }
    if not opening.ours:
        text = "That message is not one of my answers."
        return view | {"blocks": [{"type": "section", "text": _plain(text)}]}
    fields = [
        _field("reason", "What was good or wrong about it?"),
        _field("better", "What would have been a better answer?"),
    ]
    return view | {"submit": _plain("Send"), "blocks": [_verdict(), *fields] if opening.rate else fields}


def _verdict() -> dict[str, Any]:
    options = [{"text": _plain(button.label), "value": button.action} for button in THUMBS]
    element = {"type": "radio_buttons", "action_id": "verdict", "options": options}
    return {"type": "input", "block_id": "verdict", "label": _plain("The answer was"), "element": element}


def _field(name: str, label: str) -> dict[str, Any]:
    element = {"type": "plain_text_input", "action_id": name, "multiline": True, "max_length": _LONGEST}
    return {"type": "input", "block_id": name, "optional": True, "label": _plain(label), "element": element}


def _plain(text: str) -> dict[str, Any]:
    return {"type": "plain_text", "text": text}
