# SPDX-License-Identifier: Apache-2.0
"""The contract between the core and a chat platform. `API_VERSION` numbers it.

A connector is a package whose `__init__` registers a `ConnectorSpec` and imports no SDK; the
class named by `ConnectorSpec.factory` is imported only when its config section is there.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Flag, auto
from typing import TYPE_CHECKING, Any, ClassVar

from goodbot.api.commands import command_in
from goodbot.api.events import (
    ChannelKind,
    ChannelRef,
    CommandEvent,
    Event,
    MessageEvent,
    MessageRef,
    OrderKey,
    Receipt,
    Reply,
    UserRef,
)
from goodbot.api.host import ConnectorHost
from goodbot.api.reply_stream import CollectedStream, ReplyStream

if TYPE_CHECKING:
    from aiohttp.web import AbstractRouteDef

__all__ = [
    "API_VERSION",
    "Capability",
    "Connector",
    "ConnectorHost",
    "ConnectorSpec",
    "OpenTurn",
    "ReplyStream",
    "SentAnswer",
]

API_VERSION = 1


class Capability(Flag):
    """What a platform can do. The contract suite skips what is not declared, and says so."""

    NONE = 0
    REACTIONS = auto()
    """People rate with a reaction to a message."""
    BUTTONS = auto()
    """An answer has buttons; a press is acknowledged."""
    NATIVE_FEEDBACK = auto()
    """The platform itself has thumbs under an answer."""
    EPHEMERAL = auto()
    """A receipt is shown to one person in a shared channel."""
    EDITS = auto()
    """A message of ours can be changed."""
    STREAMING = auto()
    """An answer grows while it is written."""
    THREADS = auto()
    """A conversation can be a thread."""
    RECONCILE = auto()
    """The reactions on a message can be read again."""
    GROUPS = auto()
    """The platform has groups of people; see `Connector.members`."""
    COMMENTS = auto()
    """People can type a reason or a better answer at an answer (a modal, a reply prompt)."""
    ATTACHMENTS = auto()
    """People can attach files to a message."""
    INBOX = auto()
    """It shows the answers of every connector to those who may rate them; see `ConnectorHost.inbox`."""
    ROUTES = auto()
    """It answers over HTTP at goodbot's own address; see `Connector.routes`."""


METHODS: Mapping[Capability, tuple[str, ...]] = {
    Capability.BUTTONS: ("acknowledge",),
    Capability.EPHEMERAL: ("acknowledge",),
    Capability.EDITS: ("edit",),
    Capability.STREAMING: ("stream",),
    Capability.RECONCILE: ("reconcile",),
    Capability.GROUPS: ("members",),
    Capability.ROUTES: ("routes",),
}
"""What whoever declares a capability overrides of `Connector`; the others are a matter of events."""


@dataclass(frozen=True, kw_only=True)
class ConnectorSpec:
    """What the host must know before it imports a connector."""

    name: str
    title: str = ""
    """As people write it within a sentence, like `Slack`; by default `name` with a capital."""
    priority: int = 0
    """Where platforms are offered to somebody new, higher ones come first: the less work, the higher."""
    factory: str
    """`package.module:Class`, a `Connector`; imported when the connector is configured."""
    capabilities: Capability = Capability.NONE
    settings: type[Any]
    """A frozen dataclass; the config section `[connectors.NAME]` is parsed into it."""
    message_limit: int = 4000
    """The longest message in UTF-16 code units; the core splits longer answers."""
    requires: tuple[str, ...] = ()
    """Modules that must be importable, checked without importing them."""
    extra: str = ""
    """The extra of the distribution that brings `requires`."""
    secrets: tuple[str, ...] = ()
    """Environment variables that it reads; see `needs`."""
    setup: str = ""
    """`package.module:Class`, a `ConnectorSetup`; without one, `init` and `doctor` look only at the config
    and the secrets, and `uninstall` leaves the platform alone."""
    backup_files: tuple[str, ...] = ()
    """Of its own directory, the files that a backup holds: no tokens, nothing bound to this machine."""
    backup_values: tuple[str, ...] = ()
    """The keys of its values (`ConnectorHost.set`) that a backup holds, with `*` for anything."""
    local: bool = False
    """Its accounts are made at this machine, by whoever owns it: programs, a browser, a terminal. Those
    that the config calls `me` or `owner` are one person (`goodbot.access.linking`). At its start goodbot
    waits for these connectors and for no other."""
    api_version: int = API_VERSION

    def __post_init__(self) -> None:
        if not self.title:
            object.__setattr__(self, "title", self.name.capitalize())

    def needs(self, settings: Any) -> tuple[str, ...]:
        """Name the secrets that it needs: those of `settings.needed_secrets`, if there, else all."""
        return tuple(getattr(settings, "needed_secrets", self.secrets))


@dataclass(frozen=True, kw_only=True, slots=True)
class OpenTurn:
    """An answer of ours whose reactions may still change."""

    turn: str
    messages: tuple[MessageRef, ...]
    reactions: frozenset[tuple[str, str, str]] = frozenset()
    """The reactions that we know of: message id, user id and `RatingEvent.source` of each."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SentAnswer:
    """An answer of ours, as it was sent last."""

    turn: str
    text: str
    question: str
    """The message that it answers: all of its copies stand behind that one."""
    messages: tuple[MessageRef, ...]


class Connector(ABC):
    """One account on one platform: events in, replies out.

    Errors are `RetriableError` (the core tries again) or `FatalConnectorError` (it stops the
    connector and says so in `status`); anything else counts as fatal for this call only.
    """

    spec: ClassVar[ConnectorSpec]

    def __init__(self, host: ConnectorHost, settings: Any) -> None:
        self.host = host
        self.settings = settings

    @property
    @abstractmethod
    def account(self) -> str:
        """The platform's stable id of our own account; known once `start` has returned."""

    def routes(self) -> Sequence[AbstractRouteDef]:
        """List what it answers over HTTP at `host.address` (`aiohttp.web.get(…)`), with ROUTES; else nothing.

        Asked for once, before `start`. Until `start` has returned, and after `stop`, the daemon
        answers 503 there. It lets only requests through that name one of its hosts, of at most 1 MiB.
        """
        return ()

    @abstractmethod
    async def start(self) -> None:
        """Connect; returns once events flow. Raises `FatalConnectorError` for a bad token."""

    @abstractmethod
    async def stop(self) -> None:
        """Disconnect; idempotent; no event is submitted after it returns."""

    async def heard(self, text: str, *, user: str, message: str, at: float) -> Receipt:
        """Submit what a person wrote to the bot alone: `/rl good` or `/good` is a command, else a message.

        For platforms where the chat with a person has that person's id.

        Args:
            text: What was written.
            user: The person's stable id.
            message: The platform's id of what was written.
            at: The platform's time of it, in seconds since the epoch.

        Returns:
            What became of it.

        Raises:
            StoreError: Nothing was stored: acknowledge nothing, and try again.
        """
        name, account = self.spec.name, self.account
        common: dict[str, Any] = {
            "event_id": message,
            "message_id": message,
            "order": OrderKey(int(at * 1000), message),
            "user": UserRef(connector=name, account=account, id=user),
            "channel": ChannelRef(connector=name, account=account, id=user, kind=ChannelKind.PRIVATE),
        }
        event: Event
        if typed := command_in(text):
            event = CommandEvent(**common, name=typed[0], args=typed[1])
        else:
            event = MessageEvent(**common, text=text, addressed=True)
        (receipt,) = await self.host.submit([event])
        return receipt

    @property
    def group_buttons(self) -> bool:
        """Whether answers in shared channels have buttons, too; by the setting of that name."""
        return bool(getattr(self.settings, "group_buttons", False))

    @abstractmethod
    async def send(self, channel: ChannelRef, reply: Reply) -> tuple[MessageRef, ...]:
        """Send one reply that fits `message_limit`; returns the messages it became."""

    async def edit(self, message: MessageRef, reply: Reply) -> None:
        """Replace the text of one of our messages. Needs EDITS."""
        raise NotImplementedError(f"{self.spec.name} declares no EDITS")

    def stream(self, channel: ChannelRef, reply_to: str = "") -> ReplyStream:
        """Open a streamed answer; by default it sends at `finish`, in parts that fit."""
        return CollectedStream(self, channel, edits=Capability.EDITS in self.spec.capabilities)

    def replace(self, messages: Sequence[MessageRef], channel: ChannelRef) -> ReplyStream:
        """Open a stream whose answer takes the place of an earlier one, in its own messages.

        What `finish` returns are the messages that carry the new answer: with EDITS `messages`,
        where none may show old words any more (one that is not needed is deleted, or says that it
        was replaced), then what did not fit. When no new answer comes, `finish` gets the old one back.
        By default they are edited at `finish` where EDITS is declared; else it is a new answer.
        """
        return CollectedStream(self, channel, messages, edits=Capability.EDITS in self.spec.capabilities)

    async def acknowledge(self, event: Event, receipt: Receipt) -> None:
        """Tell one person what became of their event, privately.

        By default it is shown where they wrote, if that is a private chat; of a rating nothing is shown.

        `receipt.offer` goes with the text where only that person sees it and can press it, and
        nowhere else. A press (`PressEvent`) is acknowledged at once, mostly without a text, so that
        the platform stops waiting; what it came to may follow as a second receipt with one.
        """
        wrote = isinstance(event, (CommandEvent, MessageEvent))
        if receipt.text and wrote and event.channel.kind is ChannelKind.PRIVATE:
            await self.send(event.channel, Reply(text=receipt.text))

    async def private(self, user: str) -> ChannelRef | None:
        """Open the private chat with a person, if need be; None where there can be none.

        News and progress go there, never into a channel.
        """
        return None

    async def forget(self, user: str) -> None:  # noqa: B027
        """Delete what the connector itself keeps of this person, also in memory; by default nothing.

        Called once their `forget me` is committed, and again until it returns, so it may find
        nothing left. Events and cursors are the core's: it has deleted those.
        """

    async def sign_out(self) -> None:  # noqa: B027
        """End every session that `ConnectorHost.log_in` has begun; by default there are none."""

    async def copied(self, message: MessageRef, answers: Sequence[SentAnswer]) -> str:
        """Find the turn of the answer that a message is another copy of; empty where nothing proves that.

        Asked where a message is rated that carries no answer that we know of, in a shared channel also
        of others' messages: cut off between the sending and the record, we sent the answer again.
        `answers` are those of that chat of which that may be so. Go by what the platform itself says
        now, and tell nobody there of the question: that the message is ours, and its words.
        """
        return ""

    async def reconcile(self, open_turns: Sequence[OpenTurn]) -> Sequence[Event]:
        """Read the reactions on open turns again. Needs RECONCILE."""
        raise NotImplementedError(f"{self.spec.name} declares no RECONCILE")

    async def members(self, group: str) -> frozenset[str]:
        """List the user ids in one of the platform's own groups. Needs GROUPS."""
        raise NotImplementedError(f"{self.spec.name} declares no GROUPS")
