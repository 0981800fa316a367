# SPDX-License-Identifier: Apache-2.0
"""The connector: what the plugin in OpenClaw's gateway tells us, and what it is told back."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from aiohttp import web
from goodbot.api.commands import Grant, find
from goodbot.api.events import (
    ChannelKind,
    ChannelRef,
    Event,
    MessageEvent,
    MessageRef,
    Outcome,
    Receipt,
    Reply,
)
from goodbot.api.labels import reaction_values
from goodbot.api.texts import say
from goodbot.base import one_time
from goodbot.base.errors import UsageError

from goodbot_connectors.kit.bridge.clients import ApiClient
from goodbot_connectors.kit.bridge.guard import HttpError, answer, guarded, json_object
from goodbot_connectors.kit.bridge.local import LocalConnector
from goodbot_connectors.kit.fields import Json, string
from goodbot_connectors.kit.state import StateTexts
from goodbot_connectors.openclaw import SPEC, normalize
from goodbot_connectors.openclaw.normalize import PluginEvent
from goodbot_connectors.openclaw.seen import LastSeen
from goodbot_connectors.telegram.emoji import key as emoji_key

if TYPE_CHECKING:
    from aiohttp.web import AbstractRouteDef
    from goodbot.api.connector import ConnectorHost

    from goodbot_connectors.openclaw.config import OpenClawSettings

logger = logging.getLogger(__name__)

LARGEST = 4 << 20
"""Bytes of a call: the plugin sends at most 2,000,000 at a time, and one answer may be that long."""
MOST = 100
"""Events in a call."""
COMMAND_SECONDS = 10.0
"""So long a chat waits for a command; OpenClaw's own queue stands still meanwhile."""
WHISPER_SECONDS = 1.0


class OpenClawConnector(LocalConnector):
    """People are `<channel>:<account>:<sender>`, their chats `<channel>:<account>:<chat>`."""

    spec = SPEC
    settings: OpenClawSettings

    def __init__(self, host: ConnectorHost, settings: OpenClawSettings) -> None:
        super().__init__(host, settings)
        self._values = reaction_values(settings.good, settings.bad, emoji_key)
        self._names = StateTexts(host, "names", most=1000)
        """What an answer is known by, for each further message that it was sent as."""
        self._seen = LastSeen(host.state_dir, host.clock)
        self._whispers: dict[str, str] = {}
        """The commands in groups whose answers are being made, by their people."""

    def routes(self) -> Sequence[AbstractRouteDef]:
        events = guarded(self._events, self.clients, largest=LARGEST)
        ping = guarded(self._ping, self.clients)
        return (web.post("/v1/openclaw/events", events), web.get("/v1/openclaw/ping", ping))

    async def start(self) -> None:
        if not self.running:
            await self._names.load()
        await super().start()

    async def _ping(self, _request: web.Request, client: ApiClient) -> web.StreamResponse:
        """The plugin was loaded, and its token opens us."""
        self._seen.note()
        return answer({"client": client.name})

    async def _events(self, request: web.Request, client: ApiClient) -> web.StreamResponse:
        body = await json_object(request, LARGEST)
        given = body.get("events")
        if not isinstance(given, list) or not 1 <= len(cast("list[Any]", given)) <= MOST:
            raise HttpError(400, f'Send 1 to {MOST} events: {{"events": [...]}}.')
        sent: list[PluginEvent] = []
        for number, one in enumerate(cast("list[Any]", given)):
            if not isinstance(one, dict):
                raise HttpError(422, f"events[{number}] is no object.")
            try:
                sent.append(self._checked(cast("Json", one)))
            except UsageError as error:
                raise HttpError(422, f"events[{number}]: {error}.") from error
        self._seen.note(captured=any(one.type == "capture" for one in sent))
        receipts = await self._take(sent, admin=client.admin)
        return answer({"receipts": [_shown(one) for one in receipts]})

    def _checked(self, json: Json) -> PluginEvent:
        """Raises UsageError for what cannot become an event, before anything of the call is stored."""
        sent = normalize.read(json)
        if sent.type != "command":
            self._event(sent)
        return sent

    async def _take(self, sent: Sequence[PluginEvent], *, admin: bool) -> list[Receipt]:
        """Do them in their order; those between two commands are one commit."""
        receipts: dict[int, Receipt] = {}
        waiting: list[tuple[int, Event]] = []

        async def store() -> None:
            if waiting:
                done = await self.host.submit([event for _, event in waiting])
                receipts.update(zip([number for number, _ in waiting], done, strict=True))
                waiting.clear()

        for number, one in enumerate(sent):
            if one.type == "command":
                await store()
                receipts[number] = await self._command(one, admin=admin)
            elif one.type == "named":
                await self._names.put(_place(one, string(one.json, "message")), one.name)
                receipts[number] = Receipt(event_id=one.id, outcome=Outcome.ACCEPTED)
            elif (event := self._event(one)) is None:
                receipts[number] = Receipt(event_id=one.id, outcome=Outcome.IGNORED)
            else:
                waiting.append((number, event))
        await store()
        return [receipts[number] for number in range(len(sent))]

    def _event(self, sent: PluginEvent) -> Event | None:
        """None for what asks for nothing. Raises UsageError."""
        if sent.type == "capture":
            return normalize.capture(sent, self.order())
        if not sent.name:
            raise UsageError(f"a {sent.type} has a name, that of the answer")
        if sent.type == "named":
            if not string(sent.json, "message"):
                raise UsageError("a message that was named has an id")
            return None
        name = self._names.get(_place(sent, sent.name), sent.name)
        if sent.type == "rating":
            return normalize.rating(sent, self.order(), name)
        return normalize.reaction(sent, self.order(), name, self._values)

    async def _command(self, sent: PluginEvent, *, admin: bool) -> Receipt:
        (name, args), language = normalize.words(sent), self.host.language
        if code := one_time.read(f"{name} {args}") or (one_time.read(args) if name == "pair" else ""):
            return await self._pair(sent, code)
        command = find(name)
        if command is not None and command.grant is Grant.ADMINISTER:
            if sent.json.get("admin") is not True:
                return _refused(sent, say("agent_owners", language, name=command.name))
            if sent.json.get("owner") is not True or not admin:
                return _refused(sent, say("agent_no_owner", language))
        meant = self._names.get(_place(sent, sent.name), sent.name)
        shared = sent.channel.kind is ChannelKind.SHARED
        if shared:
            self._whispers[sent.user.id] = sent.id
        try:
            receipt = await self.command(
                sent.user,
                sent.channel,
                name,
                args,
                event_id=sent.id,
                reply_to=meant,
                digest=sent.digest,
                seconds=COMMAND_SECONDS,
            )
        finally:
            if self._whispers.get(sent.user.id) == sent.id:
                del self._whispers[sent.user.id]
        text = receipt.text
        if receipt.outcome is Outcome.DENIED and not text:
            text = say("agent_stranger", language, person=f"{normalize.CONNECTOR}:{sent.user.id}")
        told = self.news(sent.channel.id if shared else sent.user.id)
        return replace(receipt, text="\n\n".join([text, *told]).strip())

    async def _pair(self, sent: PluginEvent, code: str) -> Receipt:
        """A one-time code makes its sender an owner; whatever else it might be, nobody answers it."""
        [receipt] = await self.host.submit(
            [
                MessageEvent(
                    event_id=sent.id,
                    order=self.order(),
                    user=sent.user,
                    channel=sent.channel,
                    digest=sent.digest,
                    text=code,
                    message_id=sent.id,
                    addressed=False,
                )
            ]
        )
        if receipt.outcome is Outcome.PAIRED:
            return receipt
        private = sent.channel.kind is ChannelKind.PRIVATE
        return _refused(sent, say("agent_code" if private else "agent_code_here", self.host.language))

    async def send(self, channel: ChannelRef, reply: Reply) -> tuple[MessageRef, ...]:
        """What answers a command in a group privately is not said there, and not kept: it is asked again."""
        event_id = self._whispers.get(channel.id, "")
        if event_id not in self._waiting:
            return await super().send(channel, reply)
        self.host.spawn(self._only_whispered(event_id), "whisper")
        return (MessageRef(channel=channel, id=event_id),)

    async def _only_whispered(self, event_id: str) -> None:
        """A rating is acknowledged after the whisper, with a nod; nothing else is: say where to ask."""
        await self.host.clock.sleep(WHISPER_SECONDS)
        waiting = self._waiting.get(event_id)
        if waiting is not None and not waiting.done():
            text = say("agent_privately", self.host.language)
            said = Receipt(event_id=event_id, outcome=Outcome.ACCEPTED, text=text)
            waiting.set_result(said)

    async def forget(self, user: str) -> None:
        await super().forget(user)
        await self._names.forget(user.rpartition(":")[2])


def _place(sent: PluginEvent, message: str) -> str:
    return f"{sent.channel.id} {message}"


def _refused(sent: PluginEvent, text: str) -> Receipt:
    return Receipt(event_id=sent.id, outcome=Outcome.DENIED, text=text)


def _shown(receipt: Receipt) -> dict[str, str]:
    return {
        "id": receipt.event_id,
        "outcome": receipt.outcome.value,
        "text": receipt.text,
        "turn": receipt.turn,
    }
