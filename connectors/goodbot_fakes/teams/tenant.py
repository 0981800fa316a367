# SPDX-License-Identifier: Apache-2.0
"""The state of one Microsoft 365 tenant: people, conversations, messages. No network, no rights."""

from __future__ import annotations

import itertools
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from goodbot.base.clock import Clock

from goodbot_fakes.teams.errors import TeamsError
from goodbot_fakes.teams.fields import Json, items, sub

Kind = Literal["personal", "groupChat", "channel"]
"""Teams' own names."""


@dataclass(kw_only=True, slots=True)
class Account:
    """A person or a bot; `id` is as this bot knows them, `aad` the directory's own."""

    id: str
    name: str
    aad: str = ""

    @property
    def shape(self) -> Json:
        aad = {"aadObjectId": self.aad} if self.aad else {}
        return {"id": self.id, "name": self.name, **aad}


@dataclass(kw_only=True, slots=True)
class TenantConversation:
    """A chat, or a channel of a team; a channel's threads have ids of their own."""

    id: str
    kind: Kind
    name: str
    members: dict[str, Account]
    team: str = ""


@dataclass(kw_only=True, slots=True)
class Message:
    """One message, as it stands. `reactions` go by type and account."""

    id: str
    conversation: TenantConversation
    author: Account
    activity: Json
    thread: str = ""
    """The id of the message that began the thread, its own included; only in channels."""
    reactions: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    edited: bool = False
    to: str = ""
    """Set for a targeted message: the one account that sees it."""
    stream: Literal["", "informative", "streaming", "final"] = ""

    @property
    def text(self) -> str:
        return self.activity.get("text") or ""

    @property
    def cards(self) -> list[Json]:
        """The contents of the Adaptive Cards that came with it."""
        return [
            attachment["content"]
            for attachment in items(self.activity, "attachments")
            if attachment["contentType"] == "application/vnd.microsoft.card.adaptive"
        ]

    @property
    def feedback(self) -> Literal["", "default", "custom"]:
        """Which feedback controls are under it."""
        data = sub(self.activity, "channelData")
        enabled = "default" if data.get("feedbackLoopEnabled") else ""
        return sub(data, "feedbackLoop").get("type", enabled)


class Tenant:
    """Everything that is remembered. Times come from `clock`."""

    def __init__(self, clock: Clock, bot: Account) -> None:
        self.clock = clock
        self.id = str(uuid.uuid5(uuid.NAMESPACE_URL, "goodbot"))
        self.bot = bot
        self.accounts: dict[str, Account] = {bot.id: bot}
        self.conversations: dict[str, TenantConversation] = {}
        self.messages: dict[tuple[str, str], Message] = {}
        self._numbers = itertools.count(1)
        self._last_ms = 0

    def now(self) -> int:
        """Milliseconds since the epoch, later than all before: ids of messages are such."""
        self._last_ms = max(int(self.clock.now() * 1000), self._last_ms + 1)
        return self._last_ms

    def add(self, name: str) -> Account:
        """A new person."""
        number = next(self._numbers)
        aad = str(uuid.uuid5(uuid.NAMESPACE_URL, f"{name}{number}"))
        account = Account(id=f"29:1{name.replace(' ', '')}{number:06d}-fake", name=name, aad=aad)
        self.accounts[account.id] = account
        return account

    def add_conversation(
        self, kind: Kind, members: Sequence[Account], *, name: str = "", team: str = ""
    ) -> TenantConversation:
        """A chat or channel with these people and the bot in it."""
        number = next(self._numbers)
        id_ = {
            "personal": f"a:1{number:06d}-fake",
            "groupChat": f"19:{number:032x}@thread.v2",
            "channel": f"19:{number:032x}@thread.tacv2",
        }[kind]
        people = {account.id: account for account in (*members, self.bot)}
        found = TenantConversation(id=id_, kind=kind, name=name, members=people, team=team)
        self.conversations[id_] = found
        return found

    def personal(self, account: Account) -> TenantConversation:
        """Somebody's chat with the bot, opened if need be."""
        for found in self.conversations.values():
            if found.kind == "personal" and account.id in found.members:
                return found
        return self.add_conversation("personal", [account])

    def find(self, conversation: str) -> tuple[TenantConversation, str]:
        """A conversation by the id that an address has, and the thread that it names."""
        id_, _, thread = conversation.partition(";messageid=")
        if id_ not in self.conversations:
            raise TeamsError(404, "ConversationNotFound", "Conversation not found.")
        return self.conversations[id_], thread

    def message(self, conversation: str, id_: str) -> Message:
        found, _ = self.find(conversation)
        if (found.id, id_) not in self.messages:
            raise TeamsError(404, "ActivityNotFoundInConversation", "Activity not found.")
        return self.messages[found.id, id_]

    def post(
        self,
        conversation: TenantConversation,
        author: Account,
        activity: Json,
        *,
        thread: str = "",
        to: str = "",
    ) -> Message:
        """A new message; in a channel without a thread, the beginning of one."""
        id_ = str(self.now())
        if conversation.kind == "channel":
            thread = thread or id_
        message = Message(
            id=id_, conversation=conversation, author=author, activity=activity, thread=thread, to=to
        )
        self.messages[conversation.id, id_] = message
        return message

    def within(self, conversation: TenantConversation) -> list[Message]:
        """All messages of a conversation, oldest first."""
        found = [m for m in self.messages.values() if m.conversation is conversation]
        return sorted(found, key=lambda message: int(message.id))
