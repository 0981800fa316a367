"""Events as they come in: made fit to be stored, and told apart. Pure."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from goodbot import buttons
from goodbot.events import (
    CommandEvent,
    Event,
    MessageEvent,
    PressEvent,
    RatingEvent,
    RatingKind,
    Receipt,
)
from goodbot.text import clean

_LONGEST = 10_000
"""Characters of a reason or of a better answer: no answer of ours gets as long."""
_NAMES, _NAME = 10, 80
"""Of the files that came with a message, so many are named, with so many characters."""


def storable(event: Event) -> Event:
    """The event with its foreign words such as a database takes them; a poison one comes for ever."""
    words: dict[str, Any] = {
        name: clean(text)
        for name in ("text", "name", "args", "action")
        if isinstance(text := getattr(event, name, None), str) and not text.isascii()
    }
    if isinstance(event, MessageEvent) and event.attachments:
        names = (" ".join(clean(name).split())[:_NAME] for name in event.attachments[:_NAMES])
        words["attachments"] = tuple(names)
    return replace(event, **words) if words else event


def to_do(event: Event, receipt: Receipt) -> Event:
    """What waits in the inbox: with a press on a button, the answer that it was found to mean."""
    retried = isinstance(event, PressEvent) and receipt.turn
    return replace(event, turn=receipt.turn) if retried else event


def is_command(event: Event) -> bool:
    """Whether it is a command, typed or pressed."""
    return isinstance(event, CommandEvent) or (
        isinstance(event, PressEvent) and buttons.is_command(event)
    )


def is_rating(event: Event, kind: RatingKind) -> bool:
    """Whether it is a rating event of this kind."""
    return isinstance(event, RatingEvent) and event.kind is kind


def place(event: Event) -> object:
    """Who touched which message when: the same for both halves of a reaction that was changed."""
    message = event.message_id if isinstance(event, RatingEvent) else ""
    return (event.user.id, event.channel.id, message, event.order.time_ms)


def unfit(text: str) -> str:
    """Why a reason or a better answer cannot be kept, in one sentence; empty if it can."""
    if not text.strip():
        return "There was nothing in it: say it in a few words."
    return f"That is too long: at most {_LONGEST} characters." if len(text) > _LONGEST else ""
