# SPDX-License-Identifier: Apache-2.0
"""The bot on Teams: its parts, and what follows from what was taken in.

No decision about content is taken here.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

from goodbot.api.connector import Connector, ConnectorHost
from goodbot.api.events import ChannelKind, ChannelRef, Event, MessageRef, Receipt, Reply
from goodbot.api.labels import reaction_values
from goodbot.base.errors import FatalConnectorError, RetriableError

from goodbot_connectors.kit.dates import Dates
from goodbot_connectors.kit.listener import Listener
from goodbot_connectors.kit.state import StateTexts
from goodbot_connectors.teams import SPEC, render
from goodbot_connectors.teams.config import APP_PASSWORD, TeamsSettings
from goodbot_connectors.teams.intake import Intake
from goodbot_connectors.teams.normalize import Normalizer, place, reaction_key
from goodbot_connectors.teams.notices import Feedback
from goodbot_connectors.teams.outbox import MessageSender
from goodbot_connectors.teams.references import References
from goodbot_connectors.teams.stream import TeamsStream
from goodbot_connectors.teams.wire import RefusedError, Wire

logger = logging.getLogger(__name__)

_HOST = "127.0.0.1"
_LOCAL = "local"
"""Our account where there is no app registration."""
_KEPT = 300
"""Messages of ours whose turn is known: what Teams's own feedback is about."""


class TeamsConnector(Connector):
    """One app registration."""

    spec = SPEC
    settings: TeamsSettings

    def __init__(self, host: ConnectorHost, settings: TeamsSettings) -> None:
        super().__init__(host, settings)
        self._wire: Wire | None = None
        self._listener: Listener | None = None
        self._references = References(host, self.account)
        self._answers = StateTexts(host, f"{self.account} answers", _KEPT)

    @property
    def account(self) -> str:
        return _LOCAL if self.settings.insecure_local else self.settings.app_id

    async def start(self) -> None:
        if self._wire is not None:
            return
        settings = self.settings
        self._complete()
        password = self.host.secrets.get(APP_PASSWORD)
        wire = Wire(
            settings,
            password,
            self.host.clock,
            self.host.trouble,
            Dates(self.host.clock, self.host.told_time),
        )
        try:
            await wire.open()
            await self._references.load()
            await self._answers.load()
            self._outbox = MessageSender(wire, self._references, self.host.clock)
            self._notices = Feedback(
                self._outbox, self._references, self.host.clock, targeted=settings.targeted
            )
            normalizer = Normalizer(
                account=self.account,
                tenant=settings.tenant,
                answers=self._answers,
                values=reaction_values(settings.good, settings.bad, reaction_key),
            )
            intake = Intake(self.host, wire, self._references, normalizer, local=settings.insecure_local)
            listener = Listener(
                intake.receive, path=settings.path, host=_HOST, port=settings.port, setting="port"
            )
            self._wire = wire
            await listener.start()
        except BaseException:
            self._wire = None
            await wire.close()
            raise
        self._listener = listener
        logger.info("teams: listening on %s port %d", _HOST, listener.port)

    def _complete(self) -> None:
        """Whether it is set up. Raises FatalConnectorError."""
        if self.settings.insecure_local:
            return logger.warning("teams: insecure_local is set: callers of this machine are believed")
        if not self.settings.app_id:
            raise FatalConnectorError(
                "[connectors.teams] app_id is empty, and without it nobody's token can be checked: set it "
                "to the bot's Application (client) ID; `goodbot connect teams` says where it is found"
            )
        if not self.host.secrets.get(APP_PASSWORD):
            raise FatalConnectorError(f"set {APP_PASSWORD}; `goodbot connect teams` says where it is found")

    async def stop(self) -> None:
        listener, self._listener = self._listener, None
        if listener is not None:
            await listener.stop()
        wire, self._wire = self._wire, None
        if wire is not None:
            await wire.close()

    @property
    def port(self) -> int:
        """Where it listens; another than the setting if that is 0."""
        if self._listener is None:
            raise RetriableError("the Teams connector is not started")
        return self._listener.port

    async def send(self, channel: ChannelRef, reply: Reply) -> tuple[MessageRef, ...]:
        return await self._stream(channel).finish(reply)

    async def edit(self, message: MessageRef, reply: Reply) -> None:
        activity, *_ = render.answers(
            message.channel, reply, feedback=self.settings.feedback, group_buttons=self.settings.group_buttons
        )
        await self._connected().put(message, activity)
        await self._note([message], reply)

    def stream(self, channel: ChannelRef, reply_to: str = "") -> TeamsStream:
        stream = self._stream(channel)
        stream.begin()
        return stream

    def replace(self, messages: Sequence[MessageRef], channel: ChannelRef) -> TeamsStream:
        stream = self._stream(channel, messages)
        stream.begin()
        return stream

    def _stream(self, channel: ChannelRef, replaces: Sequence[MessageRef] = ()) -> TeamsStream:
        return TeamsStream(
            host=self.host,
            outbox=self._connected(),
            settings=self.settings,
            channel=channel,
            sent=self._note,
            replaces=replaces,
        )

    async def _note(self, refs: Sequence[MessageRef], reply: Reply) -> None:
        for ref in refs:
            await self._answers.put(place(ref.channel, ref.id), reply.turn)

    async def acknowledge(self, event: Event, receipt: Receipt) -> None:
        self._connected()
        await self._notices.tell(event, receipt)

    async def private(self, user: str) -> ChannelRef | None:
        """The personal chat; opened for those who have installed the app and never wrote."""
        self._connected()
        chat, beside = await self._references.chat(user), self._references.latest
        if not chat and beside is not None and self._wire is not None:
            try:
                chat = await self._wire.open_chat(beside, user)
            except RefusedError as error:
                logger.info("teams: no personal chat can be opened: %s", error)
            if chat:
                await self._references.chat_opened(beside, user, chat)
        if not chat:
            return None
        return ChannelRef(connector=SPEC.name, account=self.account, id=chat, kind=ChannelKind.PRIVATE)

    async def forget(self, user: str) -> None:
        """Their personal chat: where it is, and which messages of ours are in it."""
        await self._answers.load()
        await self._references.load()
        if chat := await self._references.chat(user):
            await self._answers.forget(chat.rpartition(":")[2])
            if self._wire is not None:
                self._outbox.forget(chat)
                self._notices.forget(chat)
        await self._references.forget(user)

    def _connected(self) -> MessageSender:
        if self._wire is None:
            raise RetriableError("the Teams connector is not started")
        return self._outbox
