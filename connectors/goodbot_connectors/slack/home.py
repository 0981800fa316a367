# SPDX-License-Identifier: Apache-2.0
"""The Home tab: what `status` says, and what one of its buttons asked for.

Opening the tab is the command `status`, a button another; their answers are shown there and nowhere
else. All of it is plain text: it may quote people and models.
"""

from __future__ import annotations

from typing import Any

from goodbot.api.texts import say
from goodbot.base.text import split

from goodbot_connectors.slack.presses import ACTION, SHOW, AnswerRef, write

_SHOWN = (("home_refresh", "status"), ("home_answers", "history 10"), ("home_help", "help"))
"""For everybody, since only the core knows who may what; whoever may not is told that nothing is here."""
_SECTION = 2900
_SECTIONS = 20


def view(*, channel: str, status: str, more: str | None = None, language: str = "") -> dict[str, Any]:
    """The view for views.publish; `more`: what a button asked for.

    `channel` is this person's direct message channel.
    """
    about, nothing = AnswerRef(channel=channel), say("home_nothing", language)
    buttons = [
        {
            "type": "button",
            "action_id": f"{ACTION}:home:{n}",
            "text": _plain(say(key, language)),
            "value": write(f"{SHOW}:{command}", AnswerRef()),
        }
        for n, (key, command) in enumerate(_SHOWN)
    ]
    blocks = [
        {"type": "header", "text": _plain("goodbot")},
        *_sections(status or nothing),
        {"type": "actions", "elements": buttons},
    ]
    if more is not None:
        blocks += [{"type": "divider"}, *_sections(more or nothing)]
    return {"type": "home", "private_metadata": about.dump(), "blocks": blocks}


def _sections(text: str) -> list[dict[str, Any]]:
    parts = split(text, _SECTION)[:_SECTIONS]
    return [{"type": "section", "text": _plain(part)} for part in parts]


def _plain(text: str) -> dict[str, Any]:
    return {"type": "plain_text", "text": text}
