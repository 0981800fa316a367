# SPDX-License-Identifier: Apache-2.0
"""What a button of a card carries: keys to look up, never trusted.

Teams gives it back as we wrote it; who acts and where is taken from Teams's own fields.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from goodbot_connectors.kit.fields import Json, as_json, string, sub

ACTION = "goodbot"
"""The field with the action."""
EXPLAIN = "explain"
"""The button that opens the form for a reason and a better answer: the connector's own."""
_LONGEST = 2000


class AnswerRef(NamedTuple):
    """Which answer a button or a form is about."""

    turn: str = ""
    message: str = ""
    """Its id; empty for a button under the message itself, whose id Teams tells."""


class ButtonPress(NamedTuple):
    """A button of ours that somebody pressed, or a form that they sent."""

    action: str
    about: AnswerRef


def data(action: str, about: AnswerRef) -> dict[str, Any]:
    """What a button of a card carries."""
    opens = {"type": "task/fetch"} if action == EXPLAIN else {"feedback": {"hide": True}}
    return {ACTION: action, "turn": about.turn, "message": about.message, "msteams": opens}


def read(value: object) -> ButtonPress | None:
    """What `data` wrote; None if that is not what it is."""
    json = as_json(value)
    action = string(json, ACTION)
    if not action or len(action) > _LONGEST:
        return None
    return ButtonPress(action, AnswerRef(key(string(json, "turn")), key(string(json, "message"))))


def pressed(activity: Json) -> ButtonPress | None:
    """The button that an activity is about, whatever kind of action it was; None if there is none.

    Action.Submit comes as a message with a value, Action.Execute as an invoke, and one that opens a
    form, or sends it, as an invoke too.
    """
    value = sub(activity, "value")
    kind, name = string(activity, "type"), string(activity, "name")
    if kind == "message":
        return read(value)
    if kind == "invoke" and name == "adaptiveCard/action":
        return read(sub(value, "action", "data"))
    if kind == "invoke" and name in ("task/fetch", "task/submit"):
        return read(sub(value, "data"))
    return None


def key(text: str) -> str:
    """An id as Teams and the core make them; anything else is none."""
    return text if text.isascii() and text.isprintable() and " " not in text and len(text) <= 300 else ""
