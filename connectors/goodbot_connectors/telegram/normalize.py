"""Telegram updates → events. Pure: JSON in, values out; it never raises, whatever the JSON holds.

The fields are those of core.telegram.org/bots/api#update. What is not certain to come from a
person who acts now is dropped: bots, channels that speak through a group, anonymous
administrators, inline results (`via_bot`), edits, and group talk that is not meant for us, whose
text goes no further than this module. A forwarded message is read but never obeyed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from goodbot.events import (
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
from goodbot.text import clean

from goodbot_connectors.telegram.config import TelegramSettings
from goodbot_connectors.telegram.fields import Json, as_json, integer, items, string, sub
from goodbot_connectors.telegram.render import ACTIONS, read_data

CONNECTOR = "telegram"
_KINDS = {
    "private": ChannelKind.PRIVATE,
    "group": ChannelKind.SHARED,
    "supergroup": ChannelKind.SHARED,
}
_ATTACHMENTS = (
    "animation", "audio", "document", "photo", "sticker", "video", "video_note", "voice",
)  # fmt: skip
# Variation selectors and skin tones: 👍🏽 is 👍, ❤️ is ❤.
_VARIANTS = re.compile("[\ufe0e\ufe0f\U0001f3fb-\U0001f3ff]")


@dataclass(frozen=True, kw_only=True, slots=True)
class Identity:
    """Our own account, as getMe tells it."""

    id: str
    username: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Normalizer:
    """Turns updates for one account into events."""

    me: Identity
    values: Mapping[str, float]
    """A rating for each emoji that is one, as `emoji_key` writes it."""

    def events(self, update: object, since_ms: int = 0) -> tuple[Event, ...]:
        """The events of one update, mostly one or none; a changed reaction gives two.

        A press on a button carries no time. `since_ms`, the time of the last event before it,
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
                if name:
                    yield CommandEvent(
                        **common,
                        name=name,
                        args=args,
                        reply_to=reply_to,
                        message_id=str(message_id),
                    )
                return
        private = channel.kind is ChannelKind.PRIVATE
        stripped, mentioned = self._without_mention(text, message)
        attachments = tuple(kind for kind in _ATTACHMENTS if message.get(kind))
        if (private or to_us or mentioned) and (text or attachments):
            yield MessageEvent(
                **common,
                text=stripped or text,
                message_id=str(message_id),
                addressed=True,
                reply_to=reply_to,
                attachments=attachments,
            )

    def _command(self, text: str, message: Json) -> tuple[str, str] | None:
        """Name and arguments of a command at the start; no name when it is another bot's."""
        entity = next(items(message, "entities"), None)
        if entity is None or string(entity, "type") != "bot_command":
            return None
        end = integer(entity, "length") or 0
        if integer(entity, "offset") != 0 or end < 0:
            return None
        verb, _, target = text[:end].casefold().partition("@")
        if verb not in ("/rl", "/start"):
            return None
        if target and target != self.me.username.casefold():
            return "", ""
        words = text[end:].split(maxsplit=1)
        if verb == "/start" or not words:
            return "help", ""
        return words[0], words[1].strip() if len(words) > 1 else ""

    def _reaction(self, reaction: Json, update_id: int) -> Iterator[Event]:
        user, channel = self._user(sub(reaction, "user")), self._channel(reaction)
        message_id = integer(reaction, "message_id")
        if user is None or channel is None or message_id is None:
            return
        old = dict.fromkeys(_emoji_keys(items(reaction, "old_reaction")))
        new = dict.fromkeys(_emoji_keys(items(reaction, "new_reaction")))
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
        data = read_data(string(query, "data"))
        if user is None or channel is None or message_id is None or data is None:
            return
        # The message's own time is a lower bound; Telegram sends 0 for one that is too old.
        seconds = max(since_ms // 1000, integer(message, "date") or 0)
        yield RatingEvent(
            **_common(update_id, 0, seconds, user, channel),
            kind=RatingKind.RATE,
            message_id=str(message_id),
            turn=data.turn,
            source="button",
            value=ACTIONS[data.action],
        )

    def _user(self, user: Json) -> UserRef | None:
        """Who acts; None for a bot, ourselves, or nobody in particular."""
        user_id = integer(user, "id")
        if user_id is None or user.get("is_bot") is not False or str(user_id) == self.me.id:
            return None
        name = clean(f"{string(user, 'first_name')} {string(user, 'last_name')}".strip())
        return UserRef(connector=CONNECTOR, account=self.me.id, id=str(user_id), name=name)

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
        # In a topic, Telegram shows every message as an answer to the topic's first.
        if target_id is None or sub(target, "forum_topic_created"):
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
            word = _cut(text, start, start + length).casefold()
            if (kind == "mention" and word == f"@{self.me.username.casefold()}") or (
                kind == "text_mention" and str(named) == self.me.id
            ):
                spans.append((start, start + length))
        for start, end in sorted(spans, reverse=True):
            before, after = _cut(text, 0, start), _cut(text, end, None)
            text = f"{before.rstrip(' ')} {after.lstrip(' ')}"
        return text.strip(" ,:\n"), bool(spans)


def batch(
    normalizer: Normalizer, updates: Iterable[object], since_ms: int
) -> tuple[tuple[Event, ...], int | None]:
    """The events of one poll, and the offset that confirms it; None when it held no update."""
    events: list[Event] = []
    offset: int | None = None
    for update in updates:
        update_id = integer(as_json(update), "update_id")
        if update_id is not None:
            offset = update_id + 1
        for event in normalizer.events(update, since_ms):
            since_ms = max(since_ms, event.order.time_ms)
            events.append(event)
    return tuple(events), offset


def query_ids(updates: Iterable[object]) -> dict[str, str]:
    """The callback query of each press, by the id that an event made of it has."""
    found: dict[str, str] = {}
    for update in map(as_json, updates):
        if query := string(sub(update, "callback_query"), "id"):
            found[f"{integer(update, 'update_id')}:0"] = query
    return found


def emoji_values(settings: TelegramSettings) -> dict[str, float]:
    """What each emoji of the settings is worth."""
    good = {emoji_key(emoji): 1.0 for emoji in settings.good}
    return good | {emoji_key(emoji): -1.0 for emoji in settings.bad}


def emoji_key(emoji: str) -> str:
    """An emoji without variation selectors and skin tone, or a custom emoji's id as it is."""
    return _VARIANTS.sub("", clean(emoji))


def _emoji_keys(reactions: Iterable[Json]) -> Iterator[str]:
    """Paid reactions are no opinion: they are left out."""
    for reaction in reactions:
        kind = string(reaction, "type")
        field = {"emoji": "emoji", "custom_emoji": "custom_emoji_id"}.get(kind, "")
        if key := emoji_key(string(reaction, field)):
            yield key


def _cut(text: str, start: int, end: int | None) -> str:
    """A piece of `text`; Telegram counts in UTF-16 code units."""
    raw = text.encode("utf-16-le")[2 * start : None if end is None else 2 * end]
    return raw.decode("utf-16-le", "replace")


def _spoken_for(message: Json) -> bool:
    """Whether somebody else than the named person may have made this message."""
    return any(
        message.get(sign)
        for sign in (
            "sender_chat",
            "via_bot",
            "is_automatic_forward",
            "edit_date",
            "sender_business_bot",
        )
    )


def _common(
    update_id: int, n: int, seconds: int | None, user: UserRef, channel: ChannelRef
) -> dict[str, Any]:
    order = OrderKey(1000 * max(seconds or 0, 0), f"{update_id:020d}:{n:03d}")
    return {"event_id": f"{update_id}:{n}", "order": order, "user": user, "channel": channel}
