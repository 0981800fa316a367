# SPDX-License-Identifier: Apache-2.0
"""The platform's events → goodbot's. Pure. Anybody can send any JSON: nothing is presumed."""

from __future__ import annotations

import dataclasses
from typing import Any

from goodbot import (
    ChannelKind,
    ChannelRef,
    CommandEvent,
    Event,
    MessageEvent,
    OrderKey,
    RatingEvent,
    RatingKind,
    UserRef,
)

VALUES = {"👍": 1.0, "👎": -1.0}
COMMAND = "!rl"
_VARIATIONS = "\ufe0f\U0001f3fb\U0001f3fc\U0001f3fd\U0001f3fe\U0001f3ff"


def event(raw: Any, channel: ChannelRef, position: int = 0) -> Event | None:
    """The event that `raw` stands for, None for what does not concern us.

    `position` is its place in the batch: two events may bear the same millisecond.
    """
    me = channel.account
    match raw:
        case {"event_id": str(id_), "sender": str(sender), "origin_server_ts": int(time)}:
            pass
        case _:
            return None
    if sender == me:
        return None
    common: dict[str, Any] = {
        "event_id": id_,
        "order": OrderKey(time, f"{position:06d}"),
        "user": UserRef(connector=channel.connector, account=me, id=sender),
        "channel": channel,
    }
    match raw:
        case {"type": "m.room.message", "content": {"msgtype": "m.text", "body": str()} as content}:
            return _message(content, me, common)
        case {
            "type": "m.reaction",
            "content": {
                "m.relates_to": {
                    "rel_type": "m.annotation",
                    "event_id": str(message),
                    "key": str(key),
                }
            },
        } if (emoji := key.rstrip(_VARIATIONS)) in VALUES:
            return RatingEvent(
                **common,
                kind=RatingKind.RATE,
                message_id=message,
                source=f"reaction:{emoji}",
                value=VALUES[emoji],
            )
        # Whose reaction it was, on what, with which emoji: a redaction says none of that. It may
        # not even have been a reaction; then the core knows no event of that id and does nothing.
        case {"type": "m.room.redaction", "redacts": str(redacted)} | {
            "type": "m.room.redaction",
            "content": {"redacts": str(redacted)},
        }:
            return RatingEvent(**common, kind=RatingKind.RETRACT, retracts=redacted)
        case _:
            return None


def gone(rating: RatingEvent) -> RatingEvent:
    """The retraction of a reaction that is no longer there, whose redaction we never saw."""
    return dataclasses.replace(
        rating,
        event_id=f"{rating.event_id}/gone",
        kind=RatingKind.RETRACT,
        value=None,
        retracts=rating.event_id,
    )


def _message(content: Any, me: str, common: dict[str, Any]) -> Event | None:
    text, reply_to = content["body"].strip(), ""
    match content.get("m.relates_to"):
        case {"rel_type": "m.replace"}:
            return None  # an edit: what was answered stays answered
        case {"m.in_reply_to": {"event_id": str(reply_to)}}:
            pass
        case _:
            pass
    mentioned = False
    match content.get("m.mentions"):
        case {"user_ids": [*users]} if me in users:  # whoever replies to us mentions us too
            mentioned, text = True, _without(me, text)
        case _:
            pass
    word, _, rest = text.partition(" ")
    if word == COMMAND:
        name, _, args = rest.strip().partition(" ")
        return CommandEvent(
            **common, name=name, args=args, reply_to=reply_to, message_id=common["event_id"]
        )
    private = common["channel"].kind is ChannelKind.PRIVATE
    return MessageEvent(
        **common,
        text=text,
        message_id=common["event_id"],
        addressed=private or mentioned,
        reply_to=reply_to,
    )


def _without(me: str, text: str) -> str:
    """The text without our own name in front."""
    for name in (me, me[1:].partition(":")[0]):
        if text.casefold().startswith(name.casefold()):
            return text[len(name) :].lstrip(":, ")
    return text
