# SPDX-License-Identifier: Apache-2.0
"""What a button carries, in at most 64 bytes: keys to look up, which anybody could have made up.

Data is `ACTION:TURN`. An action that does not fit is `#KEY`, and the connector keeps what it stands for.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from typing import NamedTuple

from goodbot.api.actions import COMMAND, HINTS, RETRY, rating
from goodbot.api.events import RatingKind

LIMIT = 64
"""Bytes that a button can carry (core.telegram.org/bots/api#inlinekeyboardbutton)."""
TYPED = {"reason": RatingKind.COMMENT, "better": RatingKind.BETTER}
"""Our own actions: what a person is asked to type after the press."""
NOTE = "note"
"""A button that only says something."""

_TURN = re.compile(r"[\w-]{0,48}", re.ASCII)
_KEPT = "#"


class Data(NamedTuple):
    """What a press asks for; nothing about it is known to be true."""

    action: str
    turn: str


def write(action: str, turn: str = "") -> str:
    """The callback data of one button; see `too_long` for what is to be kept then."""
    data = f"{action}:{turn}"
    return data if len(data.encode()) <= LIMIT else f"{key(data)}:"


def too_long(action: str, turn: str = "") -> bool:
    """Whether the data is a key, and `ACTION:TURN` must be kept under it."""
    return len(f"{action}:{turn}".encode()) > LIMIT


def key(data: str) -> str:
    """The key of data that does not fit."""
    return _KEPT + hashlib.sha256(data.encode()).hexdigest()[:24]


def read(data: str, kept: Mapping[str, str] | None = None) -> Data | None:
    """Action and turn, or None when this is no button of ours; `kept` is what keys stand for."""
    if data.startswith(_KEPT):
        data = (kept or {}).get(data.rstrip(":"), "")
    action, _, turn = data.rpartition(":")
    if not _TURN.fullmatch(turn):
        return None
    name, _, rest = action.partition(":")
    if name == COMMAND:
        return Data(action, turn) if rest.strip() and rest.isprintable() else None
    about_an_answer = rating(action) is not None or action in TYPED or (name == RETRY and rest in HINTS)
    return Data(action, turn) if about_an_answer and turn else None
