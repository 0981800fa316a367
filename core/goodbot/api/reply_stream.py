# SPDX-License-Identifier: Apache-2.0
"""One answer on its way out: the contract, and the stream of a platform that has none."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from goodbot.api.events import ChannelRef, MessageRef, Reply
from goodbot.api.texts import say
from goodbot.base.errors import ServerError
from goodbot.base.text import split

if TYPE_CHECKING:
    from goodbot.api.connector import Connector


class ReplyStream(ABC):
    """One answer on its way out. Exactly one of `finish` and `cancel` ends it."""

    messages: tuple[MessageRef, ...] = ()
    """Those that `created` was told of."""
    language: str = ""
    """What whoever waits for it reads; set by the core."""
    keep: Callable[[Sequence[MessageRef]], Awaitable[None]] | None = None
    """Set by the core once the answer is stored: stores which messages carry it."""

    async def created(self, message: MessageRef) -> None:
        """Note a new message of the answer; call it as soon as the message's id is known.

        After a crash the answer is sent again; reactions to the first copy are known by this.
        """
        self.messages = (*self.messages, message)
        if self.keep is not None:
            await self.keep(self.messages)

    @abstractmethod
    async def append(self, text: str) -> None:
        """Add text; the connector throttles to what the platform bears."""

    async def note(self, text: str) -> None:  # noqa: B027
        """Say why the answer is late, in a sentence that its first words take the place of.

        Before any `append`. By default nothing is shown.
        """

    @abstractmethod
    async def finish(self, reply: Reply) -> tuple[MessageRef, ...]:
        """Send the whole answer; returns the messages that now carry it."""

    @abstractmethod
    async def cancel(self, reason: str) -> None:
        """Say that no answer will come. `reason` is a sentence for the person who asked."""


class CollectedStream(ReplyStream):
    """A stream for platforms without streaming: it sends at the end, in parts that fit.

    The messages that it `replaces` are edited first. `finish` called again, after an error, goes on
    with the part that was not sent.
    """

    def __init__(
        self, connector: Connector, channel: ChannelRef, replaces: Sequence[MessageRef] = (), *, edits: bool
    ) -> None:
        """Begin to collect an answer.

        Args:
            connector: Sends it.
            channel: Where it goes.
            replaces: Messages whose place it takes; without `edits` they stay.
            edits: Whether the platform can change a message.
        """
        self._connector = connector
        self._channel = channel
        self._edits = edits
        self._replaces = replaces if self._edits else ()
        self._sent: list[tuple[MessageRef, ...]] = []

    async def append(self, text: str) -> None:
        pass

    async def note(self, text: str) -> None:
        if self._replaces:
            return await self._connector.edit(self._replaces[0], Reply(text=text))
        sent = await self._connector.send(self._channel, Reply(text=text, silent=True))
        if self._edits:
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
            await self._connector.edit(
                message, Reply(text=say("part_replaced", self.language), turn=reply.turn)
            )
            self._sent.append((message,))
        return tuple(ref for refs in self._sent for ref in refs)

    async def cancel(self, reason: str) -> None:
        await self._connector.send(self._channel, Reply(text=reason))


class CancelledReplyError(ServerError):
    """Ends an answer half way, out of `ReplyStream.append`.

    A ServerError, since the core takes that for the end of an answer that is never tried again, and
    frees the model.
    """
