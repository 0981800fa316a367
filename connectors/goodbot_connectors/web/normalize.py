# SPDX-License-Identifier: Apache-2.0
"""What a page sends → one event. Pure: JSON in, a value out; UsageError with a sentence for all else.

Each has an `id` of the page's own, which makes sending it again harmless; `at`, when it was done, in
milliseconds of our clock as the page knows it; and `in`, the conversation:

- `{"say": "…"}` is answered; `/rl NAME ARGS` typed there is a command, and so is `/NAME ARGS`;
- `{"press": "ACTION", "turn", "message"}` is a button; of any connector's answer if it rates;
- `{"undo": "SOURCE", "turn"}` takes back what a button said: `button`, `stars`, or all that was said;
- `{"comment": "…", "turn"}` is what was wrong, `{"better": "…", "turn"}` what it should have been.

What is no event (`{"stop": ENTRY}`, `{"rename": "…"}`, `{"delete": true}`) is the connector's own affair.
"""

from __future__ import annotations

from typing import Any

from goodbot.api.actions import rating
from goodbot.api.commands import command_in
from goodbot.api.events import (
    ChannelKind,
    ChannelRef,
    CommandEvent,
    Event,
    MessageEvent,
    OrderKey,
    PressEvent,
    RatingEvent,
    RatingKind,
    UserRef,
)
from goodbot.api.texts import say
from goodbot.base.errors import UsageError
from goodbot.base.redact import redact
from goodbot.base.text import clean

from goodbot_connectors.kit.fields import Json, string

CONNECTOR = "web"
ACCOUNT = "local"
"""There is one account: this daemon's own address."""
LONGEST = 32_000
"""Characters of one message."""
_LONGEST_ENTRY = 64
"""Characters of an entry's id, which may be made of a page's."""
_LONGEST_TITLE = 60
_LATE_MS = 7 * 86_400_000
"""A page that was offline for longer is believed no more about when something was done."""
_EARLY_MS = 2_000
MALFORMED = "That is nothing that goodbot's page would send: reload the page."
_SOURCES = ("", "button", "stars")
_TYPED = "page"
_LONGEST_ACTION = 500


def user_ref(user: str, language: str = "") -> UserRef:
    """A person who is signed in."""
    return UserRef(connector=CONNECTOR, account=ACCOUNT, id=user, language=language)


def channel_ref(user: str, conversation: str) -> ChannelRef:
    """One conversation of a person with the bot."""
    return ChannelRef(
        connector=CONNECTOR, account=ACCOUNT, id=user, kind=ChannelKind.PRIVATE, thread=conversation
    )


def identifier(value: object, longest: int = 40) -> str:
    """`value` if it can be an id that a page makes up, else nothing."""
    if not isinstance(value, str) or not 1 <= len(value) <= longest or not value.isascii():
        return ""
    return value if value.replace("-", "").replace("_", "").isalnum() else ""


def event(json: Json, *, user: str, alias: str, now_ms: int, language: str = "") -> Event:
    """The event that a page sent; `alias` keeps the ids that one person makes up from another's.

    Raises UsageError.
    """
    id_, place = identifier(json.get("id")), identifier(json.get("in"))
    if not id_ or not place:
        raise UsageError(MALFORMED)
    common: dict[str, Any] = {
        "event_id": f"{alias}-{id_}",
        "order": OrderKey(_time(json.get("at"), now_ms), id_, ours=True),
        "user": user_ref(user, language),
        "channel": channel_ref(user, place),
    }
    turn = clean(string(json, "turn"))[:64]
    message = identifier(json.get("message"), _LONGEST_ENTRY)
    about: dict[str, Any] = {**common, "turn": turn, "message_id": message}
    match json:
        case {"say": str(text)}:
            return _said(_fit(text, language), id_, common)
        case {"press": str(action)} if len(action) <= _LONGEST_ACTION:
            pressed = rating(action) if turn else None
            if pressed is None:
                return PressEvent(**about, action=clean(action))
            source, value = pressed
            return RatingEvent(**about, kind=RatingKind.RATE, source=source, value=value)
        case {"undo": str(source)} if turn and source in _SOURCES:
            return RatingEvent(**about, kind=RatingKind.RETRACT, source=source)
        case {"comment": str(text)} if turn:
            return RatingEvent(**about, kind=RatingKind.COMMENT, source=_TYPED, text=_fit(text, language))
        case {"better": str(text)} if turn:
            return RatingEvent(**about, kind=RatingKind.BETTER, source=_TYPED, text=_fit(text, language))
        case _:
            raise UsageError(MALFORMED)


def line(title: str) -> str:
    """What a person calls a conversation, in one line that is not too long."""
    return " ".join(redact(clean(title)).split())[:_LONGEST_TITLE]


def own_id(event_id: str) -> str:
    """The id that the page gave to what became this event."""
    return event_id.partition("-")[2]


def _said(text: str, id_: str, common: dict[str, Any]) -> Event:
    if typed := command_in(text):
        return CommandEvent(**common, name=typed[0], args=typed[1], message_id=id_)
    return MessageEvent(**common, text=text, message_id=id_, addressed=True)


def _fit(text: str, language: str) -> str:
    text = redact(clean(text)).strip()  # as it is stored: the page keeps it, too
    if not text:
        raise UsageError(say("empty", language))
    if len(text) > LONGEST:
        raise UsageError(say("too_long", language, most=LONGEST))
    return text


def _time(at: object, now_ms: int) -> int:
    """When it was done; by the page's word, so that what is sent again is the same event."""
    if type(at) is int and now_ms - _LATE_MS <= at <= now_ms + _EARLY_MS:
        return at
    return now_ms
