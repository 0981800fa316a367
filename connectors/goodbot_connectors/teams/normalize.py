# SPDX-License-Identifier: Apache-2.0
"""Teams's activities → events. Pure: JSON in, values out; it never raises, whatever the JSON holds.

Who acts, where and when is taken from Teams's own fields, which its token vouches for. What is not
certain to come from a person of our tenant who acts now is dropped: bots, edits, and talk in groups
that is not meant for us, whose text goes no further than this module.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from goodbot.api.actions import rating
from goodbot.api.commands import typed_behind
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
from goodbot.base.text import clean

from goodbot_connectors.kit.fields import Json, as_json, items, string, sub
from goodbot_connectors.teams import contents, feedback
from goodbot_connectors.teams.presses import EXPLAIN, ButtonPress, key, pressed
from goodbot_connectors.teams.references import THREAD

CONNECTOR = "teams"
_KINDS = {"personal": ChannelKind.PRIVATE, "groupChat": ChannelKind.SHARED, "channel": ChannelKind.SHARED}
_BOT = "28:"
"""How the ids of bots begin; those of people begin with `29:`."""
_COMMANDS = ("/rl", "rl")


@dataclass(frozen=True, kw_only=True, slots=True)
class Normalizer:
    """Turns activities for one bot into events."""

    account: str
    tenant: str = ""
    """The one organisation that may talk to us; empty for any."""
    values: Mapping[str, float]
    """A rating for each reaction that is one, by `reaction_key`."""
    answers: Mapping[str, str] = field(default_factory=dict[str, str])
    """The turn of each of our latest messages, by `place`; empty for one that is no answer."""

    def events(self, activity: object, now_ms: int = 0) -> tuple[Event, ...]:
        """The events of one activity, mostly one or none. `now_ms` stands in for a missing time."""
        json = as_json(activity)
        user, channel = self._user(json), self.channel(json)
        activity_id = key(string(json, "id"))
        if user is None or channel is None or not activity_id or self._foreign(json):
            return ()
        kind, button = string(json, "type"), pressed(json)
        if kind == "messageReaction":
            found = self._reactions(json)
        elif button is not None:
            found = self._pressed(json, button)
        elif kind == "invoke":
            found = self._feedback(json, channel)
        elif kind == "message":
            found = self._message(json, channel)
        else:
            found = ()
        told = _milliseconds(string(json, "timestamp"))
        time_ms, ours = (max(now_ms, 0), True) if told is None else (told, False)
        place = string(sub(json, "conversation"), "id")
        return tuple(
            made(
                event_id=f"{place}:{activity_id}:{n}",
                user=user,
                channel=channel,
                order=OrderKey(time_ms, f"{activity_id}:{n}", ours),
                **fields,
            )
            for n, (made, fields) in enumerate(found)
        )

    def _message(self, activity: Json, channel: ChannelRef) -> Iterator[_Found]:
        message = key(string(activity, "id"))
        text, mentioned = contents.text(activity, string(sub(activity, "recipient"), "id"))
        ours = next((m for m in contents.replied(activity) if place(channel, m) in self.answers), "")
        private = channel.kind is ChannelKind.PRIVATE
        if not (private or mentioned or ours):
            return
        # As people type it. A bare `rl` is one only where they called us by name.
        if typed := typed_behind(text, *(_COMMANDS if mentioned else _COMMANDS[:1])):
            name, args = typed
            yield CommandEvent, {"name": name, "args": args, "reply_to": ours, "message_id": message}
            return
        attached = contents.attachments(activity)
        if text or attached:
            yield (
                MessageEvent,
                {
                    "text": text,
                    "message_id": message,
                    "addressed": True,
                    "reply_to": ours,
                    "attachments": attached,
                },
            )

    def _reactions(self, activity: Json) -> Iterator[_Found]:
        message = key(string(activity, "replyToId"))
        if not message:
            return
        for name, sign in (("reactionsRemoved", -1), ("reactionsAdded", 1)):
            for reaction in items(activity, name):
                kind = clean(string(reaction, "type"))[:100]
                value = self.values.get(reaction_key(kind))
                if value is not None:
                    yield (
                        RatingEvent,
                        {
                            "kind": RatingKind.RATE if sign > 0 else RatingKind.RETRACT,
                            "message_id": message,
                            "source": f"reaction:{kind}",
                            "value": value if sign > 0 else None,
                        },
                    )

    def _pressed(self, activity: Json, button: ButtonPress) -> Iterator[_Found]:
        """A button, or the form that one has opened; opening a form says nothing yet."""
        action, about = button
        message = about.message or key(string(activity, "replyToId"))
        meant = {"message_id": message, "turn": about.turn}
        name = string(activity, "name")
        if name == "task/submit":
            yield from _said(feedback.words(sub(activity, "value", "data")), meant)
        elif name == "task/fetch" or action == EXPLAIN:
            return
        elif rated := rating(action):
            yield (
                RatingEvent,
                {"kind": RatingKind.RATE, "source": rated.source, "value": rated.value, **meant},
            )
        else:
            yield PressEvent, {"action": action, **meant}

    def _feedback(self, activity: Json, channel: ChannelRef) -> Iterator[_Found]:
        """Teams's own 👍 and 👎, pressed (`message/fetchTask`) or sent with a reason."""
        given = feedback.read(activity)
        message = key(string(activity, "replyToId"))
        if given is None or not message:
            return
        meant = {"message_id": message, "turn": self.answers.get(place(channel, message), "")}
        if given.action and (rated := rating(given.action)):
            yield (
                RatingEvent,
                {"kind": RatingKind.RATE, "source": rated.source, "value": rated.value, **meant},
            )
        yield from _said(given.words, meant)

    def _user(self, activity: Json) -> UserRef | None:
        """Who acts; None for a bot, ourselves, or nobody in particular."""
        whose = sub(activity, "from")
        id_ = key(string(whose, "id"))
        if not id_ or id_.startswith(_BOT) or string(whose, "role") in ("bot", "skill"):
            return None
        if id_ == string(sub(activity, "recipient"), "id"):
            return None
        name = " ".join(clean(string(whose, "name")).split())[:100]
        language = string(activity, "locale")
        return UserRef(connector=CONNECTOR, account=self.account, id=id_, name=name, language=language)

    def channel(self, activity: Json) -> ChannelRef | None:
        """Where it happened. The messages of a thread in a channel are a conversation of their own."""
        conversation = sub(activity, "conversation")
        id_, _, thread = key(string(conversation, "id")).partition(THREAD)
        kind = _KINDS.get(string(conversation, "conversationType"))
        if not id_ or kind is None:
            return None
        return ChannelRef(connector=CONNECTOR, account=self.account, id=id_, kind=kind, thread=thread)

    def knows(self, activity: Json) -> bool:
        """Whether we may write where an activity comes from: somebody of ours is there with us."""
        somebody = self._user(activity) is not None and self.channel(activity) is not None
        return somebody and not self._foreign(activity)

    def _foreign(self, activity: Json) -> bool:
        """Whether it is, or may be, of another organisation than ours: one is told that is not.

        A chat of two organisations names the one of the chat and the one of the person.
        """
        fields = (
            (sub(activity, "channelData", "tenant"), "id"),
            (sub(activity, "conversation"), "tenantId"),
            (sub(activity, "from"), "tenantId"),
        )
        told = {found.casefold() for json, name in fields if (found := string(json, name).strip())}
        return told != {self.tenant.casefold()} if self.tenant else len(told) > 1


_Found = tuple[type[Any], dict[str, Any]]
"""An event that is to be made, without what every event of its activity has."""


def place(channel: ChannelRef, message: str) -> str:
    """A message of a conversation, as a key. Threads count as their channel: its ids are unique there."""
    return f"{channel.id} {message}"


def reaction_key(name: str) -> str:
    """A reaction without its skin tone: `1f44d_thumbsup-tone3` is `1f44d_thumbsup`."""
    base, _, tone = name.rpartition("-tone")
    return base.casefold() if base and tone in ("1", "2", "3", "4", "5") else name.casefold()


def _said(words: feedback.TypedFeedback, meant: Mapping[str, str]) -> Iterator[_Found]:
    for kind, text in ((RatingKind.COMMENT, words.reason), (RatingKind.BETTER, words.better)):
        if text:
            yield RatingEvent, {"kind": kind, "source": "form", "text": text, **meant}


def _milliseconds(timestamp: str) -> int | None:
    try:
        time = datetime.fromisoformat(timestamp)
        seconds = (time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp()
        return max(round(seconds * 1000), 0)
    except (ValueError, OverflowError):
        return None
