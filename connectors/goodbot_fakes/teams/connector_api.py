# SPDX-License-Identifier: Apache-2.0
"""The Bot Connector's REST API, v3: what a bot may do to conversations.

learn.microsoft.com/azure/bot-service/rest-api/bot-framework-rest-connector-api-reference, with the
limits of Teams.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from goodbot_fakes.teams.errors import TeamsError
from goodbot_fakes.teams.fields import Json, items, sub
from goodbot_fakes.teams.streaming import Streams, info
from goodbot_fakes.teams.tenant import Message, Tenant, TenantConversation

_SIZE = 100 * 1024
"""Bytes of a message in UTF-16, cards included."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ApiCall:
    """One call of the bot, and its answer."""

    operation: str
    path: str
    body: Json
    status: int
    answer: Any = field(default_factory=dict[str, Any])


class ConnectorApi:
    """The operations, by name. Each takes the parts of its address and a body, and answers."""

    def __init__(self, tenant: Tenant, streams: Streams) -> None:
        self._tenant, self._streams = tenant, streams
        self.typing: list[str] = []
        """The conversations in which the bot has shown that it writes, one entry each time."""

    def send(self, conversation: str, body: Json, *, targeted: bool = False) -> tuple[int, Json]:
        """A new message, a piece of a stream, or that the bot is typing."""
        place, thread = self._mine(conversation)
        if len(json.dumps(body, ensure_ascii=False).encode("utf-16-le")) > _SIZE:
            raise TeamsError(413, "MessageSizeTooBig", "Message size too large.")
        if (found := info(body)) is not None:
            status, id_ = self._streams.take(place, body, found)
            return status, {"id": id_} if id_ else {}
        if body.get("type") == "typing":
            self.typing.append(conversation)
            return 201, {"id": str(self._tenant.now())}
        if body.get("type") != "message":
            raise TeamsError(400, "BadSyntax", f"Unknown activity type {body.get('type')}.")
        if not body.get("text") and not body.get("attachments"):
            raise TeamsError(400, "BadSyntax", "Activity must contain text or attachments.")
        to = self._reader(place, body) if targeted else ""
        parts = _split(body)
        for part in parts:
            message = self._tenant.post(place, self._tenant.bot, part, thread=thread, to=to)
            thread = thread or message.thread
            if len(parts) == 1:
                return 201, {"id": message.id}
        return 202, {}

    def reply(
        self, conversation: str, activity: str, body: Json, *, targeted: bool = False
    ) -> tuple[int, Json]:
        """As `send`; in a channel into the thread of that message."""
        place, thread = self._mine(conversation)
        answered = self._tenant.messages.get((place.id, activity))
        if place.kind == "channel" and not thread and answered is not None:
            conversation = f"{place.id};messageid={answered.thread}"
        return self.send(conversation, body, targeted=targeted)

    def update(
        self, conversation: str, activity: str, body: Json, *, targeted: bool = False
    ) -> tuple[int, Json]:
        """Other words and cards in a message of the bot's own."""
        message = self._own(conversation, activity, targeted=targeted)
        if not body.get("text") and not body.get("attachments"):
            raise TeamsError(400, "BadSyntax", "Activity must contain text or attachments.")
        if len(_split(body)) > 1:
            raise TeamsError(400, "BadSyntax", "Activity resulted into multiple skype activities")
        message.activity, message.edited = body, True
        return 200, {"id": message.id}

    def delete(self, conversation: str, activity: str, *, targeted: bool = False) -> tuple[int, Json]:
        """Take back a message of the bot's own."""
        message = self._own(conversation, activity, targeted=targeted)
        del self._tenant.messages[message.conversation.id, message.id]
        return 200, {}

    def create(self, body: Json) -> tuple[int, Json]:
        """Somebody's personal chat, or a new thread in a channel with its first message."""
        self._same_tenant(body)
        channel = sub(body, "channelData", "channel").get("id", "")
        if channel:
            place, _ = self._mine(channel)
            _, sent = self.send(place.id, sub(body, "activity"))
            return 201, {"id": f"{place.id};messageid={sent['id']}", "activityId": sent["id"]}
        wanted = [member.get("id", "") for member in items(body, "members")]
        if len(wanted) != 1 or body.get("isGroup"):
            raise TeamsError(400, "BadSyntax", "Bots open chats with one person only.")
        for place in self._tenant.conversations.values():
            if place.kind == "personal" and wanted[0] in place.members:
                return 201, {"id": place.id}
        raise TeamsError(403, "BotNotInstalledForUser", "The app is not installed for this user.")

    def members(self, conversation: str) -> tuple[int, list[Json]]:
        """Everybody in a conversation but the bot."""
        place, _ = self._mine(conversation)
        people = [a for a in place.members.values() if a is not self._tenant.bot]
        return 200, [{**a.shape, "tenantId": self._tenant.id, "userRole": "user"} for a in people]

    def paged_members(self, conversation: str) -> tuple[int, Json]:
        """The same, on one page."""
        return 200, {"members": self.members(conversation)[1]}

    def member(self, conversation: str, id_: str) -> tuple[int, Json]:
        """One of them, by either of the two ids."""
        for shape in self.members(conversation)[1]:
            if id_ in (shape["id"], shape.get("aadObjectId")):
                return 200, shape
        raise TeamsError(404, "MemberNotFoundInConversation", "Member not found in conversation.")

    def _mine(self, conversation: str) -> tuple[TenantConversation, str]:
        place, thread = self._tenant.find(conversation)
        if self._tenant.bot.id not in place.members:
            raise TeamsError(
                403, "BotNotInConversationRoster", "The bot is not part of the conversation roster."
            )
        return place, thread

    def _own(self, conversation: str, activity: str, *, targeted: bool) -> Message:
        place, _ = self._mine(conversation)
        message = self._tenant.message(place.id, activity)
        if message.author is not self._tenant.bot or bool(message.to) is not targeted:
            raise TeamsError(403, "ForbiddenOperation", "The bot may change its own messages only.")
        return message

    def _reader(self, place: TenantConversation, body: Json) -> str:
        to = sub(body, "recipient").get("id", "")
        if place.kind == "personal" or to not in place.members:
            raise TeamsError(400, "BadArgument", "Targeted messages go to a member of a group.")
        return to

    def _same_tenant(self, body: Json) -> None:
        named = body.get("tenantId") or sub(body, "channelData", "tenant").get("id", "")
        if named != self._tenant.id:
            raise TeamsError(400, "BadArgument", "The tenant is missing or another one.")


def _split(activity: Json) -> list[Json]:
    """The messages that Teams makes of one activity: text and attachments stand in one each."""
    attachments = items(activity, "attachments")
    if activity.get("attachmentLayout") == "carousel" and not activity.get("text"):
        return [activity]
    bare = {name: value for name, value in activity.items() if name not in ("text", "attachments")}
    texts = [{**bare, "text": activity["text"]}] if activity.get("text") else []
    return [*texts, *({**bare, "attachments": [one]} for one in attachments)]
