# SPDX-License-Identifier: Apache-2.0
"""One answer on its way out: a status, then text that grows, then its final shape with buttons.

Where Slack streams (a thread of a direct message, or of a channel when it is known whom we answer)
the text grows by chat.appendStream; elsewhere, and where an answer is replaced, by chat.update.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from goodbot.api.connector import ConnectorHost
from goodbot.api.events import ChannelRef, MessageRef, Reply
from goodbot.api.reply_stream import ReplyStream
from goodbot.api.texts import say
from goodbot.base.errors import ConnectorError, FatalConnectorError
from goodbot.base.text import split

from goodbot_connectors.kit.backoff import FloodError
from goodbot_connectors.kit.fields import string
from goodbot_connectors.slack import render
from goodbot_connectors.slack.api import Api, RefusedError
from goodbot_connectors.slack.config import SlackSettings
from goodbot_connectors.slack.presses import AnswerRef

logger = logging.getLogger(__name__)

Sent = Callable[[Sequence[MessageRef], Reply], Awaitable[None]]
_NO_EDITS = "edit_window_closed"
"""As Slack says it where a workspace allows none, or none of an old message."""


class Recipient(NamedTuple):
    """Whom a streamed answer is for; Slack wants to know in channels."""

    user: str
    team: str


@dataclass(kw_only=True)
class _Shown:
    """One message as it stands on Slack; `body` is None while that is not known."""

    ts: str
    text: str = ""
    body: dict[str, Any] | None = None
    streaming: bool = False
    replaced: bool = False


class SlackStream(ReplyStream):
    """Keeps messages equal to what `render` makes of the answer so far."""

    def __init__(
        self,
        *,
        host: ConnectorHost,
        api: Api,
        settings: SlackSettings,
        channel: ChannelRef,
        sent: Sent,
        recipient: Recipient | None = None,
        replaces: Sequence[MessageRef] = (),
        refused: set[str],
    ) -> None:
        self._host, self._api, self._settings, self._channel = host, api, settings, channel
        self._sent, self._recipient, self._refused = sent, recipient, refused
        self._shown = [_Shown(ts=ref.id, replaced=True) for ref in replaces]
        self._text = ""
        self._due = 0.0
        self._status: asyncio.Task[None] | None = None

    def begin(self) -> None:
        """Say that we are thinking, until there is something to read."""
        if self._channel.thread:
            self._status = self._host.spawn(self._think(), "slack status")

    async def append(self, text: str) -> None:
        self._text += text
        now = self._host.clock.monotonic()
        if not self._text.strip() or now < self._due:
            return
        await self._early(self._show(Reply(text=self._text), final=False))

    async def note(self, text: str) -> None:
        await self._early(self._noted(render.message(text)))

    async def _noted(self, body: dict[str, Any]) -> None:
        """A message that the answer takes the place of: a stream of Slack's takes nothing back."""
        if not self._shown:
            self._shown.append(await self._post(body, patient=False))
        else:
            await self._call("chat.update", self._shown[0], **body)
            self._shown[0].body = body

    async def _early(self, showing: Awaitable[object]) -> None:
        now = self._host.clock.monotonic()
        try:
            await showing
        except FloodError as error:
            self._due = now + error.retry_after
        except FatalConnectorError:
            raise
        except ConnectorError as error:
            # What could not be shown now is part of what `finish` shows.
            logger.debug("slack: a piece was left out: %s", error)
            self._due = now + self._settings.edit_interval

    async def finish(self, reply: Reply) -> tuple[MessageRef, ...]:
        count = await self._show(reply, final=True)
        for shown in self._shown[count:]:
            await self._take_away(shown)
        self._shown = [*self._shown[:count], *(s for s in self._shown[count:] if s.replaced)]
        refs = tuple(self._ref(shown.ts) for shown in self._shown)
        await self._sent(refs[:count], reply)
        return refs

    async def cancel(self, reason: str) -> None:
        await self.finish(Reply(text=reason))

    async def _show(self, reply: Reply, *, final: bool) -> int:
        """Bring Slack up to date; how many messages the answer takes."""
        parts = split(reply.text, render.LIMIT) or (reply.text,)
        for n, part in enumerate(parts):
            last = n == len(parts) - 1
            if last and not final:
                await self._grow(n, part)
            else:
                about = AnswerRef(turn=reply.turn)
                body = render.message(part, about, reply.buttons if last else ())
                await self._settle(n, body)
        return len(parts)

    async def _grow(self, n: int, part: str) -> None:
        part = render.beginning(part)
        if not part.strip():
            return
        body = render.message(part)
        text = body["blocks"][0]["text"]
        if n == len(self._shown):
            self._shown.append(await self._start(text, body))
        elif (shown := self._shown[n]).streaming:
            if text.startswith(shown.text) and text != shown.text:
                await self._call("chat.appendStream", shown, markdown_text=text[len(shown.text) :])
                shown.text = text
        elif shown.body != body:
            await self._call("chat.update", shown, **body)
            shown.body = body
        streaming = self._shown[n].streaming
        pause = self._settings.append_interval if streaming else self._settings.edit_interval
        self._due = self._host.clock.monotonic() + pause

    async def _start(self, text: str, body: dict[str, Any]) -> _Shown:
        self._end_status()
        channel, to = self._channel, self._recipient
        possible = channel.thread and (to or channel.id.startswith("D"))
        if possible and channel.id not in self._refused:
            try:
                started = await self._api.call(
                    "chat.startStream",
                    patient=False,
                    channel=channel.id,
                    thread_ts=channel.thread,
                    markdown_text=text,
                    recipient_user_id=to.user if to else None,
                    recipient_team_id=to.team if to else None,
                )
                ts = string(started, "ts")
                await self.created(self._ref(ts))
                return _Shown(ts=ts, text=text, streaming=True)
            except RefusedError as error:
                logger.info("slack: no streaming in %s: %s", channel.id, error.code)
                self._refused.add(channel.id)
        return await self._post(body, patient=False)

    async def _settle(self, n: int, body: dict[str, Any]) -> None:
        """Give message `n` its final shape."""
        new = n == len(self._shown)
        if new:
            # Of a stored answer, which is sent again after a crash, the words come once its id is kept.
            at_once = self.keep is None or _NO_EDITS in self._refused
            self._shown.append(await self._post(body if at_once else self._thinking()))
        shown = self._shown[n]
        if shown.streaming:
            await self._stop(shown, body)
        if shown.body != body:
            try:
                await self._call("chat.update", shown, patient=True, **body)
            except RefusedError as error:  # somebody has deleted it, or the workspace allows no edits
                logger.info("slack: a message cannot be edited: %s", error.code)
                self._shown[n] = await self._post(body)
                if new and error.code == _NO_EDITS:
                    await self._no_edits(shown)
                shown = self._shown[n]
            shown.body = body

    def _thinking(self) -> dict[str, Any]:
        return render.message(say("thinking", self.language))

    async def _no_edits(self, begun: _Shown) -> None:
        """This workspace allows none: no answer begins without its words here any more, as this one did."""
        self._refused.add(_NO_EDITS)
        with contextlib.suppress(ConnectorError):
            await self._take_away(begun)

    async def _stop(self, shown: _Shown, body: dict[str, Any]) -> None:
        """End a stream, with what is left of its text and the buttons where that is all it takes."""
        words, *below = body["blocks"]
        fits = words["text"].startswith(shown.text)
        rest = words["text"][len(shown.text) :] if fits else ""
        try:
            await self._call(
                "chat.stopStream",
                shown,
                patient=True,
                markdown_text=rest or None,
                blocks=below or None if fits else None,
            )
            shown.body = body if fits else None
        except RefusedError as error:  # it has expired, or somebody has stopped it
            logger.info("slack: a stream was over: %s", error.code)
        shown.streaming = False

    async def _post(self, body: dict[str, Any], *, patient: bool = True) -> _Shown:
        self._end_status()
        posted = await self._api.call(
            "chat.postMessage",
            patient=patient,
            channel=self._channel.id,
            thread_ts=self._channel.thread or None,
            **render.UNFURLED,
            **body,
        )
        ts = string(posted, "ts")
        await self.created(self._ref(ts))
        return _Shown(ts=ts, body=body)

    def _ref(self, ts: str) -> MessageRef:
        return MessageRef(channel=self._channel, id=ts)

    async def _take_away(self, shown: _Shown) -> None:
        """A message that the answer does not need: an old part, or one that we began too early."""
        if shown.streaming:
            await self._stop(shown, render.message(shown.text))
        if shown.replaced:
            await self._call(
                "chat.update", shown, patient=True, **render.message(say("part_replaced", self.language))
            )
        else:
            await self._call("chat.delete", shown, patient=True)

    async def _call(self, method: str, shown: _Shown, *, patient: bool = False, **arguments: Any) -> None:
        await self._api.call(method, patient=patient, channel=self._channel.id, ts=shown.ts, **arguments)

    def _end_status(self) -> None:
        """One that came after the message would stay."""
        if self._status is not None:
            self._status.cancel()
            self._status = None

    async def _think(self) -> None:
        """Slack takes the status away when we post, or after two minutes."""
        try:
            await self._api.call(
                "assistant.threads.setStatus",
                channel_id=self._channel.id,
                thread_ts=self._channel.thread,
                status="is thinking…",
            )
        except ConnectorError as error:
            logger.debug("slack: no status: %s", error)
