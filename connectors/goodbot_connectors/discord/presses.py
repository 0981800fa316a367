# SPDX-License-Identifier: Apache-2.0
"""What a button carries, and what a form is about: keys to look up, never trusted.

Discord gives a custom id back as we wrote it, also after a restart and for a message of last year:
nothing is registered for it. Who presses, where, is taken from Discord's own fields.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass

LIMIT = 100
"""Characters of a custom id (discord.com/developers/docs/components/reference#custom-id)."""
EXPLAIN = "explain"
"""The button that opens the form for a reason and a better answer: the connector's own."""
OPINION = "opinion"
"""The action of that form."""

_OURS = "gb"
_TURN = re.compile(r"[\w-]{0,48}", re.ASCII)
_MESSAGE = re.compile(r"[0-9]{0,19}", re.ASCII)
_KEPT = "#"


@dataclass(frozen=True, slots=True)
class AnswerRef:
    """Which answer a button or a form is about."""

    turn: str = ""
    message: str = ""
    """Its id; empty for a button under the message itself, which Discord names."""


def write(action: str, about: AnswerRef) -> str:
    """The custom id of one button; see `too_long` for what is to be kept then."""
    whole = _whole(action, about)
    return whole if len(whole) <= LIMIT else _whole(key(action), about)


def too_long(action: str, about: AnswerRef) -> bool:
    """Whether the custom id has a key, and the action must be kept under it."""
    return len(_whole(action, about)) > LIMIT


def key(action: str) -> str:
    """The key of an action that does not fit."""
    return _KEPT + hashlib.sha256(action.encode()).hexdigest()[:24]


def read(custom_id: str, kept: Mapping[str, str] | None = None) -> tuple[str, AnswerRef]:
    """Action and answer; no action when it is no button of ours. `kept` is what keys stand for."""
    ours, turn, message, action = (*custom_id.split("|", 3), "", "", "")[:4]
    if ours != _OURS or not _TURN.fullmatch(turn) or not _MESSAGE.fullmatch(message):
        return "", AnswerRef()
    if action.startswith(_KEPT):
        action = (kept or {}).get(action, "")
    return action, AnswerRef(turn=turn, message=message)


def _whole(action: str, about: AnswerRef) -> str:
    return f"{_OURS}|{about.turn}|{about.message}|{action}"
