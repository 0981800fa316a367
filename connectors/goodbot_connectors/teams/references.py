# SPDX-License-Identifier: Apache-2.0
"""Where a conversation is: kept over a restart, so that answers, edits and news find their way."""

from __future__ import annotations

import json
from collections import OrderedDict
from dataclasses import asdict, dataclass, replace

from goodbot.api.connector import ConnectorHost
from goodbot.api.events import ChannelRef

from goodbot_connectors.kit.fields import Json, as_json, string, sub
from goodbot_connectors.kit.lru import Recent
from goodbot_connectors.kit.state import StateTexts

THREAD = ";messageid="
"""In the id of a conversation in a channel, what stands before the thread's own id."""
_CACHED = 1000
_UNSURE = 300
"""Conversations that are kept though nobody there has been let in: anybody can begin some."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Reference:
    """What the Bot Connector needs to know to put something into a conversation."""

    service_url: str
    conversation: str
    """With the thread, in a channel."""
    kind: str
    """As Teams calls it: `personal`, `groupChat`, `channel`."""
    tenant: str
    bot: str
    user: str = ""
    """The person, in a personal chat."""

    def addressed(self, activity: Json) -> Json:
        """The activity with the fields that say whose it is and where it goes."""
        place = {"id": self.conversation, "conversationType": self.kind, "tenantId": self.tenant}
        to = {"recipient": {"id": self.user}} if self.user else {}
        return {
            "channelId": "msteams",
            "serviceUrl": self.service_url,
            "from": {"id": self.bot},
            "conversation": place,
            **to,
            **activity,
        }


class References:
    """What we know of the conversations of one account, each a value of the host's."""

    def __init__(self, host: ConnectorHost, account: str) -> None:
        self._host, self._account = host, account
        self._known: OrderedDict[str, Reference] = OrderedDict()
        self._chats: Recent[str, str] = Recent()
        self._unsure = StateTexts(host, f"{account} unsure", 2 * _UNSURE)
        """Conversations in which nobody has been let in yet, oldest first; whose, of personal chats."""
        self._left: Recent[str, Reference] = Recent()
        """Those that were dropped since the start: who is forgotten is still told that they are."""
        self.latest: Reference | None = None
        """Where we were spoken to last, without the conversation: what a new one needs to know."""

    async def load(self) -> None:
        """Read what has to be known before anybody has written again."""
        self.latest = _read(await self._get("latest"))
        await self._unsure.load()

    async def note(self, activity: Json) -> None:
        """Remember where an activity came from. Raises StoreError."""
        reference = _of(activity)
        base = replace(reference, conversation=reference.conversation.partition(THREAD)[0])
        if not (base.conversation and base.service_url and base.bot):
            return
        await self._keep(base)
        latest = replace(base, conversation="", kind="", user="")
        if self.latest != latest:
            await self._set("latest", _dump(latest))
            self.latest = latest

    async def chat_opened(self, beside: Reference, user: str, conversation: str) -> None:
        """Remember a personal chat that we have opened."""
        await self._keep(replace(beside, conversation=conversation, kind="personal", user=user))

    async def _keep(self, base: Reference) -> None:
        known = await self._find(base.conversation)
        if known is None:
            await self._make_room()
            await self._unsure.put(base.conversation, base.user)
        if known != base:
            await self._set(f"conversation:{base.conversation}", _dump(base))
            self._remember(base)
        if base.user and await self.chat(base.user) != base.conversation:
            await self._set(f"chat:{base.user}", base.conversation)
            self._chats[base.user] = base.conversation

    async def _make_room(self) -> None:
        """Drop the oldest of those conversations that a crowd of strangers may have begun."""
        for conversation, user in list(self._unsure.items())[: 1 - _UNSURE]:
            await self._drop(conversation, user)

    async def let_in(self, conversation: str) -> None:
        """Somebody there may talk or rate: what we know of it stays."""
        await self._unsure.drop(conversation)

    async def find(self, channel: ChannelRef) -> Reference | None:
        """Where a channel is; None if nobody has ever written to us there."""
        found = await self._find(channel.id) or self._left.get(channel.id)
        if found is None or not channel.thread:
            return found
        return replace(found, conversation=f"{channel.id}{THREAD}{channel.thread}")

    async def _find(self, conversation: str) -> Reference | None:
        known = self._known.get(conversation)
        if known is None:
            known = _read(await self._get(f"conversation:{conversation}"))
            if known is not None:
                self._remember(known)
        return known

    async def chat(self, user: str) -> str:
        """The personal chat with somebody; empty where we know none."""
        if user not in self._chats:
            known = await self._get(f"chat:{user}")
            if not known:
                return ""
            self._chats[user] = known
        return self._chats[user]

    async def forget(self, user: str) -> None:
        """Drop the personal chat with somebody. Raises StoreError."""
        if conversation := await self.chat(user):
            await self._drop(conversation, user)

    async def _drop(self, conversation: str, user: str) -> None:
        if known := await self._find(conversation):
            self._left[conversation] = known
        await self._set(f"conversation:{conversation}", "")
        if user:
            await self._set(f"chat:{user}", "")
        self._known.pop(conversation, None)
        self._chats.pop(user, None)
        await self._unsure.drop(conversation)

    async def _get(self, name: str) -> str | None:
        return await self._host.get(f"{self._account} {name}")

    async def _set(self, name: str, value: str) -> None:
        await self._host.set(f"{self._account} {name}", value)

    def _remember(self, reference: Reference) -> None:
        self._known[reference.conversation] = reference
        while len(self._known) > _CACHED:
            self._known.popitem(last=False)


def _of(activity: Json) -> Reference:
    conversation = sub(activity, "conversation")
    kind = string(conversation, "conversationType")
    tenant = string(conversation, "tenantId") or string(sub(activity, "channelData", "tenant"), "id")
    return Reference(
        service_url=string(activity, "serviceUrl"),
        conversation=string(conversation, "id"),
        kind=kind,
        tenant=tenant,
        bot=string(sub(activity, "recipient"), "id"),
        user=string(sub(activity, "from"), "id") if kind == "personal" else "",
    )


def _dump(reference: Reference) -> str:
    return json.dumps(asdict(reference))


def _read(text: str | None) -> Reference | None:
    try:
        fields = as_json(json.loads(text or "{}"))
    except (ValueError, RecursionError):
        return None
    if not string(fields, "service_url"):
        return None
    return Reference(**{name: string(fields, name) for name in Reference.__dataclass_fields__})
