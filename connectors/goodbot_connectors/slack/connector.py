# SPDX-License-Identifier: Apache-2.0
"""The account on Slack: sends, shows, asks. No decision about content is taken here."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from goodbot.api.connector import Connector, ConnectorHost, OpenTurn, SentAnswer
from goodbot.api.events import (
    ChannelKind,
    ChannelRef,
    CommandEvent,
    Event,
    MessageEvent,
    MessageRef,
    RatingEvent,
    RatingKind,
    Receipt,
    Reply,
)
from goodbot.base.errors import ConnectorError, FatalConnectorError, RetriableError, StoreError

from goodbot_connectors.kit.copies import FirstCopies
from goodbot_connectors.kit.dates import Dates
from goodbot_connectors.kit.fields import Json, items, string, strings, sub
from goodbot_connectors.kit.lru import Recent
from goodbot_connectors.slack import SPEC, emoji, forms, home, render
from goodbot_connectors.slack.api import Api, RefusedError
from goodbot_connectors.slack.catchup import CatchUp
from goodbot_connectors.slack.config import APP_TOKEN, BOT_TOKEN, SlackSettings
from goodbot_connectors.slack.identity import BotIdentity
from goodbot_connectors.slack.intake import Intake
from goodbot_connectors.slack.members import Members
from goodbot_connectors.slack.normalize import HOME, Normalizer
from goodbot_connectors.slack.presses import AnswerRef, Opening, key
from goodbot_connectors.slack.reconcile import reconciler, when
from goodbot_connectors.slack.stream import Recipient, SlackStream
from goodbot_connectors.slack.threads import KEY, Threads
from goodbot_connectors.slack.transport import HttpTransport, SocketTransport, Transport

logger = logging.getLogger(__name__)


class SlackConnector(Connector):
    """One app in one workspace."""

    spec = SPEC
    settings: SlackSettings

    def __init__(self, host: ConnectorHost, settings: SlackSettings) -> None:
        super().__init__(host, settings)
        self._api: Api | None = None
        self._me = BotIdentity(user="", team="")
        self._threads = Threads()
        self._values = emoji.values(settings)
        self._reconciler = reconciler(host.clock, self._values, self._connected, lambda: self._me)
        self._members = Members(host.clock, self._connected, lambda: self._me)
        self._intake = self._new_intake()
        self._dates = Dates(host.clock, host.told_time)
        self._catch_up = CatchUp(host, self._threads, self._read_again, self._dates.now)
        self._transport: Transport | None = None
        self._chats: Recent[str, ChannelRef] = Recent()
        self._statuses: Recent[str, str] = Recent()
        self._refused: set[str] = set()
        """Channels that take no streams, and that the workspace allows no edits."""
        self._copies = FirstCopies(when)

    @property
    def account(self) -> str:
        return self._me.account if self._me.user else ""

    async def _read_again(self, body: Json) -> None:
        await self._intake.submit(body)

    async def start(self) -> None:
        if self._transport is not None:
            return
        secrets = self.host.secrets
        if self.settings.mode not in ("socket", "http"):
            raise FatalConnectorError('[connectors.slack] mode must be "socket" or "http"')
        for name in self.settings.needed_secrets:
            if not secrets.get(name):
                raise FatalConnectorError(f"set {name}; `goodbot connect slack` says where it is found")
        api = Api(
            secrets.get(BOT_TOKEN),
            self.host.clock,
            self._dates,
            app=secrets.get(APP_TOKEN),
            base=self.settings.api_base,
        )
        try:
            self._me = await api.open()
            self._threads.load(await self.host.get(KEY))
            await self._catch_up.load()
            self._reconciler.again()
            self._intake, self._api = self._new_intake(), api
            app = self._intake.app()
            transport: Transport = (
                HttpTransport(self.host, self.settings, app, self._dates)
                if self.settings.mode == "http"
                else SocketTransport(self.host, api, app, self._alive)
            )
            await transport.start()
        except BaseException:
            self._api = None
            await api.close()
            raise
        self._transport = transport
        self._catch_up.begin(api)
        await self._catch_up.alive()
        logger.info("slack: connected as account %s", self.account)

    def _new_intake(self) -> Intake:
        normalizer = Normalizer(me=self._me, values=self._values, threads=self._threads)
        return Intake(self.host, normalizer, self._members, self._open)

    async def stop(self) -> None:
        transport, self._transport = self._transport, None
        if transport is not None:
            await self._catch_up.stop()
            await self._intake.stop()
            await transport.stop()
            await self._intake.stop()  # what came in meanwhile
        api, self._api = self._api, None
        if api is not None:
            await api.close()

    # Out

    async def send(self, channel: ChannelRef, reply: Reply) -> tuple[MessageRef, ...]:
        return await self._stream(channel).finish(reply)

    async def edit(self, message: MessageRef, reply: Reply) -> None:
        body = render.message(reply.text, AnswerRef(turn=reply.turn), reply.buttons)
        await self._connected().call("chat.update", channel=message.channel.id, ts=message.id, **body)

    def stream(self, channel: ChannelRef, reply_to: str = "") -> SlackStream:
        stream = self._stream(channel, recipient=self._intake.askers.get((channel.id, reply_to)))
        stream.begin()
        return stream

    def replace(self, messages: Sequence[MessageRef], channel: ChannelRef) -> SlackStream:
        return self._stream(channel, replaces=messages)

    def _stream(
        self, channel: ChannelRef, *, recipient: Recipient | None = None, replaces: Sequence[MessageRef] = ()
    ) -> SlackStream:
        return SlackStream(
            host=self.host,
            api=self._connected(),
            settings=self.settings,
            channel=channel,
            sent=self._note,
            recipient=recipient,
            replaces=replaces,
            refused=self._refused,
        )

    async def _note(self, refs: Sequence[MessageRef], reply: Reply) -> None:
        """Remember where we spoke; a lost note costs a mention, so a failing disk is no error here."""
        worth = [
            self._threads.note(ref.channel.id, ref.channel.thread, ref.id, answer=bool(reply.turn))
            for ref in refs
        ]
        if any(worth):
            try:
                await self.host.set(KEY, self._threads.dump())
            except StoreError as error:
                logger.warning("slack: the list of our threads was not stored: %s", error)

    async def private(self, user: str) -> ChannelRef:
        """The direct message channel with a person, who need not have written before."""
        if (known := self._chats.get(user)) is not None:
            return known
        opened = await self._connected().call("conversations.open", users=user)
        id_ = string(sub(opened, "channel"), "id")
        channel = ChannelRef(connector=SPEC.name, account=self.account, id=id_, kind=ChannelKind.PRIVATE)
        self._chats[user] = channel
        return channel

    async def acknowledge(self, event: Event, receipt: Receipt) -> None:
        """Show it to that person alone: an ephemeral message, the Home tab, or the private chat."""
        if isinstance(event, CommandEvent) and event.event_id.startswith(HOME):
            await self._publish(event, receipt.text)
            return
        if offer := self._intake.offers.pop(event.event_id, ""):
            await self._connected().dismiss(offer)
        if not receipt.text:
            return
        message_id = getattr(event, "message_id", "")
        turn = receipt.turn or getattr(event, "turn", "")
        thread = event.channel.thread or self._threads.root(event.channel.id, message_id)
        about = AnswerRef(turn, "" if isinstance(event, (CommandEvent, MessageEvent)) else message_id)
        body = render.notice(receipt.text, about, receipt.offer, event.user.language)
        posted = {**body, **render.UNFURLED}
        api, place = self._connected(), event.channel
        if isinstance(event, MessageEvent) and place.kind is ChannelKind.PRIVATE:
            await api.call("chat.postMessage", channel=place.id, thread_ts=thread or None, **posted)
            return
        if thread == message_id:  # nobody sees an ephemeral message in a thread that is not begun
            thread = ""
        try:
            await api.call(
                "chat.postEphemeral", channel=place.id, user=event.user.id, thread_ts=thread or None, **body
            )
        except RefusedError as error:
            logger.info("slack: told in private instead: %s", error.code)
            chat = await self.private(event.user.id)
            same = thread if chat.id == place.id else ""
            await api.call("chat.postMessage", channel=chat.id, thread_ts=same or None, **posted)

    async def _publish(self, event: CommandEvent, text: str) -> None:
        user, more = event.user, None if event.name == "status" else text
        if more is None:
            self._statuses[user.id] = text
        status = self._statuses.get(user.id, "…")
        view = home.view(channel=event.channel.id, status=status, more=more, language=user.language)
        await self._connected().call("views.publish", user_id=user.id, view=view)

    # What can be asked

    async def copied(self, message: MessageRef, answers: Sequence[SentAnswer]) -> str:
        """By its words, which come at once where a workspace allows no edits."""

        async def words(_: object) -> str:
            asked = self._connected().call("reactions.get", channel=message.channel.id, timestamp=message.id)
            try:
                found = sub(await asked, "message")
            except RefusedError as error:
                if error.code == "message_not_found":
                    return ""
                raise
            return string(found, "text") if string(found, "user") == self._me.user else ""

        return await self._copies.of(message, answers, words=words, parts=render.fallbacks)

    async def reconcile(self, open_turns: Sequence[OpenTurn]) -> Sequence[Event]:
        """The differences to what we know, for a few messages each time, after every start."""
        self._connected()
        return [event for event in await self._reconciler.look(open_turns) if await self._counts(event)]

    async def _counts(self, event: Event) -> bool:
        """Whether a reaction that was found is one of ours: Slack names people there, no teams."""
        if isinstance(event, RatingEvent) and event.kind is RatingKind.RETRACT:
            return True
        try:
            return await self._members.ours(event.user.id)
        except RetriableError:
            self._reconciler.again()
            return False

    async def members(self, group: str) -> frozenset[str]:
        """The people of a user group, by its id: a handle can be given to another group."""
        api = self._connected()
        if not (group.startswith("S") and key(group) and group.isupper()):
            handle = group.strip().lstrip("@")
            listed = await api.call("usergroups.list")
            found = [g for g in items(listed, "usergroups") if string(g, "handle") == handle]
            if not found:
                raise ConnectorError(f"there is no user group @{handle} in this workspace")
            id_ = key(string(found[0], "id"))
            raise ConnectorError(f'@{handle} is a name, which can change: write its id, "{id_}"')
        listed = await api.call("usergroups.users.list", usergroup=group)
        return frozenset(filter(None, map(key, strings(listed, "users"))))

    async def forget(self, user: str) -> None:
        """Which threads they began, and which of ours are in their direct messages."""
        self._connected()  # before, nothing is known that could be stored without them
        self._statuses.pop(user, None)
        self._intake.forget(user)
        self._copies.forget()
        try:
            chat = await self.private(user)
        except RefusedError as error:  # the account is gone, and nobody tells where we talked
            logger.info("slack: the direct messages of somebody are not known: %s", error.code)
        else:
            self._chats.pop(user, None)
            self._threads.drop(chat.id)
            self._refused.discard(chat.id)
        if (left := self._threads.dump()) != (await self.host.get(KEY) or ""):
            await self.host.set(KEY, left)

    async def _open(self, asked: Opening) -> None:
        try:
            view = forms.modal(asked)
            await self._connected().call("views.open", trigger_id=asked.trigger, view=view)
        except ConnectorError as error:
            logger.warning("slack: the modal did not open: %s", error)

    async def _alive(self, again: bool) -> None:
        if again:
            self._reconciler.again()
            self._catch_up.begin(self._connected())
        await self._catch_up.alive()

    def _connected(self) -> Api:
        if self._api is None:
            raise RetriableError("the Slack connector is not started")
        return self._api
