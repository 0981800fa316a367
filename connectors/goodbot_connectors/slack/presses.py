# SPDX-License-Identifier: Apache-2.0
"""What a button carries, and what a modal is about: keys to look up, never trusted.

Slack gives both back as we wrote them; who acts and where is taken from Slack's own fields.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass

from goodbot.api.events import OrderKey

from goodbot_connectors.kit.fields import Json, as_json, items, string, sub

ACTION = "goodbot"
"""How the action id of every button of ours begins."""
EXPLAIN = "explain"
"""The button that opens the modal for a reason and a better answer: the connector's own."""
SHOW = "show"
"""`show:NAME ARGS`, a button of the Home tab: that command's answer is shown there."""
MODAL = "goodbot_opinion"
"""The callback id of the modal."""
SHORTCUT = "goodbot_rate"
"""The callback id of the message shortcut."""
SLASH = "/rl"
"""The slash command."""
_LONGEST = 1900
"""Characters of a button's value; Slack takes 2000."""


@dataclass(frozen=True, slots=True)
class AnswerRef:
    """Which answer a button or a modal is about."""

    turn: str = ""
    message: str = ""
    """Its `ts`; empty for a button under the message itself, whose `ts` Slack tells."""
    channel: str = ""
    thread: str = ""

    def dump(self) -> str:
        """For a modal's `private_metadata`."""
        return json.dumps(asdict(self))


def load(text: str) -> AnswerRef:
    """What `AnswerRef.dump` wrote; about nothing if that is not what it is."""
    try:
        fields = as_json(json.loads(text))
    except (ValueError, RecursionError):
        return AnswerRef()
    return AnswerRef(*(key(string(fields, name)) for name in AnswerRef.__dataclass_fields__))


def write(action: str, about: AnswerRef) -> str:
    """A button's value. Raises ValueError when Slack would not take it."""
    value = f"{about.turn} {about.message} {action}"
    if len(value) > _LONGEST:
        raise ValueError("a Slack button holds 2000 characters")
    return value


def read(value: str) -> tuple[str, AnswerRef]:
    """Action and answer of a button's value; no action when it is not ours."""
    turn, _, rest = value.partition(" ")
    message, _, action = rest.partition(" ")
    return action[:_LONGEST], AnswerRef(turn=key(turn), message=key(message))


def key(text: str) -> str:
    """An id as Slack and the core make them; anything else is none."""
    good = text.isascii() and len(text) <= 64 and text.replace(".", "").replace("-", "").isalnum()
    return text if good else ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Opening:
    """A press that asks for the modal."""

    trigger: str
    """Slack's `trigger_id`, good for three seconds."""
    user: str
    about: AnswerRef
    rate: bool
    """Whether good or bad is asked, too: nothing has been said of the answer yet."""
    ours: bool = True
    """False for a message that is not ours and cannot be rated."""


def opening(body: Json, me: str) -> Opening | None:
    """The modal that this interaction asks for, if it asks for one."""
    kind, trigger = string(body, "type"), string(body, "trigger_id")
    user = key(string(sub(body, "user"), "id"))
    if not trigger or not user:
        return None
    if kind == "message_action" and string(body, "callback_id") == SHORTCUT:
        message = sub(body, "message")
        about = AnswerRef(
            message=key(string(message, "ts")),
            channel=key(string(sub(body, "channel"), "id")),
            thread=key(string(message, "thread_ts")),
        )
        ours = string(message, "user") == me and bool(about.message)
        return Opening(trigger=trigger, user=user, about=about, rate=True, ours=ours)
    if kind != "block_actions":
        return None
    for press in pressed(body):
        if press.action == EXPLAIN:
            return Opening(trigger=trigger, user=user, about=press.about, rate=False)
    return None


def actor(body: Json) -> str:
    """The id of whoever acts in a payload of any kind; empty for nobody in particular."""
    event = sub(body, "event")
    found = string(event, "user") or string(sub(body, "user"), "id") or string(body, "user_id")
    return key(found)


@dataclass(frozen=True, kw_only=True, slots=True)
class Press:
    """One button of ours that was pressed."""

    action: str
    about: AnswerRef
    at: str
    """Slack's `action_ts`."""


def pressed(body: Json) -> list[Press]:
    """The buttons of ours in a `block_actions` payload, and where they stood."""
    container = sub(body, "container")
    channel = key(string(sub(body, "channel"), "id") or string(container, "channel_id"))
    thread = key(string(container, "thread_ts") or string(sub(body, "message"), "thread_ts"))
    under = "" if container.get("is_ephemeral") else key(string(container, "message_ts"))
    found: list[Press] = []
    for item in items(body, "actions"):
        if not string(item, "action_id").startswith(ACTION):
            continue
        action, about = read(string(item, "value"))
        place = AnswerRef(about.turn, under or about.message, channel, thread)
        if action:
            found.append(Press(action=action, about=place, at=key(string(item, "action_ts"))))
    return found


def order_of(ts: str) -> OrderKey | None:
    """Slack's time of an event: seconds, a dot, six digits that also tell equal times apart."""
    seconds, _, micros = ts.partition(".")
    if not (ts.isascii() and seconds.isdecimal() and len(seconds) <= 11 and len(micros) <= 9):
        return None
    if micros and not micros.isdecimal():
        return None
    micros = micros.ljust(6, "0")
    return OrderKey(int(seconds) * 1000 + int(micros[:3]), f"{seconds:0>11}.{micros:0<9}")
