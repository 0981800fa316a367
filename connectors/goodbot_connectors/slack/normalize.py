# SPDX-License-Identifier: Apache-2.0
"""Slack's payloads → events. Pure: JSON in, values out; it never raises, whatever the JSON holds.

A payload is an Events API callback, an interaction or a slash command, as bolt parses them from
either transport. What is not certain to come from a person who acts now is dropped: bots, edits,
and channel talk that is not meant for us, whose text goes no further than this module.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from goodbot.api.actions import rating
from goodbot.api.commands import parted, typed_behind
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

from goodbot_connectors.kit.fields import Json, as_json, string, sub
from goodbot_connectors.slack import contents, mrkdwn
from goodbot_connectors.slack.emoji import emoji_key
from goodbot_connectors.slack.identity import ActorOrigin, BotIdentity
from goodbot_connectors.slack.presses import EXPLAIN, MODAL, SHOW, SLASH, key, load, order_of, pressed
from goodbot_connectors.slack.threads import Threads

CONNECTOR = "slack"
HOME = "home:"
"""How the event id of a command begins whose answer is shown in the Home tab."""
EVENTS = (
    "app_home_opened",
    "app_mention",
    "message.channels",
    "message.groups",
    "message.im",
    "message.mpim",
    "reaction_added",
    "reaction_removed",
)
"""What Slack is asked to send; the manifest is made of it."""
_SUBTYPES = ("", "file_share", "thread_broadcast")
_TAKES_BACK = ("undo", "u")


@dataclass(frozen=True, kw_only=True, slots=True)
class Normalizer:
    """Turns payloads for one account into events."""

    me: BotIdentity
    values: Mapping[str, float]
    """A rating for each emoji name that is one."""
    threads: Threads

    def events(self, body: object, now_ms: int = 0, *, proved: bool = False) -> tuple[Event, ...]:
        """The events of one payload, mostly one or none; a submitted modal gives up to three.

        Slash commands and modals carry no time: `now_ms` stands in. `proved` says that whoever
        acts is known to be of our workspace, where the payload itself does not prove it.
        """
        json = as_json(body)
        kind, standing = string(json, "type"), self.me.standing(json)
        if standing is ActorOrigin.THEIRS or (standing is ActorOrigin.UNPROVED and not proved):
            found: Iterable[Event] = ()
        elif kind == "event_callback":
            found = self._callback(sub(json, "event"), key(string(json, "event_id")))
        elif kind == "block_actions":
            found = self._presses(json)
        elif kind == "view_submission":
            found = self._modal(json, now_ms)
        elif string(json, "command") == SLASH:
            found = self._slash(json, now_ms)
        else:
            found = ()
        return tuple(found)

    def _callback(self, event: Json, event_id: str) -> Iterable[Event]:
        kind = string(event, "type")
        if kind in ("message", "app_mention"):
            return self._message(event)
        if kind in ("reaction_added", "reaction_removed"):
            return self._reaction(event, event_id)
        if kind == "app_home_opened" and string(event, "tab") == "home":
            return self._home(event, event_id)
        return ()

    def _message(self, event: Json) -> Iterator[Event]:
        """A mention in a channel comes twice, as `message` and as `app_mention`: with one id.

        An edit that mentions us is told like a new mention. An edited `message` was read again after
        an outage: it is answered, but gives no command.
        """
        user, ts = self._user(string(event, "user")), key(string(event, "ts"))
        channel_id, root = key(string(event, "channel")), key(string(event, "thread_ts"))
        order = order_of(ts)
        if not (user and ts and channel_id and order) or string(event, "subtype") not in _SUBTYPES:
            return
        if event.get("bot_id") or event.get("bot_profile") or event.get("hidden"):
            return
        edited = bool(event.get("edited"))
        if edited and string(event, "type") == "app_mention":
            return
        raw = contents.text(event)
        words = mrkdwn.read(raw, self.me.user)
        kind = _kind(channel_id)
        private = kind is ChannelKind.PRIVATE
        ours = self.threads.ours(channel_id, root) if root else ""
        if root and not ours and string(event, "parent_user_id") == self.me.user:
            ours = root
        called = words.mentioned or string(event, "type") == "app_mention"
        if not (private or called or (ours and words.first in ("", self.me.user))):
            return
        common: dict[str, Any] = {"event_id": f"{channel_id}:{ts}", "order": order, "user": user}
        command = self._command(raw, plain=private, called=called)
        if command is not None:
            if not edited:
                yield CommandEvent(
                    **common,
                    channel=self._channel(channel_id, root),
                    name=command[0],
                    args=command[1],
                    reply_to=self._meant(*command, channel_id, root),
                    message_id=ts,
                )
            return
        attachments = contents.attachments(event)
        if words.text.strip() or attachments:
            yield MessageEvent(
                **common,
                channel=self._channel(channel_id, root or ts),
                text=words.text,
                message_id=ts,
                addressed=True,
                reply_to=ours,
                attachments=attachments,
            )

    def _command(self, raw: str, *, plain: bool, called: bool) -> tuple[str, str] | None:
        """Name and arguments of `@us rl NAME ARGS`, and of `/rl …` where that was only text."""
        verbs = ("rl", SLASH) if called else (SLASH,) if plain else ()
        return typed_behind(mrkdwn.read(raw, self.me.user, ids=True).text, *verbs)

    def _meant(self, name: str, args: str, channel_id: str, root: str = "") -> str:
        """Our last answer there, since Slack names none; to take back is about what they rated last."""
        back = name.casefold() in _TAKES_BACK or args == "0"
        return "" if back else self.threads.answer(channel_id, root)

    def _reaction(self, event: Json, event_id: str) -> Iterator[Event]:
        """The whole name is the source, skin tone and all: each tone is a reaction of its own."""
        user, item = self._user(string(event, "user")), sub(event, "item")
        channel_id, ts = key(string(item, "channel")), key(string(item, "ts"))
        order, name = order_of(string(event, "event_ts")), clean(string(event, "reaction"))[:100]
        author = string(event, "item_user")
        if not (user and channel_id and ts and order and event_id and name):
            return
        if author and author != self.me.user:
            return
        added = string(event, "type") == "reaction_added"
        value = self.values.get(emoji_key(name))
        if value is None:
            return
        yield RatingEvent(
            event_id=event_id,
            order=order,
            user=user,
            channel=self._channel(channel_id),
            kind=RatingKind.RATE if added else RatingKind.RETRACT,
            message_id=ts,
            source=f"reaction:{name}",
            value=value if added else None,
        )

    def _home(self, event: Json, event_id: str) -> Iterator[Event]:
        user, channel_id = self._user(string(event, "user")), key(string(event, "channel"))
        order = order_of(string(event, "event_ts"))
        if user and channel_id and order and event_id:
            yield CommandEvent(
                event_id=f"{HOME}{event_id}",
                order=order,
                user=user,
                channel=self._channel(channel_id),
                name="status",
                looked=True,
            )

    def _presses(self, body: Json) -> Iterator[Event]:
        user = self._user(string(sub(body, "user"), "id"))
        if user is None:
            return
        for n, press in enumerate(pressed(body)):
            order, about = order_of(press.at), press.about
            stood = about.message or string(sub(body, "container"), "view_id")
            if press.action == EXPLAIN or order is None:
                continue
            channel_id = about.channel or load(string(sub(body, "view"), "private_metadata")).channel
            common: dict[str, Any] = {
                "event_id": f"press:{press.at}:{_short(f'{user.id} {stood} {n} {press.action}')}",
                "order": order,
                "user": user,
                "channel": self._channel(channel_id, about.thread),
            }
            kind, _, words = press.action.partition(":")
            if not channel_id:
                continue
            if kind == SHOW:
                name, args = parted(words)
                common["event_id"] = HOME + common["event_id"]
                yield CommandEvent(**common, name=name, args=args, looked=True)
            elif rated := rating(press.action):
                yield RatingEvent(
                    **common,
                    kind=RatingKind.RATE,
                    message_id=about.message,
                    turn=about.turn,
                    source=rated.source,
                    value=rated.value,
                )
            else:
                yield PressEvent(**common, action=press.action, turn=about.turn, message_id=about.message)

    def _modal(self, body: Json, now_ms: int) -> Iterator[Event]:
        """What was said in the modal. Its id and words make the event's id: sent twice, it is one."""
        view, user = sub(body, "view"), self._user(string(sub(body, "user"), "id"))
        view_id, about = key(string(view, "id")), load(string(view, "private_metadata"))
        if user is None or string(view, "callback_id") != MODAL or not (view_id and about.channel):
            return
        answers = {name: sub(view, "state", "values", name, name) for name in ("verdict", "reason", "better")}
        said: list[tuple[RatingKind, str, dict[str, Any]]] = []
        verdict = string(sub(answers["verdict"], "selected_option"), "value")
        if rated := rating(verdict):
            said.append((RatingKind.RATE, verdict, {"source": rated.source, "value": rated.value}))
        for kind, name in ((RatingKind.COMMENT, "reason"), (RatingKind.BETTER, "better")):
            if text := clean(string(answers[name], "value")).strip():
                said.append((kind, text, {"text": text}))
        for n, (kind, words, fields) in enumerate(said):
            yield RatingEvent(
                event_id=f"modal:{view_id}:{kind.value}:{_short(words)}",
                order=OrderKey(max(now_ms, 0), f"{n}", ours=True),
                user=user,
                channel=self._channel(about.channel, about.thread),
                kind=kind,
                message_id=about.message,
                turn=about.turn,
                **fields,
            )

    def _slash(self, body: Json, now_ms: int) -> Iterator[Event]:
        user, channel_id = self._user(string(body, "user_id")), key(string(body, "channel_id"))
        trigger = string(body, "trigger_id")
        if not (user and channel_id and trigger):
            return
        name, args = parted(mrkdwn.read(string(body, "text"), self.me.user, ids=True).text)
        yield CommandEvent(
            event_id=f"slash:{_short(f'{user.id} {trigger}')}",
            order=OrderKey(max(now_ms, 0), ours=True),
            user=user,
            channel=self._channel(channel_id),
            name=name,
            args=args,
            reply_to=self._meant(name, args, channel_id),
        )

    def _user(self, user_id: str) -> UserRef | None:
        """Who acts; None for ourselves, Slackbot, or nobody in particular."""
        if not key(user_id) or user_id in (self.me.user, "USLACKBOT"):
            return None
        return UserRef(connector=CONNECTOR, account=self.me.account, id=user_id)

    def _channel(self, channel_id: str, thread: str = "") -> ChannelRef:
        return ChannelRef(
            connector=CONNECTOR, account=self.me.account, id=channel_id, kind=_kind(channel_id), thread=thread
        )


def _kind(channel_id: str) -> ChannelKind:
    """A direct message with the bot alone starts with D; group messages and channels are shared."""
    return ChannelKind.PRIVATE if channel_id.startswith("D") else ChannelKind.SHARED


def _short(text: str) -> str:
    return hashlib.sha256(clean(text).encode()).hexdigest()[:16]
