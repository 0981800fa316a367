# SPDX-License-Identifier: Apache-2.0
"""Teams's own feedback controls: what comes back of them, and the form behind them.

learn.microsoft.com/microsoftteams/platform/bots/how-to/bot-messages-ai-generated-content
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from goodbot.api.texts import say
from goodbot.base.text import clean

from goodbot_connectors.kit.fields import Json, as_json, string, sub
from goodbot_connectors.teams import cards
from goodbot_connectors.teams.presses import AnswerRef, key, pressed

_ACTIONS = {"like": "good", "dislike": "bad"}
_LONGEST = 8000


class TypedFeedback(NamedTuple):
    """What somebody typed about an answer."""

    reason: str = ""
    better: str = ""


class Given(NamedTuple):
    """What somebody said of an answer with Teams's own controls."""

    action: str
    """`good` or `bad`, as a button; empty for neither."""
    words: TypedFeedback


def read(activity: Json) -> Given | None:
    """What an invoke says of an answer; None when it is about something else.

    A press on a control with a form of ours is `message/fetchTask`, without words yet.
    """
    name, value = string(activity, "name"), sub(activity, "value")
    if name not in ("message/submitAction", "message/fetchTask"):
        return None
    # `message/fetchTask` wraps in `data` what `message/submitAction` has at the top.
    given = value if "actionName" in value else sub(value, "data")
    if string(given, "actionName") != "feedback":
        return None
    said = sub(given, "actionValue")
    action = _ACTIONS.get(string(said, "reaction"), "")
    if name == "message/fetchTask":
        return Given(action, TypedFeedback())
    return Given(action, words(_form(said.get("feedback"))))


def words(form: Json) -> TypedFeedback:
    """What was typed into Teams's form, or ours."""
    reason = string(form, "reason") or string(form, "feedbackText")
    return TypedFeedback(_text(reason), _text(string(form, "better")))


def answer(activity: Json, turn: str) -> dict[str, Any]:
    """The body that an invoke is answered with: a form for those who ask for one, else nothing.

    `turn` is the answer that a feedback control stands under. The controls take an empty body only.
    """
    name = string(activity, "name")
    if name == "message/fetchTask":
        reply_to = key(string(activity, "replyToId"))
        return _dialogue(AnswerRef(turn, reply_to), string(activity, "locale"))
    if name == "task/fetch" and (button := pressed(activity)) is not None:
        about = button.about
        if not about.message:
            about = about._replace(message=key(string(activity, "replyToId")))
        return _dialogue(about, string(activity, "locale"))
    if name == "adaptiveCard/action":
        return {"statusCode": 200, "type": "application/vnd.microsoft.activity.message", "value": ""}
    return {}


def _dialogue(about: AnswerRef, language: str) -> dict[str, Any]:
    card, title = cards.form(about, language), say("form_about", language)
    value = {"title": title, "height": "medium", "width": "medium", "card": card}
    return {"task": {"type": "continue", "value": value}}


def _form(feedback: object) -> Json:
    """The form's fields: Teams sends them as JSON in a text, or as they are, or only the words."""
    if not isinstance(feedback, str):
        return as_json(feedback)
    try:
        fields = json.loads(feedback)
    except (ValueError, RecursionError):
        fields = feedback
    return {"feedbackText": fields} if isinstance(fields, str) else as_json(fields)


def _text(typed: str) -> str:
    return clean(typed).strip()[:_LONGEST]
