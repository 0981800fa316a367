# SPDX-License-Identifier: Apache-2.0
"""One answer on its way out: a sign of life, then text that grows, then its final shape.

In a personal chat it is streamed by Teams's own protocol (learn.microsoft.com/microsoftteams/platform/
bots/streaming-ux): one piece after the other, each with all the text until now, about one a second, for
two minutes at most. Elsewhere, where an answer is replaced, and where Teams takes no stream, the
message is edited.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any

from goodbot.api.connector import ConnectorHost
from goodbot.api.events import ChannelKind, ChannelRef, MessageRef, Reply
from goodbot.api.reply_stream import CancelledReplyError, ReplyStream
from goodbot.api.texts import say
from goodbot.base.clock import woken
from goodbot.base.errors import ConnectorError, RetriableError

from goodbot_connectors.kit.backoff import jittered
from goodbot_connectors.teams import render
from goodbot_connectors.teams.config import TeamsSettings
from goodbot_connectors.teams.outbox import MessageSender
from goodbot_connectors.teams.wire import RefusedError

logger = logging.getLogger(__name__)

_LONGEST_STREAM = 100.0
"""Seconds; Teams ends a stream after 120. What comes later is edited in."""
_TYPING_EVERY = 4.0
_LONGEST = 3600.0
"""Seconds that anything is shown at all while an answer is written."""

Sent = Callable[[Sequence[MessageRef], Reply], Awaitable[None]]
"""Told which messages now carry an answer."""


@dataclass(kw_only=True)
class _Stream:
    """A stream of Teams's own."""

    id: str = ""
    sequence: int = 0
    text: str = ""
    said: str = ""
    """Its text, or what was said before there was any."""
    until: float
    """The clock's monotonic seconds at which it must have ended."""


class TeamsStream(ReplyStream):
    """Keeps a channel's messages equal to what `render` makes of the answer so far.

    A task of its own (`_run`) sends what is new when the next call is due, so that `append` never
    waits; no two calls are under way at once.
    """

    def __init__(
        self,
        *,
        host: ConnectorHost,
        outbox: MessageSender,
        settings: TeamsSettings,
        channel: ChannelRef,
        sent: Sent,
        replaces: Sequence[MessageRef] = (),
    ) -> None:
        self._host, self._clock, self._outbox, self._settings = host, host.clock, outbox, settings
        self._channel, self._sent = channel, sent
        self._shown = [ref.id for ref in replaces]
        self._live: _Stream | None = None
        self._stopped = False
        self._text, self._note, self._due = "", "", 0.0
        self._new, self._one = asyncio.Event(), asyncio.Lock()
        self._task: asyncio.Task[None] | None = None

    def begin(self) -> None:
        """Show that we are thinking until there is something to read."""
        if self._channel.kind is ChannelKind.PRIVATE and not self._shown:
            self._live = _Stream(until=self._clock.monotonic() + _LONGEST_STREAM)
        self._task = self._host.spawn(self._run(), "teams stream")

    async def append(self, text: str) -> None:
        if self._stopped:
            raise CancelledReplyError("the person who asked has stopped it")
        self._text += text
        self._new.set()

    async def note(self, text: str) -> None:
        self._note = text
        self._new.set()

    async def finish(self, reply: Reply) -> tuple[MessageRef, ...]:
        async with self._one:
            self._end()
            return await self._finish(reply)

    async def _finish(self, reply: Reply) -> tuple[MessageRef, ...]:
        wanted = self._wanted(reply)
        await self._end_stream(wanted[0])
        if self._stopped:
            return await self._tell(self._shown, reply)
        await self._show(wanted, patient=True)
        await self._take_away(len(wanted), reply)
        return await self._tell(self._shown, reply, len(wanted))

    async def cancel(self, reason: str) -> None:
        if self._stopped:
            return self._end()  # they know
        await self.finish(Reply(text=reason))

    async def _run(self) -> None:
        end = self._clock.monotonic() + _LONGEST
        while self._clock.monotonic() < end:
            self._new.clear()
            async with self._one:
                await self._step()
            await self._clock.sleep(max(self._due - self._clock.monotonic(), 0.0))
            await woken(self._new, self._clock, _TYPING_EVERY)

    async def _step(self) -> None:
        """Send what is new."""
        pause = self._interval
        try:
            if self._live is not None:
                await self._piece(self._live)
            elif (text := self._text if self._text.strip() else self._note).strip():
                await self._show(self._wanted(Reply(text=text)), patient=False)
            elif not self._channel.thread:  # nobody sees it in a channel
                await self._outbox.post(self._channel, {"type": "typing"}, patient=False)
        except RefusedError as error:
            logger.info("teams: what is being written is not shown: %s", error)
            self._stream_refused(error)
        except RetriableError as error:
            pause = max(pause, jittered(error.retry_after))
        except ConnectorError as error:
            logger.debug("teams: a piece was left out: %s", error)
        self._due = self._clock.monotonic() + pause

    async def _piece(self, live: _Stream) -> None:
        """The next piece of the stream; none where nothing is new, and its end when it lasts too long."""
        text = render.beginning(self._text)
        if self._clock.monotonic() >= live.until and text.strip():
            first, *_ = self._wanted(Reply(text=self._text))
            return await self._end_stream(first)
        kind, words = "streaming", text
        if not text.strip():
            kind, words = "informative", self._note or say("thinking", self.language)
        if live.id and (words == live.said or not text.startswith(live.text)):
            return  # Teams takes nothing back that it was told
        live.sequence = live.sequence + 1 if live.id else 1
        piece = render.stream(kind, words, stream_id=live.id, sequence=live.sequence)
        sent = await self._outbox.post(self._channel, piece, patient=False)
        begun, live.id = not live.id, live.id or sent
        live.text, live.said = text if text.strip() else "", words
        if begun:
            await self.created(self._ref(sent))

    async def _end_stream(self, activity: dict[str, Any]) -> None:
        """End Teams's stream with a message; where it does not want to, the message comes by itself."""
        live = self._live
        if live is None:
            return
        if live.id:
            await self._clock.sleep(max(self._due - self._clock.monotonic(), 0.0))
            try:
                await self._outbox.post(self._channel, render.final(activity, live.id))
            except RefusedError as error:
                logger.info("teams: a stream could not be ended: %s", error)
                return self._stream_refused(error)
            self._shown = [live.id]
        self._live = None

    def _stream_refused(self, error: RefusedError) -> None:
        """Go on without Teams's stream; or not at all, where whoever asked has pressed Stop."""
        live, self._live = self._live, None
        if live is None or not live.id:
            return
        said = error.said.casefold()
        self._stopped = "cancel" in said
        # "Completed": it has heard an end of ours whose answer we never got.
        if self._stopped or "completed" in said:
            self._shown = [live.id]

    async def _show(self, wanted: Sequence[dict[str, Any]], *, patient: bool) -> None:
        """Bring the messages up to date."""
        for n, activity in enumerate(wanted):
            if n == len(self._shown):
                self._shown.append(await self._new_message(activity, patient=patient))
            try:
                await self._outbox.put(self._ref(self._shown[n]), activity, patient=patient)
            except RefusedError as error:  # somebody has deleted it
                if not patient:  # each piece would be a message of its own
                    raise
                logger.info("teams: a message cannot be edited: %s", error)
                self._shown[n] = await self._posted(activity, patient=patient)

    async def _new_message(self, activity: dict[str, Any], *, patient: bool) -> str:
        """Post a message, of an answer that is stored without its words: they come once its id is kept.

        Killed in between, the answer is sent again, and Teams tells nobody what stands in a message.
        """
        if self.keep is not None and "text" in activity:
            activity = render.message(say("thinking", self.language), answer=True)
        return await self._posted(activity, patient=patient)

    async def _posted(self, activity: dict[str, Any], *, patient: bool) -> str:
        sent = await self._outbox.post(self._channel, activity, patient=patient)
        await self.created(self._ref(sent))
        return sent

    async def _take_away(self, count: int, reply: Reply) -> None:
        """Delete messages beyond the first `count`, or say that their words do not hold any more."""
        kept = self._shown[:count]
        for message in self._shown[count:]:
            try:
                await self._outbox.delete(self._ref(message))
            except RefusedError:
                try:
                    gone = render.message(say("part_replaced", self.language), answer=bool(reply.turn))
                    await self._outbox.put(self._ref(message), gone)
                    kept.append(message)
                except RefusedError as error:
                    logger.debug("teams: an old part is gone: %s", error)
        self._shown = kept

    async def _tell(self, shown: Sequence[str], reply: Reply, count: int = 1) -> tuple[MessageRef, ...]:
        refs = tuple(map(self._ref, shown))
        await self._sent(refs[:count], reply)
        return refs

    def _end(self) -> None:
        """Stop showing what is new. Whoever holds the lock knows that no call is under way."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()

    def _wanted(self, reply: Reply) -> tuple[dict[str, Any], ...]:
        return render.answers(
            self._channel, reply, feedback=self._settings.feedback, group_buttons=self._settings.group_buttons
        )

    def _ref(self, message: str) -> MessageRef:
        return MessageRef(channel=self._channel, id=message)

    @property
    def _interval(self) -> float:
        return self._settings.stream_interval if self._live else self._settings.edit_interval
