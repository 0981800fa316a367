# SPDX-License-Identifier: Apache-2.0
"""What the plugin sends, as events. Pure; `schema.json` beside it says the same to other programs."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from goodbot.api.commands import parted
from goodbot.api.events import (
    CaptureEvent,
    ChannelKind,
    ChannelRef,
    OrderKey,
    RatingEvent,
    RatingKind,
    UserRef,
)
from goodbot.base.errors import UsageError

from goodbot_connectors.kit.fields import Json, items, string
from goodbot_connectors.openclaw import transcript
from goodbot_connectors.telegram.emoji import key as emoji_key

CONNECTOR, ACCOUNT = "openclaw", "local"
TYPES = ("capture", "named", "rating", "reaction", "command")
_LONGEST_ID = 400
_LONGEST_NAME = 200


@dataclass(frozen=True, kw_only=True, slots=True)
class PluginEvent:
    """One event of the plugin: what all of them have, and its own fields in `json`."""

    id: str
    type: str
    user: UserRef
    channel: ChannelRef
    digest: str
    json: Json

    @property
    def name(self) -> str:
        """What the answer that is meant is known by, within its chat; empty for none."""
        return string(self.json, "name")


def read(json_: Json) -> PluginEvent:
    """Raises UsageError with a sentence for what is no event."""
    type_ = string(json_, "type")
    if type_ not in TYPES:
        raise UsageError(f"the type of an event is one of {', '.join(TYPES)}")
    id_ = _text(json_, "id", _LONGEST_ID)
    channel, account = _text(json_, "channel", 64), _text(json_, "account", 64)
    if ":" in channel or ":" in account:
        raise UsageError("a channel and an account have no colon in their names")
    chat, sender = _text(json_, "chat", _LONGEST_NAME), _text(json_, "sender", _LONGEST_NAME)
    kind = ChannelKind.PRIVATE if json_.get("group") is False else ChannelKind.SHARED
    where, who = f"{channel}:{account}:{chat}", f"{channel}:{account}:{sender}"
    return PluginEvent(
        id=id_,
        type=type_,
        digest=_digest(json_),
        json=json_,
        user=UserRef(connector=CONNECTOR, account=ACCOUNT, id=who),
        channel=ChannelRef(connector=CONNECTOR, account=ACCOUNT, id=where, kind=kind),
    )


def capture(sent: PluginEvent, order: OrderKey) -> CaptureEvent:
    """An answer of the agent. Raises UsageError."""
    name = _text(sent.json, "name", _LONGEST_NAME)
    prompt = transcript.messages(items(sent.json, "messages"))
    response = string(sent.json, "answer")
    if not prompt or not response.strip():
        raise UsageError("a capture has messages and an answer")
    trace = string(sent.json, "trace").lower()
    if trace and not (len(trace) == 32 and set(trace) <= set("0123456789abcdef")):
        raise UsageError("a trace is 32 hexadecimal digits")
    return CaptureEvent(
        event_id=sent.id,
        order=order,
        user=sent.user,
        channel=sent.channel,
        digest=sent.digest,
        messages=prompt,
        response=response,
        model=string(sent.json, "model")[:_LONGEST_NAME],
        message_id=name,
        trace=f"w3c:{trace}" if trace else "",
    )


def rating(sent: PluginEvent, order: OrderKey, name: str) -> RatingEvent:
    """A press on a button of ours, under the answer that is known by `name`. Raises UsageError."""
    value = sent.json.get("value")
    if type(value) is not int or value not in (1, -1):
        raise UsageError("a rating's value is 1 or -1")
    return RatingEvent(
        event_id=sent.id,
        order=order,
        user=sent.user,
        channel=sent.channel,
        digest=sent.digest,
        kind=RatingKind.RATE,
        message_id=name,
        source="button",
        value=float(value),
    )


def reaction(
    sent: PluginEvent, order: OrderKey, name: str, values: Mapping[str, float]
) -> RatingEvent | None:
    """Somebody's emoji on an answer; None for one that says nothing of it. Raises UsageError."""
    emoji = emoji_key(_text(sent.json, "emoji", 100).split("::")[0])
    if emoji not in values:
        return None
    added = sent.json.get("added") is not False
    return RatingEvent(
        event_id=sent.id,
        order=order,
        user=sent.user,
        channel=sent.channel,
        digest=sent.digest,
        kind=RatingKind.RATE if added else RatingKind.RETRACT,
        message_id=name,
        source=f"reaction:{emoji}",
        value=values[emoji] if added else None,
    )


def words(sent: PluginEvent) -> tuple[str, str]:
    """The name of a command and what follows it; without a word it is `help`."""
    return parted(string(sent.json, "words").strip()[:_LONGEST_TEXT])


_LONGEST_TEXT = 12_000


def _text(json_: Json, name: str, longest: int) -> str:
    found = string(json_, name)
    if not found or len(found) > longest:
        raise UsageError(f"an event has a {name}, a text of 1 to {longest} characters")
    return found


def _digest(json_: Json) -> str:
    """Of what was sent, but for the time: an event that is sent again is the same event."""
    same: dict[str, Any] = {name: value for name, value in json_.items() if name != "at"}
    return hashlib.sha256(json.dumps(same, sort_keys=True).encode()).hexdigest()
