# SPDX-License-Identifier: Apache-2.0
"""Our messages on their way to a channel, and what we know of those that stand there."""

from __future__ import annotations

from collections import OrderedDict
from functools import partial
from typing import Any

from goodbot.api.events import ChannelRef, MessageRef
from goodbot.base.clock import Clock

from goodbot_connectors.kit.backoff import patiently
from goodbot_connectors.teams.normalize import place
from goodbot_connectors.teams.references import Reference, References
from goodbot_connectors.teams.wire import RefusedError, Wire

_KNOWN = 500


class MessageSender:
    """Sends, edits and deletes, and remembers how our latest messages look: Teams cannot be asked."""

    def __init__(self, wire: Wire, references: References, clock: Clock) -> None:
        self._wire, self._references, self._clock = wire, references, clock
        self._shown: OrderedDict[str, dict[str, Any]] = OrderedDict()
        self._last: dict[str, str] = {}

    async def post(
        self, channel: ChannelRef, activity: dict[str, Any], *, patient: bool = True, to: str = ""
    ) -> str:
        """Send an activity; its id. With `to`, only that person sees it. Raises ConnectorError."""
        where = await self._where(channel)
        if to:
            activity = {**activity, "recipient": {"id": to}}
        send = partial(self._wire.send, where, activity, targeted=bool(to))
        sent = await patiently(self._clock, send, patient=patient)
        sent = next((e["streamId"] for e in activity.get("entities", ()) if "streamId" in e), sent)
        if sent and activity["type"] == "message" and not to:
            self._last[channel.id] = sent
            self._remember(channel, sent, activity)
        return sent

    async def put(self, message: MessageRef, activity: dict[str, Any], *, patient: bool = True) -> None:
        """Put an activity in the place of one of ours; nothing happens where it looks so already."""
        if self.shown(message) == activity:
            return
        where = await self._where(message.channel)
        await patiently(self._clock, lambda: self._wire.update(where, message.id, activity), patient=patient)
        self._remember(message.channel, message.id, activity)

    async def delete(self, message: MessageRef) -> None:
        """Delete one of our messages."""
        where = await self._where(message.channel)
        await patiently(self._clock, lambda: self._wire.delete(where, message.id))
        self._shown.pop(place(message.channel, message.id), None)

    def shown(self, message: MessageRef) -> dict[str, Any] | None:
        """How one of our messages looks; None where we do not know."""
        return self._shown.get(place(message.channel, message.id))

    def is_last(self, message: MessageRef) -> bool:
        """Whether we have sent nothing there since."""
        return self._last.get(message.channel.id) == message.id

    def _remember(self, channel: ChannelRef, message: str, activity: dict[str, Any]) -> None:
        entities = [e for e in activity.get("entities", ()) if e["type"] != "streaminfo"]
        known = {name: value for name, value in activity.items() if name != "entities"}
        self._shown[place(channel, message)] = known | ({"entities": entities} if entities else {})
        self._shown.move_to_end(place(channel, message))
        while len(self._shown) > _KNOWN:
            self._shown.popitem(last=False)

    def forget(self, channel_id: str) -> None:
        """Know no message of a channel any more."""
        for key in [key for key in self._shown if key.partition(" ")[0] == channel_id]:
            del self._shown[key]
        self._last.pop(channel_id, None)

    async def _where(self, channel: ChannelRef) -> Reference:
        found = await self._references.find(channel)
        if found is None:
            raise RefusedError("nobody has written to the bot there yet: say hello to it first")
        return found
