# SPDX-License-Identifier: Apache-2.0
"""What waits in the inbox for an answer: messages, and presses that ask for another answer."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import weakref
from collections.abc import AsyncGenerator, Awaitable, Callable

import aiosqlite

from goodbot.access.authorization import person
from goodbot.api import actions
from goodbot.api.events import (
    ChannelKind,
    ChannelRef,
    Event,
    MessageEvent,
    Outcome,
    PressEvent,
    RatingEvent,
    UserRef,
)
from goodbot.api.plain import question
from goodbot.api.sentences import Reason, because
from goodbot.api.turns import Turn, ids, turn_id
from goodbot.base.errors import ConnectorError, ServerError
from goodbot.conversation.connectors import Connectors
from goodbot.conversation.copies import Copies
from goodbot.conversation.generate import Asked, Generator
from goodbot.conversation.notes import Notes
from goodbot.inference import prompts
from goodbot.inference.prompts import Room, TooLongError
from goodbot.learning.core import Core
from goodbot.learning.training.settings import shape
from goodbot.store import retries, turns
from goodbot.store.retries import Retry

logger = logging.getLogger(__name__)

StillAllowed = Callable[[aiosqlite.Connection, Event], Awaitable[bool]]


class Answers:
    """Answers one at a time in each conversation, in their order."""

    def __init__(
        self, core: Core, *, generator: Generator, connectors: Connectors, notes: Notes, still: StillAllowed
    ) -> None:
        """`still`: whether what was let in may be answered now that its turn has come."""
        self._store, self._config, self._notes = core.store, core.config.serving, notes
        self._generator, self._connectors = generator, connectors
        self._still = still
        self._plugins, self._clock = core.plugins, core.clock
        self._copies = Copies(core, generator=generator, connectors=connectors)
        self._room = Room.of(shape(core.model.path), core.config.serving)
        self._places: weakref.WeakValueDictionary[tuple[str, ...], asyncio.Lock] = (
            weakref.WeakValueDictionary()
        )

    async def answer(self, event: Event) -> None:
        """Do what one event of the inbox asks for, and close it; of a rating, find what it speaks of."""
        if isinstance(event, MessageEvent):
            async with self._place(event.channel):
                await self._told_of(event, event.channel, self._message(event))
            await self._copies.look(event.channel)
        elif isinstance(event, RatingEvent):
            await self._copies.look(event.channel)
        elif isinstance(event, PressEvent):
            await self._pressed(event)

    async def put_back(self, event: Event) -> None:
        """Close a press that waited too long: the answer that it was to replace comes back.

        Unless the new one was stored: then that is shown.
        """
        if isinstance(event, PressEvent):
            await self._pressed(event, late=True)

    async def _pressed(self, event: PressEvent, *, late: bool = False) -> None:
        earlier = await self._store.read(lambda db: turns.get(db, event.turn))
        if earlier is None:
            await self._decline(event, because("replaced"))
            return
        async with self._place(earlier.channel):
            await self._told_of(event, earlier.channel, self._again(event, earlier, late=late))
        await self._copies.look(earlier.channel)

    async def _told_of(self, event: Event, channel: ChannelRef, work: Awaitable[Reason | None]) -> None:
        """Do it, and tell who watches what came of it, and how long it took."""
        began, code = self._clock.monotonic(), "broken"
        try:
            reason = await work
            code = reason.code if reason else "sent"
        except asyncio.CancelledError:  # goodbot stops: it is done another time
            code = ""
            raise
        finally:
            if code:
                took = self._clock.monotonic() - began
                await self._plugins.on_answer(channel.connector, code, took, turn_id(event))

    def _place(self, channel: ChannelRef) -> asyncio.Lock:
        place = (channel.connector, channel.account, channel.id, channel.thread)
        return self._places.setdefault(place, asyncio.Lock())

    async def _message(self, event: MessageEvent) -> Reason | None:
        """Why there is no answer; None: it was sent."""
        if not await self._store.read(lambda db: self._still(db, event)):
            await self._generator.close(event)  # where the bot is off it is silent
            return because("not_any_more")
        stream = self._connectors.running[event.channel.connector].stream(event.channel, event.message_id)
        stream.language = event.user.language

        async def cancel(reason: Reason) -> Reason:
            await stream.cancel(event.say(reason))
            return reason

        async with _unbroken(cancel):
            turn = await self._stored(event)
            if turn is None:
                try:
                    turn = await self._generator.write(await self._asked(event), stream)
                except (ServerError, TooLongError) as error:
                    reason = await cancel(_told(error, event))
                    await self._generator.close(event)
                    return reason
                if turn is None:
                    return await cancel(because("forgotten"))
            else:
                await self._generator.sending_again(turn.id, event.message_id)
            sent = await self._generator.deliver(event, turn, stream, event.message_id)
            return None if sent else because("unsent")

    async def _asked(self, event: MessageEvent) -> Asked:
        """The message after what was said before in its conversation. Raises TooLongError."""
        limit = self._config.history
        earlier = (
            await self._store.read(lambda db: turns.conversation(db, event.channel, limit)) if limit else []
        )
        notes = await self._noted(event.channel, event.user)
        text = question(event.text, event.attachments)
        prompt = prompts.compose(self._config.system_prompt, earlier, text, self._room, notes=notes)
        return Asked(event=event, channel=event.channel, talker=event.user, prompt=prompt)

    async def _again(self, event: PressEvent, earlier: Turn, *, late: bool) -> Reason | None:
        """Another answer in the place of `earlier`, which comes back where there is none: then why."""
        turn = await self._stored(event)
        shown = await self._store.read(lambda db: retries.standing(db, earlier.id))
        if not shown:  # two pressed at once, or it was forgotten while this one waited
            return await self._decline(event, because("replaced"))
        stream = self._connectors.running[earlier.channel.connector].replace(shown, earlier.channel)
        shared = earlier.channel.kind is ChannelKind.SHARED
        stream.language = self._config.language if shared else event.user.language

        async def back(reason: Reason) -> Reason:
            reply = await self._generator.reply(earlier, stream.language)
            sent = await self._generator.send(event, stream, "", reply)
            await self._generator.keep(earlier, sent)  # somebody may have deleted those that it stood in
            return await self._decline(event, reason)

        async with _unbroken(back):
            if turn is None and late:
                return await back(because("late"))
            if turn is None and not await self._store.read(lambda db: self._still(db, event)):
                return await back(because("not_any_more"))
            if turn is not None:
                await self._generator.sending_again(turn.id, shown[0].id)
            else:
                try:
                    asked = await self._asked_again(event, earlier)
                    turn = await self._generator.write(asked, stream)
                except (ServerError, TooLongError) as error:
                    return await back(_told(error, event))
                if turn is None:
                    gone = because("forgotten")
                    if await self._store.read(lambda db: turns.get(db, earlier.id)):
                        return await back(gone)
                    await stream.cancel(event.say(gone))
                    return gone
            sent = await self._generator.deliver(event, turn, stream, shown[0].id)
            return None if sent else await self._decline(event, because("unsent"))

    async def _noted(self, channel: ChannelRef, talker: UserRef) -> str:
        return await self._store.read(lambda db: self._notes.system_line(db, channel, talker))

    async def _asked_again(self, event: PressEvent, earlier: Turn) -> Asked:
        """Raises TooLongError."""
        hint = actions.hint(event.action)
        assert hint is not None  # noqa: S101  it was looked at before it was let in
        before = await self._store.read(lambda db: retries.line(db, earlier.id))
        retry = Retry(
            turn=turn_id(event),
            instead_of=earlier.id,
            depth=len(before) + 1,
            hint=event.action.partition(":")[2],
            asked_by=person(event.user),
            asked=event.order,
        )
        notes = await self._noted(earlier.channel, earlier.talker)
        return Asked(
            event=event,
            channel=earlier.channel,
            talker=earlier.talker,
            retry=retry,
            prompt=prompts.again(earlier, hint, self._room, self._config.system_prompt, notes=notes),
        )

    async def _stored(self, event: Event) -> Turn | None:
        """The answer that was stored before a crash."""
        return await self._store.read(lambda db: turns.get(db, turn_id(event)))

    async def _decline(self, event: PressEvent, reason: Reason) -> Reason:
        receipt = event.receipt(Outcome.FAILED, reason)
        await self._generator.close(event, receipt)
        await self._connectors.acknowledge(event, receipt)
        return reason


def _told(error: Exception, event: Event) -> Reason:
    """What a person is told of an answer that does not come."""
    if isinstance(error, TooLongError):
        return error.reason
    logger.error("no answer: %s", error, extra=ids(event))
    return because("refused" if isinstance(error, ServerError) and error.refused else "no_model")


@contextlib.asynccontextmanager
async def _unbroken(cancel: Callable[[Reason], Awaitable[object]]) -> AsyncGenerator[None]:
    """Whatever goes wrong unexpectedly, the person is not left waiting."""
    try:
        yield
    except Exception:
        with contextlib.suppress(ConnectorError):
            await cancel(because("broken"))
        raise
