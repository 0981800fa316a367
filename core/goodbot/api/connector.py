"""The contract between the core and a chat platform. `API_VERSION` numbers it.

A connector is a package whose `__init__` registers a `ConnectorSpec` and imports no SDK; the
class named by `ConnectorSpec.factory` is imported only when its config section is there.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from enum import Flag, auto
from typing import TYPE_CHECKING, Any, ClassVar

from goodbot.api.events import ChannelRef, Event, MessageRef, Receipt, Reply
from goodbot.api.host import ConnectorHost
from goodbot.base.text import split

if TYPE_CHECKING:
    from aiohttp.web import AbstractRouteDef

__all__ = [
    "API_VERSION",
    "REPLACED",
    "Capability",
    "Connector",
    "ConnectorHost",
    "ConnectorSpec",
    "OpenTurn",
    "ReplyStream",
]

API_VERSION = 1


class Capability(Flag):
    """What a platform can do. The contract suite skips what is not declared, and says so."""

    NONE = 0
    REACTIONS = auto()
    BUTTONS = auto()
    NATIVE_FEEDBACK = auto()
    EPHEMERAL = auto()
    EDITS = auto()
    STREAMING = auto()
    THREADS = auto()
    RECONCILE = auto()
    GROUPS = auto()
    COMMENTS = auto()
    """People can type a reason or a better answer at an answer (a modal, a reply prompt)."""
    ATTACHMENTS = auto()
    """People can attach files to a message."""
    INBOX = auto()
    """It shows the answers of every connector to those who may rate them; see `ConnectorHost.inbox`."""
    ROUTES = auto()
    """It answers over HTTP at goodbot's own address; see `Connector.routes`."""


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
    capabilities: Capability
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
    that the config calls `me` or `owner` are one person (`goodbot.access.linking`)."""
    api_version: int = API_VERSION

    def __post_init__(self) -> None:
        if not self.title:
            object.__setattr__(self, "title", self.name.capitalize())

    def needs(self, settings: Any) -> tuple[str, ...]:
        """The secrets that it cannot do without: what `settings.needed_secrets` names, if there, else all."""
        return tuple(getattr(settings, "needed_secrets", self.secrets))


@dataclass(frozen=True, kw_only=True, slots=True)
class OpenTurn:
    """An answer of ours whose reactions may still change."""

    turn: str
    messages: tuple[MessageRef, ...]
    reactions: frozenset[tuple[str, str, str]] = frozenset()
    """The reactions that we know of: message id, user id and `RatingEvent.source` of each."""


class ReplyStream(ABC):
    """One answer on its way out. Exactly one of `finish` and `cancel` ends it."""

    messages: tuple[MessageRef, ...] = ()
    """Those that `created` was told of."""
    keep: Callable[[Sequence[MessageRef]], Awaitable[None]] | None = None
    """Set by the core once the answer is stored: stores which messages carry it."""

    async def created(self, message: MessageRef) -> None:
        """Must be told of each new message of the answer as soon as its id is known.

        After a crash the answer is sent again; reactions to the first copy are known by this.
        """
        self.messages = (*self.messages, message)
        if self.keep is not None:
            await self.keep(self.messages)

    @abstractmethod
    async def append(self, text: str) -> None:
        """More text; the connector throttles to what the platform bears."""

    async def note(self, text: str) -> None:  # noqa: B027
        """Say why the answer is late, in a sentence that its first words take the place of.

        Before any `append`. By default nothing is shown.
        """

    @abstractmethod
    async def finish(self, reply: Reply) -> tuple[MessageRef, ...]:
        """The whole answer; returns the messages that now carry it."""

    @abstractmethod
    async def cancel(self, reason: str) -> None:
        """No answer will come. `reason` is a sentence for the person who asked."""


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
        """With ROUTES, what it answers over HTTP at `host.address` (`aiohttp.web.get(…)`); else nothing.

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
        return _Collected(self, channel)

    def replace(self, messages: Sequence[MessageRef], channel: ChannelRef) -> ReplyStream:
        """Open a stream whose answer takes the place of an earlier one, in its own messages.

        What `finish` returns are the messages that carry the new answer: with EDITS `messages`,
        where none may show old words any more (one that is not needed is deleted, or says that it
        was replaced), then what did not fit. When no new answer comes, `finish` gets the old one back.
        By default they are edited at `finish` where EDITS is declared; else it is a new answer.
        """
        return _Collected(self, channel, messages if Capability.EDITS in self.spec.capabilities else ())

    async def acknowledge(self, event: Event, receipt: Receipt) -> None:  # noqa: B027
        """Tell one person what became of their event, privately; by default nothing is shown.

        `receipt.offer` goes with the text where only that person sees it and can press it, and
        nowhere else. A press (`PressEvent`) is acknowledged at once, mostly without a text, so that
        the platform stops waiting; what it came to may follow as a second receipt with one.
        """

    async def private(self, user: str) -> ChannelRef | None:
        """The private chat with a person, opened if need be; None where there can be none.

        News and progress go there, never into a channel.
        """
        return None

    async def forget(self, user: str) -> None:  # noqa: B027
        """Delete what the connector itself keeps of this person, as its values; by default nothing.

        Called once their `forget me` is committed, and again until it returns, so it may find
        nothing left. Events and cursors are the core's: it has deleted those.
        """

    async def sign_out(self) -> None:  # noqa: B027
        """End every session that `ConnectorHost.log_in` has begun; by default there are none."""

    async def reconcile(self, open_turns: Sequence[OpenTurn]) -> Sequence[Event]:
        """Read the reactions on open turns again. Needs RECONCILE."""
        raise NotImplementedError(f"{self.spec.name} declares no RECONCILE")

    async def members(self, group: str) -> frozenset[str]:
        """User ids in one of the platform's own groups. Needs GROUPS."""
        raise NotImplementedError(f"{self.spec.name} declares no GROUPS")


REPLACED = "(This part was replaced: see above.)"
"""What a message says whose answer was replaced by one that is shorter."""
EMPTY = "(The model gave an empty answer.)"
"""What stands in for an answer without a word, which no platform takes."""


class _Collected(ReplyStream):
    """A stream for platforms without streaming: it sends at the end, in parts that fit.

    The messages that it `replaces` are edited first. `finish` called again, after an error, goes on
    with the part that was not sent.
    """

    def __init__(
        self, connector: Connector, channel: ChannelRef, replaces: Sequence[MessageRef] = ()
    ) -> None:
        self._connector = connector
        self._channel = channel
        self._replaces = replaces
        self._sent: list[tuple[MessageRef, ...]] = []

    async def append(self, text: str) -> None:
        pass

    async def note(self, text: str) -> None:
        if self._replaces:
            return await self._connector.edit(self._replaces[0], Reply(text=text))
        sent = await self._connector.send(self._channel, Reply(text=text, silent=True))
        if Capability.EDITS in self._connector.spec.capabilities:
            self._replaces = sent

    async def finish(self, reply: Reply) -> tuple[MessageRef, ...]:
        parts = split(reply.text, self._connector.spec.message_limit) or (reply.text,)
        for number in range(len(self._sent), len(parts)):
            part = replace(
                reply,
                text=parts[number],
                reply_to="" if number else reply.reply_to,
                buttons=reply.buttons if number == len(parts) - 1 else (),
            )
            if number < len(self._replaces):
                await self._connector.edit(self._replaces[number], part)
                self._sent.append((self._replaces[number],))
            else:
                self._sent.append(await self._connector.send(self._channel, part))
                for message in self._sent[-1]:
                    await self.created(message)
        for message in self._replaces[len(self._sent) :]:
            await self._connector.edit(message, Reply(text=REPLACED, turn=reply.turn))
            self._sent.append((message,))
        return tuple(ref for refs in self._sent for ref in refs)

    async def cancel(self, reason: str) -> None:
        await self._connector.send(self._channel, Reply(text=reason))
