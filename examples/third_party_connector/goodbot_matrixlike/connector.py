# SPDX-License-Identifier: Apache-2.0
"""The account on the homeserver: one sync loop, its cursor, and what is said in return."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from goodbot import (
    ChannelKind,
    ChannelRef,
    Connector,
    ConnectorHost,
    Event,
    MessageRef,
    OpenTurn,
    RatingEvent,
    RatingKind,
    Receipt,
    Reply,
    RetriableError,
    StoreError,
)

from goodbot_matrixlike import SPEC, TOKEN, MatrixlikeSettings, normalize
from goodbot_matrixlike.api import Api

REFUSAL = "I cannot read this room: it is encrypted. Please write to me in one that is not."


class MatrixlikeConnector(Connector):
    """One account. The cursor is the homeserver's `next_batch`, stored with its events."""

    spec = SPEC

    def __init__(self, host: ConnectorHost, settings: MatrixlikeSettings) -> None:
        super().__init__(host, settings)
        self._me = ""
        self._since = ""
        self._kinds: dict[str, ChannelKind] = {}
        self._reactions: dict[str, dict[str, RatingEvent]] = {}
        self._api: Api | None = None
        self._task: asyncio.Task[None] | None = None

    @property
    def account(self) -> str:
        return self._me

    async def start(self) -> None:
        if self._task is not None:
            return
        self._api = Api(self.settings.homeserver, self.host.secrets.get(TOKEN))
        self._me = await self._api.whoami()
        self._since = await self.host.cursor() or await self.host.get("first") or ""
        if not self._since:  # the first start ever: what was said before is not for us
            self._since = (await self._api.sync("", 0))["next_batch"]
            await self.host.set("first", self._since)
        self._task = self.host.spawn(self._run(self._api), "sync")

    async def stop(self) -> None:
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.wait({task})
        api, self._api = self._api, None
        if api is not None:
            await api.close()

    async def _run(self, api: Api) -> None:
        while not self.host.stopping.is_set():
            try:
                await self._take_in(api)
            except (RetriableError, StoreError) as error:  # the same batch comes again
                await self.host.clock.sleep(getattr(error, "retry_after", 1.0))

    async def _take_in(self, api: Api) -> None:
        batch = await api.sync(self._since, self.settings.poll_seconds)
        events: list[Event] = []
        for room, joined in batch.get("rooms", {}).get("join", {}).items():
            timeline = joined["timeline"]["events"]
            if any(raw["type"] in ("m.room.member", "m.room.encryption") for raw in timeline):
                self._kinds.pop(room, None)
            channel = await self._channel(api, room)
            if channel.kind is ChannelKind.ENCRYPTED:
                await self._refuse(api, room)
                continue
            found = (normalize.event(raw, channel, at) for at, raw in enumerate(timeline))
            events += [event for event in found if event is not None]
        events.sort(key=lambda event: event.order)  # a batch comes room by room
        if events:
            await self.host.submit(events, cursor=batch["next_batch"])
        self._since = batch["next_batch"]
        for event in events:
            self._remember(event)

    async def _channel(self, api: Api, room: str) -> ChannelRef:
        if room not in self._kinds:
            if await api.encrypted(room):
                self._kinds[room] = ChannelKind.ENCRYPTED
            else:
                two = await api.members(room) == 2
                self._kinds[room] = ChannelKind.PRIVATE if two else ChannelKind.SHARED
        kind = self._kinds[room]
        return ChannelRef(connector=SPEC.name, account=self._me, id=room, kind=kind)

    async def _refuse(self, api: Api, room: str) -> None:
        """Say once, for ever, that we do not read here."""
        if await self.host.get(f"refused {room}") is None:
            await api.send(room, {"msgtype": "m.notice", "body": REFUSAL, "m.mentions": {}})
            await self.host.set(f"refused {room}", "yes")

    async def send(self, channel: ChannelRef, reply: Reply) -> tuple[MessageRef, ...]:
        if self._api is None:
            raise RetriableError("the connector is not started")
        # Older clients look for names in the text: nobody is called by an answer.
        body = reply.text.replace("@", "@\u200b")
        content: dict[str, Any] = {"msgtype": "m.notice", "body": body, "m.mentions": {}}
        if reply.reply_to:
            content["m.relates_to"] = {"m.in_reply_to": {"event_id": reply.reply_to}}
        return (MessageRef(channel=channel, id=await self._api.send(channel.id, content)),)

    async def acknowledge(self, event: Event, receipt: Receipt) -> None:
        if receipt.text and not isinstance(event, RatingEvent):
            await self.send(event.channel, Reply(text=receipt.text, reply_to=event.event_id))

    async def reconcile(self, open_turns: Sequence[OpenTurn]) -> Sequence[Event]:
        """What the messages bear now, and the retraction of what they bore when we last looked.

        A sync may leave a gap (`limited`), in which reactions and redactions are lost.
        """
        if self._api is None:
            return ()
        events: list[Event] = []
        before, self._reactions = self._reactions, {}
        for ref in (ref for turn in open_turns for ref in turn.messages):
            there = await self._api.reactions(ref.channel.id, ref.id)
            ratings = [normalize.event(raw, ref.channel) for raw in there]
            now = {rating.event_id: rating for rating in ratings if isinstance(rating, RatingEvent)}
            lost = [rating for id_, rating in before.get(ref.id, {}).items() if id_ not in now]
            events += [*now.values(), *map(normalize.gone, lost)]
            self._reactions[ref.id] = now
        return events

    def _remember(self, event: Event) -> None:
        if not isinstance(event, RatingEvent):
            return
        if event.kind is RatingKind.RATE:
            self._reactions.setdefault(event.message_id, {})[event.event_id] = event
        for ratings in self._reactions.values():
            ratings.pop(event.retracts, None)
