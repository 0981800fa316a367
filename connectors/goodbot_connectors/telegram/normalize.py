# SPDX-License-Identifier: Apache-2.0
"""Telegram updates → events. Pure: JSON in, values out; it never raises, whatever the JSON holds.

The fields are those of core.telegram.org/bots/api#update. What is not certain to come from a
person who acts now is dropped: bots, channels that speak through a group, anonymous
administrators, inline results (`via_bot`), edits, and group talk that is not meant for us, whose
text goes no further than this module. A forwarded message is read but never obeyed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from goodbot.api.actions import rating
from goodbot.api.commands import parted
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
from goodbot.base import one_time
from goodbot.base.text import clean

from goodbot_connectors.telegram import attachments, callback, emoji
from goodbot_connectors.telegram.fields import Json, as_json, cut, integer, items, string, sub

CONNECTOR = "telegram"
PREFIX = "rl_"
"""`/rl_good` is `/rl good`: what a menu can offer, for a menu's commands take no words."""
_KINDS = {"private": ChannelKind.PRIVATE, "group": ChannelKind.SHARED, "supergroup": ChannelKind.SHARED}
_START = "start"
"""What a link `t.me/BOT?start=CODE` sends, with the code behind it."""
_COMMAND = re.compile(r"/(rl|start|rl_[a-z0-9]{1,28})", re.ASCII)


@dataclass(frozen=True, kw_only=True, slots=True)
class BotIdentity:
    """Our own account, as getMe tells it."""

    id: str
    username: str


class TypingPrompt(NamedTuple):
    """Somebody pressed a button that asks them to type: see `callback.TYPED`."""

    action: str
    turn: str
    user: UserRef
    channel: ChannelRef
    message_id: int
    """The message under which the button stood."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Normalizer:
    """Turns updates for one account into events."""

    me: BotIdentity
    values: Mapping[str, float]
    """A rating for each emoji that is one, as `emoji.key` writes it."""
    kept: Mapping[str, str] = field(default_factory=dict[str, str])
    """Callback data that did not fit a button, by its key."""

    def events(self, update: object, since_ms: int = 0) -> tuple[Event, ...]:
        """The events of one update, mostly one or none; a changed reaction gives two.

        A press on a button carries no time. `since_ms`, the time of the last event before it (`UpdateTimes`),
        stands in: update ids, which break ties, put it behind that event and before the next.
        """
        json = as_json(update)
        update_id = integer(json, "update_id")
        if update_id is None or update_id < 0:
            return ()
        if message := sub(json, "message"):
            found = self._message(message, update_id)
        elif reaction := sub(json, "message_reaction"):
            found = self._reaction(reaction, update_id)
        elif query := sub(json, "callback_query"):
            found = self._press(query, update_id, since_ms)
        else:
            found = ()
        return tuple(found)

    def _message(self, message: Json, update_id: int) -> Iterator[Event]:
        user, channel = self._user(sub(message, "from")), self._channel(message)
        message_id = integer(message, "message_id")
        if user is None or channel is None or message_id is None or _spoken_for(message):
            return
        common = _common(update_id, 0, integer(message, "date"), user, channel)
        text = clean(string(message, "text") or string(message, "caption"))
        reply_to, to_us = self._reply_to(message)
        if not (message.get("forward_origin") or message.get("forward_date")):
            command = self._command(text, message)
            if command is not None:
                name, args = command
                if name == _START and channel.kind is ChannelKind.PRIVATE and one_time.read(args):
                    # As if the code had been typed.
                    yield MessageEvent(**common, text=args, message_id=str(message_id), addressed=True)
                elif name:
                    yield CommandEvent(
                        **common, name=name, args=args, reply_to=reply_to, message_id=str(message_id)
                    )
                return
        private = channel.kind is ChannelKind.PRIVATE
        stripped, mentioned = self._without_mention(text, message)
        attached = attachments.names(message)
        if (private or to_us or mentioned) and (text or attached):
            yield MessageEvent(
                **common,
                text=_with_quote(message, stripped or text) if to_us else stripped or text,
                message_id=str(message_id),
                addressed=True,
                reply_to=reply_to,
                attachments=attached,
            )

    def _command(self, text: str, message: Json) -> tuple[str, str] | None:
        """Name and arguments of a command at the start; no name when it is another bot's."""
        # What is bold as well is told before it.
        found = (one for one in items(message, "entities") if string(one, "type") == "bot_command")
        entity = next(found, None)
        if entity is None or integer(entity, "offset") != 0:
            return None
        end = max(integer(entity, "length") or 0, 0)
        verb, _, target = text[:end].casefold().partition("@")
        if not _COMMAND.fullmatch(verb):
            return None
        if target and target != self.me.username.casefold():
            return "", ""
        if verb.startswith(f"/{PREFIX}"):
            return verb.removeprefix(f"/{PREFIX}"), text[end:].strip()
        if verb == "/start":
            payload = text[end:].strip()
            return (_START, payload) if one_time.read(payload) else parted("")
        return parted(text[end:])

    def _reaction(self, reaction: Json, update_id: int) -> Iterator[Event]:
        user, channel = self._user(sub(reaction, "user")), self._channel(reaction)
        message_id = integer(reaction, "message_id")
        if user is None or channel is None or message_id is None:
            return
        old = dict.fromkeys(emoji.keys(items(reaction, "old_reaction")))
        new = dict.fromkeys(emoji.keys(items(reaction, "new_reaction")))
        changes = [(key, None) for key in old if key not in new]
        changes += [(key, self.values[key]) for key in new if key not in old and key in self.values]
        for n, (key, value) in enumerate(changes):
            yield RatingEvent(
                **_common(update_id, n, integer(reaction, "date"), user, channel),
                kind=RatingKind.RETRACT if value is None else RatingKind.RATE,
                message_id=str(message_id),
                source=f"reaction:{key}",
                value=value,
            )

    def _press(self, query: Json, update_id: int, since_ms: int) -> Iterator[Event]:
        message = sub(query, "message")
        user, channel = self._user(sub(query, "from")), self._channel(message)
        message_id = integer(message, "message_id")
        data = callback.read(string(query, "data"), self.kept)
        if user is None or channel is None or message_id is None or data is None:
            return
        # The message's own time is a lower bound; Telegram sends 0 for one that is too old.
        seconds = max(since_ms // 1000, integer(message, "date") or 0)
        common = _common(update_id, 0, seconds, user, channel)
        common |= {"message_id": str(message_id), "turn": data.turn}
        if pressed := rating(data.action):
            source, value = pressed
            yield RatingEvent(**common, kind=RatingKind.RATE, source=source, value=value)
        elif data.action not in callback.TYPED:
            yield PressEvent(**common, action=data.action)

    def prompt(self, update: object) -> TypingPrompt | None:
        """The press on a button that asks for words, in a private chat; it is no event yet."""
        query = sub(as_json(update), "callback_query")
        message = sub(query, "message")
        user, channel = self._user(sub(query, "from")), self._channel(message)
        message_id = integer(message, "message_id")
        data = callback.read(string(query, "data"))
        if user is None or channel is None or message_id is None or data is None:
            return None
        if data.action not in callback.TYPED or channel.kind is not ChannelKind.PRIVATE:
            return None
        return TypingPrompt(data.action, data.turn, user, channel, message_id)

    def quoted(self, update: object) -> str:
        """The text of our own message that a message answers; empty when it answers none."""
        message = sub(as_json(update), "message")
        target, to_us = sub(message, "reply_to_message"), self._reply_to(message)[1]
        return string(target, "text") if to_us else ""

    def _user(self, user: Json) -> UserRef | None:
        """Who acts; None for a bot, ourselves, or nobody in particular."""
        user_id = integer(user, "id")
        if user_id is None or user.get("is_bot") is not False or str(user_id) == self.me.id:
            return None
        name = clean(f"{string(user, 'first_name')} {string(user, 'last_name')}".strip())
        return UserRef(
            connector=CONNECTOR,
            account=self.me.id,
            id=str(user_id),
            name=name,
            language=string(user, "language_code"),
        )

    def _channel(self, message: Json) -> ChannelRef | None:
        chat = sub(message, "chat")
        chat_id, kind = integer(chat, "id"), _KINDS.get(string(chat, "type"))
        if chat_id is None or kind is None or chat.get("is_direct_messages"):
            return None
        topic = integer(message, "message_thread_id") if message.get("is_topic_message") else None
        return ChannelRef(
            connector=CONNECTOR,
            account=self.me.id,
            id=str(chat_id),
            kind=kind,
            thread="" if topic is None else str(topic),
        )

    def _reply_to(self, message: Json) -> tuple[str, bool]:
        """The id of the message that this one answers, and whether that one is ours."""
        target = sub(message, "reply_to_message")
        target_id = integer(target, "message_id")
        # In a topic, Telegram shows every message as an answer to the topic's first, which may be ours.
        begins = message.get("is_topic_message") and target_id == integer(message, "message_thread_id")
        if target_id is None or begins or sub(target, "forum_topic_created"):
            return "", False
        author = integer(sub(target, "from"), "id")
        return str(target_id), author is not None and str(author) == self.me.id

    def _without_mention(self, text: str, message: Json) -> tuple[str, bool]:
        """`text` without @us, and whether we were mentioned."""
        spans: list[tuple[int, int]] = []
        for entity in (*items(message, "entities"), *items(message, "caption_entities")):
            start, length = integer(entity, "offset"), integer(entity, "length")
            if start is None or length is None or start < 0 or length < 0:
                continue
            kind, named = string(entity, "type"), integer(sub(entity, "user"), "id")
            word = cut(text, start, start + length).casefold()
            if (kind == "mention" and word == f"@{self.me.username.casefold()}") or (
                kind == "text_mention" and str(named) == self.me.id
            ):
                spans.append((start, start + length))
        for start, end in sorted(spans, reverse=True):
            before, after = cut(text, 0, start), cut(text, end)
            text = f"{before.rstrip(' ')} {after.lstrip(' ')}"
        return text.strip(" ,:\n"), bool(spans)


def _with_quote(message: Json, text: str) -> str:
    """The words with what they quote of an answer of ours, as Markdown writes it."""
    quote = sub(message, "quote")
    chosen = clean(string(quote, "text")).strip() if quote.get("is_manual") is True else ""
    lines = "".join(f"> {line}\n" for line in chosen.splitlines())
    return f"{lines}\n{text}" if lines else text


def _spoken_for(message: Json) -> bool:
    """Whether somebody else than the named person may have made this message."""
    return any(
        message.get(sign)
        for sign in ("sender_chat", "via_bot", "is_automatic_forward", "edit_date", "sender_business_bot")
    )


def _common(
    update_id: int, n: int, seconds: int | None, user: UserRef, channel: ChannelRef
) -> dict[str, Any]:
    order = OrderKey(1000 * max(seconds or 0, 0), f"{update_id:020d}:{n:03d}")
    return {"event_id": f"{update_id}:{n}", "order": order, "user": user, "channel": channel}
