# SPDX-License-Identifier: Apache-2.0
"""Events as they come in: made fit to be stored, and told apart. Pure."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, TypeVar

from goodbot.access.limits import AT_WORK, BUSY, TOO_MANY
from goodbot.api import actions
from goodbot.api.commands import rates
from goodbot.api.events import (
    CaptureEvent,
    ChannelKind,
    CommandEvent,
    Event,
    MessageEvent,
    Outcome,
    PressEvent,
    RatingEvent,
    RatingKind,
    Receipt,
)
from goodbot.api.sentences import Reason, because
from goodbot.api.texts import language_of
from goodbot.base.redact import redact
from goodbot.base.text import clean
from goodbot.conversation import capture_rules

_LONGEST = 10_000
"""Characters of a reason or of a better answer: no answer of ours gets as long."""
_LONGEST_ID = 512
"""Characters of an id, a trace, a digest or a model's name."""
_IDS = ("event_id", "digest", "message_id", "turn", "trace", "retracts", "model")
E = TypeVar("E", bound=Event)
_NAMES, _NAME = 10, 80
"""Of the files that came with a message, so many are named, with so many characters."""


def refused(event: Event) -> Receipt | None:
    """The receipt of an event that cannot be stored as it is, with the reason; None: it can."""
    wrong = _wrong_id(event)
    if wrong is None and isinstance(event, CaptureEvent):
        wrong = capture_rules.unfit(event)
    if wrong is None:
        return None
    return replace(event.receipt(Outcome.FAILED, wrong), event_id=event.event_id[:_LONGEST_ID])


def _wrong_id(event: Event) -> Reason | None:
    for name in _IDS:
        value = getattr(event, name, "")
        if len(value) > _LONGEST_ID:
            return because("id_too_long", name=name, most=_LONGEST_ID)
        if not value.isascii() and value != clean(value):
            return because("id_broken", name=name)
    return None if event.event_id else because("id_missing")


def again(event: Event, known: Receipt) -> Receipt:
    """What a replay gets: the receipt of then, unless its id was used for something else."""
    if not event.digest or not known.digest or event.digest == known.digest:
        told = event.say(*known.reasons)
        return replace(known, text=told, language=event.user.language) if known.reasons else known
    return event.receipt(Outcome.CONFLICT, because("id_reused"))


def read_by(event: E, language: str) -> E:
    """The event of somebody who reads one of our languages: their platform's word, else `language`.

    What is asked before others is answered before them, and so in `language`.
    """
    heard = isinstance(event, MessageEvent) and event.channel.kind is ChannelKind.SHARED
    read = language_of("" if heard else event.user.language, language)
    return event if read == event.user.language else replace(event, user=replace(event.user, language=read))


def storable(event: E) -> E:
    """The event with its foreign words such as a database takes them; a poison one comes for ever.

    Keys and tokens in what was said are masked.
    """
    if isinstance(event, CaptureEvent):
        return capture_rules.storable(event)
    words: dict[str, Any] = {
        name: clean(text)
        for name in ("text", "name", "args", "action")
        if isinstance(text := getattr(event, name, None), str) and not text.isascii()
    }
    for name in ("text", "name", "args"):
        said = words.get(name, getattr(event, name, ""))
        if (masked := redact(said)) != said:
            words[name] = masked
    if isinstance(event, MessageEvent) and event.attachments:
        names = (" ".join(redact(clean(name)).split())[:_NAME] for name in event.attachments[:_NAMES])
        words["attachments"] = tuple(names)
    return replace(event, **words) if words else event


def to_do(event: Event, receipt: Receipt) -> Event:
    """What waits in the inbox: with a press on a button, the answer that it was found to mean."""
    retried = isinstance(event, PressEvent) and receipt.turn
    return replace(event, turn=receipt.turn) if retried else event


def is_one_too_many(receipt: Receipt) -> bool:
    """Whether it was refused since there were so many before: of those nothing is kept."""
    return any(reason.code in (AT_WORK, BUSY, TOO_MANY) for reason in receipt.reasons)


def is_command(event: Event) -> bool:
    """Whether it is a command, typed or pressed."""
    return isinstance(event, CommandEvent) or (isinstance(event, PressEvent) and actions.is_command(event))


def is_rating_command(event: Event) -> bool:
    """Whether it is a command, typed or pressed, that says what somebody thinks of an answer."""
    typed = actions.typed(event) if isinstance(event, PressEvent) and actions.is_command(event) else event
    return isinstance(typed, CommandEvent) and rates(typed.name)


def is_rating(event: Event, kind: RatingKind) -> bool:
    """Whether it is a rating event of this kind."""
    return isinstance(event, RatingEvent) and event.kind is kind


def place(event: Event) -> object:
    """Who touched which message when: the same for both halves of a reaction that was changed."""
    message = event.message_id if isinstance(event, RatingEvent) else ""
    return (event.user.id, event.channel.id, message, event.order.time_ms)


def unfit(text: str) -> Reason | None:
    """Why a reason or a better answer cannot be kept; None if it can."""
    if not text.strip():
        return because("empty")
    return because("too_long", most=_LONGEST) if len(text) > _LONGEST else None
