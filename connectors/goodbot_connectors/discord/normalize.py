# SPDX-License-Identifier: Apache-2.0
"""Discord's dispatches → events. Pure: JSON in, values out; it never raises, whatever the JSON holds.

Fields as in discord.com/developers/docs: messages, reactions, interactions. What is not certain to come
from a person who acts now is dropped: bots, webhooks, announcements of other servers, and channel talk
that is not meant for us, whose text goes no further than this module. A forwarded message is noted,
never obeyed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

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

from goodbot_connectors.discord import commands, emoji, forms, markdown
from goodbot_connectors.discord.identity import BotIdentity
from goodbot_connectors.discord.places import THREADS, Places
from goodbot_connectors.discord.presses import EXPLAIN, OPINION, AnswerRef, read
from goodbot_connectors.discord.render import EPHEMERAL
from goodbot_connectors.discord.snowflake import identifier, order
from goodbot_connectors.kit.fields import Json, as_json, items, string, sub

CONNECTOR = "discord"
DEFAULT, REPLY = 0, 19
"""The types of message that people write."""
_CROSSPOST, _VOICE = 1 << 1, 1 << 13
COMMAND, COMPONENT, FORM = 2, 3, 5
"""The types of interaction that we take."""
_BOT_DM = 1
_DM = 1
_FILES, _NAME = 10, 80


class Stamp(NamedTuple):
    """When something came that has no id of its own, and where in the session: the same on a replay."""

    id: str
    order: OrderKey


@dataclass(frozen=True, kw_only=True, slots=True)
class Normalizer:
    """Turns dispatches for one account into events."""

    me: BotIdentity
    values: Mapping[str, float]
    """A rating for each emoji that is one, as `emoji.key` writes it."""
    places: Places
    actions: Mapping[str, str] = field(default_factory=dict[str, str])
    """Actions that did not fit a button, by their key."""
    offers: Mapping[str, str] = field(default_factory=dict[str, str])
    """Of an offer in a direct message, the answer it is about: see `Offers.place`."""
    content: bool = False
    """Whether all words of threads come, so that they need no mention."""

    def events(self, name: str, data: object, stamp: Stamp) -> tuple[Event, ...]:
        """The events of one dispatch, mostly one or none; a form that was sent gives up to four."""
        json = as_json(data)
        if name == "MESSAGE_CREATE":
            found = self._message(json)
        elif name in ("MESSAGE_REACTION_ADD", "MESSAGE_REACTION_REMOVE"):
            found = self._reaction(json, stamp, added=name.endswith("ADD"))
        elif name == "INTERACTION_CREATE":
            found = self._interaction(json)
        else:
            found = iter(())
        return tuple(found)

    def _message(self, message: Json) -> Iterator[Event]:
        user, id_ = self._user(sub(message, "author")), identifier(message.get("id"))
        channel = self._channel(message)
        kind, flags = message.get("type"), message.get("flags")
        if user is None or channel is None or not id_ or kind not in (DEFAULT, REPLY):
            return
        if message.get("webhook_id") or not isinstance(flags, (int, type(None))) or (flags or 0) & _CROSSPOST:
            return
        called = any(identifier(one.get("id")) == self.me.user for one in items(message, "mentions"))
        reply_to, to_us = self._reply_to(message)
        private = channel.kind is ChannelKind.PRIVATE
        ours = self.content and self.places.ours(channel.thread)
        if not (private or called or to_us or ours):
            return
        words = markdown.read(string(message, "content"), self.me.user, items(message, "mentions"))
        common: dict[str, Any] = {
            "event_id": f"message:{id_}",
            "order": order(id_),
            "user": user,
            "channel": channel,
            "message_id": id_,
            "reply_to": reply_to,
        }
        slash = f"/{commands.SLASH}"
        verbs = (slash, commands.SLASH) if called else (slash,) if private else ()
        if typed := typed_behind(words.ids, *verbs):
            yield CommandEvent(**common, name=typed[0], args=typed[1])
            return
        attached = tuple(_attachments(message, flags or 0))
        to_others = words.to_others and not (private or called or to_us)
        if (words.text or attached) and not to_others:
            yield MessageEvent(**common, text=words.text, addressed=True, attachments=attached)

    def _reply_to(self, message: Json) -> tuple[str, bool]:
        """The id of the message that this one answers, here, and whether that one is ours."""
        reference = sub(message, "message_reference")
        here = identifier(reference.get("channel_id")) in ("", identifier(message.get("channel_id")))
        if reference.get("type") not in (None, 0) or not here:
            return "", False
        author = identifier(sub(message, "referenced_message", "author").get("id"))
        return identifier(reference.get("message_id")), author == self.me.user

    def _reaction(self, json: Json, stamp: Stamp, *, added: bool) -> Iterator[Event]:
        """The author of the message is not always told: then the core knows whose it is."""
        user_id, message_id = identifier(json.get("user_id")), identifier(json.get("message_id"))
        channel, author = self._channel(json), identifier(json.get("message_author_id"))
        name = emoji.name(sub(json, "emoji"))
        value = self.values.get(emoji.key(name))
        who = sub(json, "member", "user")
        if value is None or channel is None or not user_id or not message_id:
            return
        if user_id == self.me.user or who.get("bot") or (author and author != self.me.user):
            return
        yield RatingEvent(
            event_id=f"reaction:{stamp.id}",
            order=stamp.order,
            user=self._person(user_id),
            channel=channel,
            kind=RatingKind.RATE if added else RatingKind.RETRACT,
            message_id=message_id,
            source=emoji.source(name, burst=json.get("burst") is True),
            value=value if added else None,
        )

    def _interaction(self, json: Json) -> Iterator[Event]:
        id_, user = identifier(json.get("id")), self.actor(json)
        channel, data = self._place(json), sub(json, "data")
        if not id_ or user is None or channel is None:
            return
        common: dict[str, Any] = {
            "event_id": f"interaction:{id_}",
            "order": order(id_),
            "user": user,
            "channel": channel,
        }
        kind = json.get("type")
        if kind == COMMAND and data.get("type") == 1 and string(data, "name") == commands.SLASH:
            name, args = commands.typed(data)
            yield CommandEvent(**common, name=name, args=args)
        elif kind == COMMAND and (rated := rating(commands.entry(data))):
            about = target(data, self.me.user)
            if about is not None:
                yield RatingEvent(
                    **common,
                    kind=RatingKind.RATE,
                    message_id=about.message,
                    source=rated.source,
                    value=rated.value,
                )
        elif kind == COMPONENT:
            yield from self._press(json, common)
        elif kind == FORM:
            yield from self._form(json, common)

    def _press(self, json: Json, common: dict[str, Any]) -> Iterator[Event]:
        action, about = read(string(sub(json, "data"), "custom_id"), self.actions)
        where = self.offered(identifier(sub(json, "message").get("id")))
        common |= {"channel": where[0]} if where else {}
        about = self.about(json, about)
        common |= {"turn": about.turn, "message_id": about.message}
        if rated := rating(action):
            yield RatingEvent(**common, kind=RatingKind.RATE, source=rated.source, value=rated.value)
        elif action not in ("", EXPLAIN, OPINION):
            yield PressEvent(**common, action=action)

    def _form(self, json: Json, common: dict[str, Any]) -> Iterator[Event]:
        action, about = read(string(sub(json, "data"), "custom_id"))
        if action != OPINION or not (about.turn or about.message):
            return
        where = self.offered(identifier(sub(json, "message").get("id")))
        common |= {"channel": where[0]} if where else {}
        told = forms.answers(sub(json, "data"))
        said: list[dict[str, Any]] = [
            {"kind": RatingKind.RATE, "source": rated.source, "value": rated.value}
            for name in ("verdict", "stars")
            if (rated := rating(told.get(name, "")))
        ]
        for kind, name in ((RatingKind.COMMENT, "reason"), (RatingKind.BETTER, "better")):
            if text := clean(told.get(name, "")).strip():
                said.append({"kind": kind, "text": text})
        id_ = common["event_id"].partition(":")[2]
        for n, words in enumerate(said):
            one = {"event_id": f"{common['event_id']}:{n}", "order": order(id_, n)}
            yield RatingEvent(**common | one, message_id=about.message, turn=about.turn, **words)

    def about(self, json: Json, written: AnswerRef) -> AnswerRef:
        """The answer that a button is about: it may stand under it, or in a message about it."""
        message = identifier(sub(json, "message").get("id"))
        if where := self.offered(message):
            return AnswerRef(written.turn, where[1])
        under = "" if ephemeral(json) else message
        return AnswerRef(written.turn, written.message or under)

    def offered(self, message: str) -> tuple[ChannelRef, str] | None:
        """The place and the message of the answer that an offer in a direct message is about."""
        _, channel, thread, about, *_ = (*self.offers.get(message, "").split(" "), "", "", "", "")
        if not identifier(channel):
            return None
        return self._ref(channel, ChannelKind.SHARED, identifier(thread)), identifier(about)

    def actor(self, interaction: Json) -> UserRef | None:
        """Who used an interaction of ours; in a server they come as a member."""
        if identifier(interaction.get("application_id")) != self.me.application:
            return None
        who = sub(interaction, "member", "user") or sub(interaction, "user")
        return self._user(who, string(interaction, "locale"))

    def _user(self, user: Json, language: str = "") -> UserRef | None:
        """Who acts; None for bots, ourselves, or nobody in particular."""
        id_ = identifier(user.get("id"))
        if not id_ or user.get("bot") or user.get("system") or id_ == self.me.user:
            return None
        return self._person(id_, clean(string(user, "global_name") or string(user, "username")), language)

    def _person(self, id_: str, name: str = "", language: str = "") -> UserRef:
        return UserRef(connector=CONNECTOR, account=self.me.user, id=id_, name=name, language=language)

    def _channel(self, json: Json) -> ChannelRef | None:
        """Where a message stands; only a direct message with us has no server."""
        id_ = identifier(json.get("channel_id"))
        if not id_:
            return None
        if not json.get("guild_id"):
            return self._ref(id_, ChannelKind.PRIVATE)
        parent = self.places.parent(id_) or ""
        return self._ref(parent or id_, ChannelKind.SHARED, id_ if parent else "")

    def _place(self, json: Json) -> ChannelRef | None:
        """Where an interaction happened; with us in nobody else's chat, but it may be anywhere."""
        inside = sub(json, "channel")
        id_ = identifier(json.get("channel_id")) or identifier(inside.get("id"))
        if not id_:
            return None
        context = json.get("context")
        dm = inside.get("type") == _DM and not json.get("guild_id")
        if context == _BOT_DM or (context is None and dm):
            return self._ref(id_, ChannelKind.PRIVATE)
        thread = inside.get("type") in THREADS
        parent = identifier(inside.get("parent_id")) if thread else self.places.parent(id_) or ""
        return self._ref(parent or id_, ChannelKind.SHARED, id_ if parent else "")

    def _ref(self, id_: str, kind: ChannelKind, thread: str = "") -> ChannelRef:
        return ChannelRef(connector=CONNECTOR, account=self.me.user, id=id_, kind=kind, thread=thread)


def target(data: Json, me: str) -> AnswerRef | None:
    """The answer of ours on which a context menu was opened; None for somebody else's message."""
    id_ = identifier(data.get("target_id"))
    message = sub(data, "resolved", "messages", id_)
    return AnswerRef(message=id_) if id_ and identifier(sub(message, "author").get("id")) == me else None


def ephemeral(json: Json) -> bool:
    """Whether a button stood in a message that only one person sees."""
    flags = sub(json, "message").get("flags")
    return isinstance(flags, int) and bool(flags & EPHEMERAL)


def _attachments(message: Json, flags: int) -> Iterator[str]:
    for file in list(items(message, "attachments"))[:_FILES]:
        kind = string(file, "content_type")
        if flags & _VOICE:
            yield "voice message"
        elif kind.startswith("image/"):
            yield "image"
        else:
            name = " ".join(clean(string(file, "filename")).split())[:_NAME]
            yield f"file {name}" if name else "file"
    for sticker in list(items(message, "sticker_items"))[:_FILES]:
        yield f"sticker {' '.join(clean(string(sticker, 'name')).split())[:_NAME]}".rstrip()
    if sub(message, "poll"):
        yield "poll"
    if next(items(message, "message_snapshots"), None) is not None:
        yield "forwarded message"
