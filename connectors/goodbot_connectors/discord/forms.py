# SPDX-License-Identifier: Apache-2.0
"""The form (a modal): good or bad, stars, what was wrong, and what should have been said."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from goodbot.api.actions import STAR_ROW, thumbs
from goodbot.api.events import Button
from goodbot.api.texts import say

from goodbot_connectors.discord.presses import OPINION, AnswerRef, write
from goodbot_connectors.kit.fields import Json, items, string, strings, sub

_LABEL, _LIST, _TEXT = 18, 3, 4
_PARAGRAPH = 2
_LONGEST = 4000
"""Characters of one field; Discord's own limit."""
_DEEP = 3


def form(about: AnswerRef, *, rate: bool, language: str = "") -> dict[str, Any]:
    """The data of the response that opens it. `rate` asks for a verdict, too."""
    asked = [
        _field("reason", say("form_reason" if rate else "form_wrong", language)),
        _field("better", say("form_better", language)),
    ]
    if rate:
        verdict = _choice("verdict", say("form_verdict", language), thumbs(language))
        asked = [verdict, _choice("stars", say("form_stars", language), STAR_ROW), *asked]
    return {
        "custom_id": write(OPINION, about),
        "title": say("form_rate" if rate else "form_wrong", language),
        "components": asked,
    }


def answers(data: Json) -> dict[str, str]:
    """What was filled in, by the field's name."""
    return {name: value for name, value in _filled(data, _DEEP) if value}


def _filled(component: Json, deep: int) -> Iterator[tuple[str, str]]:
    """Fields lie in labels; older clients put them into rows."""
    name = string(component, "custom_id")
    if component.get("type") == _TEXT:
        yield name, string(component, "value").strip()
    elif component.get("type") == _LIST:
        yield name, next(strings(component, "values"), "")
    if deep:
        for inner in (sub(component, "component"), *items(component, "components")):
            yield from _filled(inner, deep - 1)


def _choice(name: str, label: str, buttons: tuple[Button, ...]) -> dict[str, Any]:
    options = [{"label": button.label, "value": button.action} for button in buttons]
    component = {
        "type": _LIST,
        "custom_id": name,
        "required": False,
        "min_values": 0,
        "max_values": 1,
        "options": options,
    }
    return {"type": _LABEL, "label": label, "component": component}


def _field(name: str, label: str) -> dict[str, Any]:
    component = {
        "type": _TEXT,
        "custom_id": name,
        "style": _PARAGRAPH,
        "required": False,
        "max_length": _LONGEST,
    }
    return {"type": _LABEL, "label": label, "component": component}
