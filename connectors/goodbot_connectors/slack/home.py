# SPDX-License-Identifier: Apache-2.0
"""The Home tab: what `status` says, and what one of its buttons asked for.

Opening the tab is the command `status`, a button another; their answers are shown there and nowhere
else. All of it is plain text: it may quote people and models.
"""

from __future__ import annotations

from typing import Any

from goodbot.base.text import split

from goodbot_connectors.slack.presses import ACTION, SHOW, AnswerRef, write

NOTHING = "There is nothing here for you."
_SHOWN = (("Refresh", "status"), ("Last answers", "history 10"), ("Help", "help"))
"""For everybody, since only the core knows who may what; whoever may not gets `NOTHING`."""
_SECTION = 2900
_SECTIONS = 20


def view(*, channel: str, status: str, more: str = "") -> dict[str, Any]:
    """The view for views.publish. `channel` is this person's direct message channel."""
    about = AnswerRef(channel=channel)
    buttons = [
        {
            "type": "button",
            "action_id": f"{ACTION}:home:{n}",
            "text": _plain(label),
            "value": write(f"{SHOW}:{command}", AnswerRef()),
        }
        for n, (label, command) in enumerate(_SHOWN)
    ]
    blocks = [
        {"type": "header", "text": _plain("goodbot")},
        *_sections(status or NOTHING),
        {"type": "actions", "elements": buttons},
    ]
    if more:
        blocks += [{"type": "divider"}, *_sections(more)]
    return {"type": "home", "private_metadata": about.dump(), "blocks": blocks}


def _sections(text: str) -> list[dict[str, Any]]:
    parts = split(text, _SECTION)[:_SECTIONS]
    return [{"type": "section", "text": _plain(part)} for part in parts]


def _plain(text: str) -> dict[str, Any]:
    return {"type": "plain_text", "text": text}
