# SPDX-License-Identifier: Apache-2.0
"""Which channel is a thread of which, and where we spoke: a message names only its own channel.

A forum post is a thread, too. What the gateway tells when it connects is kept while it lasts; what is
not known (after a RESUME it tells nothing) is asked for once.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import NamedTuple

from goodbot.api.connector import ConnectorHost
from goodbot.api.events import ChannelKind, ChannelRef
from goodbot.base.errors import ConnectorError, FatalConnectorError, RetriableError

from goodbot_connectors.discord.api import Api
from goodbot_connectors.discord.snowflake import identifier
from goodbot_connectors.kit.fields import Json, as_json, items
from goodbot_connectors.kit.lru import Recent
from goodbot_connectors.kit.state import StateTexts

logger = logging.getLogger(__name__)

THREADS = (10, 11, 12)
"""The types of channel that are threads."""
_SPOKEN = 200
_DAY = 86_400


class Spoken(NamedTuple):
    """A channel or thread where we spoke."""

    id: str
    parent: str
    """Of a thread, the channel that it belongs to."""
    private: bool


class Places:
    """What a channel's id stands for."""

    def __init__(self, host: ConnectorHost) -> None:
        self._clock = host.clock
        self._parents: Recent[str, str] = Recent()
        self._parents.most = 50_000
        self.kept = StateTexts(host, "places", _SPOKEN)
        self._left: Recent[str, None] = Recent()
        """What was forgotten since the start: to tell so there is no reason to know the place again."""

    async def load(self) -> None:
        """Read where an earlier process spoke."""
        await self.kept.load()
        for place in self.spoken():
            self._parents[place.id] = place.parent

    def parent(self, channel: str) -> str | None:
        """Of a thread its channel, empty for what is no thread; None while that is not known."""
        return self._parents.get(channel)

    def note(self, name: str, data: object) -> None:
        """Take in what a dispatch tells of channels and threads."""
        json = as_json(data)
        if name in ("GUILD_CREATE", "THREAD_LIST_SYNC"):
            for channel in (*items(json, "channels"), *items(json, "threads")):
                self._know(channel)
        elif name in ("CHANNEL_CREATE", "THREAD_CREATE", "THREAD_UPDATE"):
            self._know(json)
        elif name in ("CHANNEL_DELETE", "THREAD_DELETE"):
            self._parents.pop(identifier(json.get("id")), None)

    async def find(self, api: Api, channel: str) -> None:
        """Ask what a channel is. Raises RetriableError; what may not be seen counts as no thread."""
        try:
            self._know(await api.call("GET", "/channels/{channel_id}", channel_id=channel))
        except (RetriableError, FatalConnectorError):
            raise
        except ConnectorError as error:
            logger.info("discord: a channel cannot be looked up: %s", error)
        self._parents.setdefault(channel, "")

    def _know(self, channel: Json) -> None:
        if id_ := identifier(channel.get("id")):
            thread = channel.get("type") in THREADS
            self._parents[id_] = identifier(channel.get("parent_id")) if thread else ""

    async def forget(self, channel: str) -> None:
        """Drop a place. Raises StoreError."""
        self._left[channel] = None
        self._parents.pop(channel, None)
        await self.kept.forget(channel)

    async def spoke(self, channel: ChannelRef, *, answer: bool) -> None:
        """We have spoken there: its later words may be for us, and are read after an outage."""
        if answer:
            self._left.pop(where(channel), None)
        elif where(channel) in self._left:
            return
        kind = "p" if channel.kind is ChannelKind.PRIVATE else "s"
        day = int(self._clock.now() // _DAY)  # what is used often stays among the newest
        parent = channel.id if channel.thread else ""
        await self.kept.put(where(channel), f"{kind}:{parent}:{day}")

    def spoken(self) -> Iterator[Spoken]:
        """Where we spoke, newest last."""
        for id_, text in self.kept.items():
            kind, parent, _ = (*text.split(":"), "", "")[:3]
            yield Spoken(id=id_, parent=parent, private=kind == "p")

    def ours(self, thread: str) -> bool:
        """Whether this is a thread in which we spoke."""
        return bool(self._parents.get(thread)) and thread in self.kept


def where(channel: ChannelRef) -> str:
    """The id under which Discord knows a place: a thread is a channel of its own."""
    return channel.thread or channel.id
