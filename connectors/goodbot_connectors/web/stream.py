# SPDX-License-Identifier: Apache-2.0
"""One answer on its way to the pages of the person who asked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

from goodbot.api.connector import ReplyStream
from goodbot.api.events import ChannelRef, MessageRef, Reply
from goodbot.api.reply_stream import CancelledReplyError
from goodbot.api.texts import say
from goodbot.base.text import split

from goodbot_connectors.web.entries import BOT, FAILED, WAITING, WRITING, PageConversation, PageEntry

MESSAGE_LIMIT = 20_000
"""UTF-16 units of one message."""


class Desk(Protocol):
    """What a stream needs of the connector."""

    writing: set[tuple[str, str]]
    """`(person, entry)` of the answers that are under way."""
    stopped: set[tuple[str, str]]
    """Those of them that their person does not want any more."""

    async def conversation(self, channel: ChannelRef) -> PageConversation:
        """The conversation of a channel."""
        ...

    def show(self, channel: ChannelRef, entry: PageEntry) -> None:
        """Tell the person's pages of an entry that is new or has changed."""
        ...

    def grow(self, channel: ChannelRef, entry: PageEntry, text: str) -> None:
        """Tell the person's pages of more text in an entry."""
        ...

    def hide(self, channel: ChannelRef, id_: str) -> None:
        """Tell the person's pages that an entry is gone."""
        ...

    async def save(self, channel: ChannelRef) -> None:
        """Store the conversation of a channel. Raises RetriableError."""
        ...

    def now_ms(self) -> int:
        """Milliseconds since the epoch."""
        ...


class PageStream(ReplyStream):
    """Shows every piece at once; what stands on the pages at the end is stored.

    The ids of its entries follow from the question's, so that an answer that is sent again after a
    crash takes its own place. `replaces` are the entries of an earlier answer.
    """

    def __init__(
        self,
        desk: Desk,
        channel: ChannelRef,
        *,
        reply_to: str = "",
        replaces: Sequence[MessageRef] = (),
        fresh: str = "",
    ) -> None:
        """`fresh` names the entries where there is neither a question nor an earlier answer."""
        self._desk = desk
        self._channel = channel
        self._old = [message.id for message in replaces]
        self._to = reply_to
        self._first = self._old[0] if self._old else f"a-{reply_to}" if reply_to else fresh
        self._entry: PageEntry | None = None
        desk.writing.add(self._key())

    async def append(self, text: str) -> None:
        if self._wanted_no_more():
            raise CancelledReplyError("the person who asked has stopped it")
        conversation = await self._desk.conversation(self._channel)
        if self._entry is None or self._entry.note:
            self._begin(conversation)
        assert self._entry is not None  # noqa: S101  it has begun
        self._entry = conversation.put(replace(self._entry, text=self._entry.text + text))
        self._desk.grow(self._channel, self._entry, text)

    async def note(self, text: str) -> None:
        self._begin(await self._desk.conversation(self._channel), text)

    def _begin(self, conversation: PageConversation, note: str = "") -> None:
        there = conversation.get(self._first)
        blank = PageEntry(id=self._first, by=BOT, text="", at=self._desk.now_ms(), to=self._to, state=WRITING)
        self._entry = replace(there or blank, text="", buttons=(), note=note, state=WRITING)
        self._desk.show(self._channel, conversation.put(self._entry))

    async def finish(self, reply: Reply) -> tuple[MessageRef, ...]:
        parts = split(reply.text, MESSAGE_LIMIT) or (reply.text,)
        conversation = await self._desk.conversation(self._channel)
        there = conversation.get(self._first)
        to = self._to or (there.to if there else reply.reply_to)
        ids: list[str] = []
        for number, part in enumerate(parts):
            ids.append(self._name(number))
            last = number == len(parts) - 1
            entry = PageEntry(
                id=ids[-1],
                by=BOT,
                text=part,
                at=self._desk.now_ms(),
                turn=reply.turn,
                to=to,
                buttons=reply.buttons if last else (),
            )
            self._desk.show(self._channel, conversation.put(entry))
        for id_ in set(self._old) - set(ids):
            conversation.drop(id_)
            self._desk.hide(self._channel, id_)
        self._settle(conversation)
        await self._desk.save(self._channel)
        self._end()
        return tuple(MessageRef(channel=self._channel, id=id_) for id_ in ids)

    async def cancel(self, reason: str) -> None:
        stopped = self._wanted_no_more()
        conversation = await self._desk.conversation(self._channel)
        begun = self._entry.text if self._entry and stopped else ""
        entry = PageEntry(
            id=self._first,
            by=BOT,
            text=begun,
            at=self._desk.now_ms(),
            to=self._to,
            state=FAILED,
            note=say("was_stopped", self.language) if stopped else reason,
        )
        self._desk.show(self._channel, conversation.put(entry))
        self._settle(conversation)
        self._end()
        await self._desk.save(self._channel)

    def _settle(self, conversation: PageConversation) -> None:
        """The question waits no longer."""
        question = conversation.get(self._to) if self._to else None
        if question is not None and question.state == WAITING:
            self._desk.show(self._channel, conversation.put(replace(question, state="")))

    def _end(self) -> None:
        self._desk.writing.discard(self._key())
        self._desk.stopped.discard(self._key())

    def _name(self, number: int) -> str:
        if number < len(self._old):
            return self._old[number]
        return self._first if number == 0 else f"{self._first}-{number + 1}"

    def _key(self) -> tuple[str, str]:
        return (self._channel.id, self._first)

    def _wanted_no_more(self) -> bool:
        return self._key() in self._desk.stopped
