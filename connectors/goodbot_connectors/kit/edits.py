# SPDX-License-Identifier: Apache-2.0
"""One answer on its way out where a platform shows growth by edits: typing, words, the final shape.

What is shown so far is a list of messages; each is posted or edited when it is not what it should be. An
edit on the way is left out when the platform is busy, the last one waits.
"""

from __future__ import annotations

import asyncio
import logging
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from goodbot.api.connector import ConnectorHost
from goodbot.api.events import ChannelRef, MessageRef, Reply
from goodbot.api.reply_stream import ReplyStream
from goodbot.api.texts import say
from goodbot.base.errors import ConnectorError, FatalConnectorError, RetriableError

from goodbot_connectors.kit.backoff import FloodError, jittered
from goodbot_connectors.kit.rate_limit import Throttle

logger = logging.getLogger(__name__)

Body = Mapping[str, Any]

_TYPING_MOST = 600.0


@dataclass(slots=True)
class _Shown:
    """One message as it stands; `body` is None while that is not known."""

    id: str
    body: Body | None = None
    replaced: bool = False
    """It carried an earlier answer."""


class EditedStream(ReplyStream):
    """Keeps messages equal to what `bodies` makes of the answer so far.

    The calls to the platform raise a FloodError for a pause, and a plain ConnectorError for a refusal.
    """

    typing_every = 8.0
    """Seconds after which typing must be said again."""

    def __init__(
        self,
        *,
        host: ConnectorHost,
        pace: Throttle,
        interval: float,
        channel: ChannelRef,
        reply_to: str = "",
        replaces: Sequence[MessageRef] = (),
    ) -> None:
        self._host, self._pace, self._interval = host, pace, interval
        self.channel, self.reply_to = channel, reply_to
        self._shown = [_Shown(ref.id, replaced=True) for ref in replaces]
        self._place = f"{channel.id} {channel.thread}"
        self._text = ""
        self._typing: asyncio.Task[None] | None = None

    @abstractmethod
    def bodies(self, reply: Reply) -> Sequence[Body]:
        """The messages that a reply becomes; never none."""

    @abstractmethod
    async def post(self, n: int, body: Body, *, patient: bool) -> str:
        """Send the `n`-th message of the answer; its id."""

    @abstractmethod
    async def edit(self, id_: str, body: Body, *, patient: bool) -> None:
        """Give a message another body."""

    @abstractmethod
    async def delete(self, id_: str) -> None:
        """Take a message away."""

    @abstractmethod
    async def type(self) -> None:
        """Say that we are writing."""

    async def sent(self, messages: Sequence[MessageRef], reply: Reply) -> None:
        """Told which messages carry the whole answer."""

    def begin(self) -> None:
        """Say that somebody is typing until there is something to read."""
        self._typing = self._host.spawn(self._type(), "typing")

    async def append(self, text: str) -> None:
        self._text += text
        await self.note(self._text)

    async def note(self, text: str) -> None:
        if not text.strip() or not self._pace.due(self._place):
            return
        try:
            await self._show(Reply(text=text, reply_to=self.reply_to), whole=False)
        except FloodError as error:
            self._pace.hold(self._place, jittered(error.retry_after))
        except FatalConnectorError:
            raise
        except ConnectorError as error:
            # What could not be shown now is part of what `finish` shows.
            logger.debug("an edit was left out: %s", error)
            self._pace.hold(self._place, self._interval)

    async def finish(self, reply: Reply) -> tuple[MessageRef, ...]:
        self._end_typing()
        count = await self._show(reply, whole=True)
        await self._take_away(count)
        refs = tuple(MessageRef(channel=self.channel, id=shown.id) for shown in self._shown)
        await self.sent(refs[:count], reply)
        return refs

    async def cancel(self, reason: str) -> None:
        await self.finish(Reply(text=reason, reply_to=self.reply_to))

    async def _show(self, reply: Reply, *, whole: bool) -> int:
        """Bring the platform up to date; how many messages it takes."""
        wanted = self.bodies(reply)
        for n, body in enumerate(wanted):
            if n < len(self._shown) and self._shown[n].body == body:
                continue
            if n < len(self._shown):
                await self._change(n, body, patient=whole)
            else:
                self._shown.append(_Shown(await self._new(n, body, patient=whole), body))
            self._end_typing()
            self._pace.hold(self._place, self._interval)
        return len(wanted)

    async def _change(self, n: int, body: Body, *, patient: bool) -> None:
        """Edit a message; where that is not possible any more, the words come in a new one, at the end."""
        shown = self._shown[n]
        try:
            await self.edit(shown.id, body, patient=patient)
        except (RetriableError, FatalConnectorError):
            raise
        except ConnectorError as error:
            if not patient:  # each piece would be a message of its own
                raise
            logger.info("a message cannot be edited: %s", error)
            shown = self._shown[n] = _Shown(await self._new(n, body, patient=patient))
        shown.body = body

    async def _new(self, n: int, body: Body, *, patient: bool) -> str:
        id_ = await self.post(n, body, patient=patient)
        await self.created(MessageRef(channel=self.channel, id=id_))
        return id_

    async def _take_away(self, count: int) -> None:
        """Delete messages beyond the first `count`, or say that their words do not hold any more."""
        while len(self._shown) > count:
            shown = self._shown[-1]
            try:
                await self.delete(shown.id)
            except (RetriableError, FatalConnectorError):
                raise
            except ConnectorError:  # too old, or gone already
                await self._withdraw(shown)
            self._shown.pop()

    async def _withdraw(self, shown: _Shown) -> None:
        try:
            await self.edit(
                shown.id, self.bodies(Reply(text=say("part_replaced", self.language)))[0], patient=True
            )
        except (RetriableError, FatalConnectorError):
            raise
        except ConnectorError as error:
            logger.debug("an old part is gone: %s", error)

    async def _type(self) -> None:
        for _ in range(int(_TYPING_MOST / self.typing_every)):
            try:
                await self.type()
            except RetriableError as error:
                await self._host.clock.sleep(jittered(error.retry_after))
            except ConnectorError:
                return  # the answer itself will run into the same and say so
            await self._host.clock.sleep(self.typing_every)

    def _end_typing(self) -> None:
        if self._typing is not None:
            self._typing.cancel()
            self._typing = None
