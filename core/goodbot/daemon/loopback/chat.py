# SPDX-License-Identifier: Apache-2.0
"""The chat itself: what people do on it, and what the core shows them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from goodbot.api import actions
from goodbot.api.connector import Connector, ConnectorHost, ReplyStream
from goodbot.api.events import (
    ChannelKind,
    ChannelRef,
    CommandEvent,
    Event,
    MessageEvent,
    MessageRef,
    OrderKey,
    Outcome,
    PressEvent,
    RatingEvent,
    RatingKind,
    Receipt,
    Reply,
    UserRef,
)
from goodbot.base.errors import FatalConnectorError
from goodbot.daemon.loopback.spec import OWNER, SPEC, VALUES, Answer


class Loopback(Connector):
    """One account. A channel whose name begins with `#` is shared, any other a private chat.

    The cursor counts what people did, so that ids stay unique over a restart and the same deeds
    in the same order get the same ids, hence the same answers.
    """

    spec = SPEC

    def __init__(self, host: ConnectorHost, settings: Any) -> None:
        super().__init__(host, settings)
        self.replies: list[Answer] = []
        """All its answers, oldest first."""
        self.news: list[Answer] = []
        """All that it has said unasked, oldest first."""
        self.edits: list[Answer] = []
        """What its messages were changed to, oldest first."""
        self.notes: list[str] = []
        """What it has said of answers that are late, oldest first."""
        self.groups: dict[str, set[str]] = {}
        """Who is in which group of this platform."""
        self._answers: dict[str, asyncio.Future[Answer]] = {}
        self._receipts: dict[str, asyncio.Future[Receipt]] = {}
        self._count = 0

    @property
    def account(self) -> str:
        return self.spec.name

    async def start(self) -> None:
        self._count = int(await self.host.cursor() or 0)

    async def stop(self) -> None:
        for waiting in (*self._answers.values(), *self._receipts.values()):
            waiting.cancel()

    # What people do.

    async def say(
        self, text: str, *, user: str = OWNER, channel: str = "", name: str = "", reply_to: str = ""
    ) -> Answer:
        """Write to the bot and wait for what it says; by default in the user's private chat.

        `name` becomes the message's id. The answer to somebody who may not talk here has no turn,
        and often no text.
        """
        common = self._common(user, channel, name)
        event = MessageEvent(
            **common, text=text, message_id=common["event_id"], addressed=True, reply_to=reply_to
        )
        waiting = self._answers[event.message_id] = asyncio.get_running_loop().create_future()
        try:
            [receipt] = await self.host.submit([event], cursor=str(self._count))
            if receipt.outcome is Outcome.ACCEPTED:
                return await waiting
        finally:
            del self._answers[event.message_id]
        message = MessageRef(channel=event.channel, id="")
        return Answer(text=receipt.text, turn="", message=message)

    async def react(self, answer: Answer, emoji: str, *, user: str = OWNER) -> Receipt:
        """Put 👍 or 👎 on an answer. Raises ValueError for another emoji."""
        if emoji not in VALUES:
            raise ValueError(f"{emoji!r} is no rating here; there are {' and '.join(VALUES)}")
        return await self._rate(answer, RatingKind.RATE, emoji, user, VALUES[emoji])

    async def unreact(self, answer: Answer, emoji: str, *, user: str = OWNER) -> Receipt:
        """Take a reaction away again."""
        return await self._rate(answer, RatingKind.RETRACT, emoji, user, None)

    async def press(self, answer: Answer, action: str, *, user: str = OWNER) -> Receipt:
        """Press a button at an answer, and wait until what it stands for is done.

        The receipt of another answer (`again:HINT`) comes at once; `again` waits for it.
        """
        common = self._at(answer, user)
        if (pressed := actions.rating(action)) is not None:
            rating = RatingEvent(**common, kind=RatingKind.RATE, source=pressed.source, value=pressed.value)
            [receipt] = await self.host.submit([rating], cursor=str(self._count))
            return receipt
        event = PressEvent(**common, action=action)
        waiting = self._receipts[event.event_id] = asyncio.get_running_loop().create_future()
        try:
            [receipt] = await self.host.submit([event], cursor=str(self._count))
            runs = receipt.outcome is Outcome.ACCEPTED and actions.is_command(event)
            return await waiting if runs else receipt
        finally:
            del self._receipts[event.event_id]

    async def again(self, answer: Answer, hint: str, *, user: str = OWNER) -> Answer:
        """Ask for another answer in place of this one, and wait for what stands there then.

        `hint` is one of `goodbot.api.actions.HINTS`. The same answer comes back where none is made.
        """
        waiting = self._answers[answer.message.id] = asyncio.get_running_loop().create_future()
        try:
            receipt = await self.press(answer, f"{actions.RETRY}:{hint}", user=user)
            return await waiting if receipt.outcome is Outcome.ACCEPTED else answer
        finally:
            del self._answers[answer.message.id]

    async def comment(self, answer: Answer, text: str, *, better: bool = False, user: str = OWNER) -> Receipt:
        """Say what was wrong with an answer, or with `better` what it should have been."""
        kind = RatingKind.BETTER if better else RatingKind.COMMENT
        event = RatingEvent(**self._at(answer, user), kind=kind, source="loopback", text=text)
        [receipt] = await self.host.submit([event], cursor=str(self._count))
        return receipt

    async def command(
        self, name: str, args: str = "", *, user: str = OWNER, channel: str = "", reply_to: str = ""
    ) -> Receipt:
        """Type `/rl NAME ARGS` and wait until it is done; returns its receipt."""
        event = self.typed(name, args, user=user, channel=channel, reply_to=reply_to)
        waiting = self._receipts[event.event_id] = asyncio.get_running_loop().create_future()
        try:
            await self.host.submit([event], cursor=str(self._count))
            return await waiting
        finally:
            del self._receipts[event.event_id]

    def typed(
        self, name: str, args: str = "", *, user: str = OWNER, channel: str = "", reply_to: str = ""
    ) -> CommandEvent:
        """The event of a typed command, not submitted."""
        return CommandEvent(**self._common(user, channel), name=name, args=args, reply_to=reply_to)

    async def _rate(
        self, answer: Answer, kind: RatingKind, emoji: str, user: str, value: float | None
    ) -> Receipt:
        common = self._at(answer, user)
        del common["turn"]  # a platform names the message only
        event = RatingEvent(**common, kind=kind, source=f"reaction:{emoji}", value=value)
        [receipt] = await self.host.submit([event], cursor=str(self._count))
        return receipt

    def _at(self, answer: Answer, user: str) -> dict[str, Any]:
        """What all events at an answer say."""
        common = self._common(user, "")
        place = {"channel": answer.message.channel, "message_id": answer.message.id}
        return {**common, **place, "turn": answer.turn}

    def _common(self, user: str, channel: str, name: str = "") -> dict[str, Any]:
        self._count += 1
        connector, account = self.spec.name, self.account
        kind = ChannelKind.SHARED if channel.startswith("#") else ChannelKind.PRIVATE
        return {
            "event_id": name or f"m{self._count}",
            "order": OrderKey(self._count),
            "user": UserRef(connector=connector, account=account, id=user),
            "channel": ChannelRef(connector=connector, account=account, id=channel or user, kind=kind),
        }

    # What the core does.

    async def send(self, channel: ChannelRef, reply: Reply) -> tuple[MessageRef, ...]:
        message = MessageRef(channel=channel, id=f"n{len(self.news)}")
        self.news.append(
            Answer(
                text=reply.text,
                turn=reply.turn,
                message=message,
                buttons=tuple(button.action for button in reply.buttons),
            )
        )
        return (message,)

    def stream(self, channel: ChannelRef, reply_to: str = "") -> ReplyStream:
        return _Stream(self, channel, reply_to)

    def replace(self, messages: Sequence[MessageRef], channel: ChannelRef) -> ReplyStream:
        return _Stream(self, channel, messages[0].id, messages[0])

    async def private(self, user: str) -> ChannelRef:
        return ChannelRef(connector=self.spec.name, account=self.account, id=user, kind=ChannelKind.PRIVATE)

    async def acknowledge(self, event: Event, receipt: Receipt) -> None:
        if isinstance(event, PressEvent) and receipt.outcome is Outcome.ACCEPTED and not receipt.text:
            return  # only that it was taken in: what it comes to follows
        waiting = self._receipts.get(event.event_id)
        if waiting is not None and not waiting.done():
            waiting.set_result(receipt)

    async def members(self, group: str) -> frozenset[str]:
        if group not in self.groups:
            raise FatalConnectorError(f"there is no group {group!r} here")
        return frozenset(self.groups[group])

    def _post(
        self, channel: ChannelRef, reply: Reply, reply_to: str, place: MessageRef | None = None
    ) -> MessageRef:
        message = place or MessageRef(channel=channel, id=f"a{self._count}-{len(self.replies)}")
        answer = Answer(
            text=reply.text,
            turn=reply.turn,
            message=message,
            buttons=tuple(button.action for button in reply.buttons),
        )
        (self.edits if place else self.replies).append(answer)
        waiting = self._answers.get(reply_to)
        if waiting is not None and not waiting.done():
            # Who waits runs on after the core has queued its record of this message, so that a
            # reaction at once still finds the answer.
            waiting.set_result(answer)
        return message


class _Stream(ReplyStream):
    """Collects nothing: the whole answer is posted, or the reason why there is none."""

    def __init__(
        self, chat: Loopback, channel: ChannelRef, reply_to: str, place: MessageRef | None = None
    ) -> None:
        self._chat = chat
        self._channel = channel
        self._reply_to = reply_to
        self._place = place

    async def append(self, text: str) -> None:
        pass

    async def note(self, text: str) -> None:
        self._chat.notes.append(text)

    async def finish(self, reply: Reply) -> tuple[MessageRef, ...]:
        post = self._chat._post  # noqa: SLF001  one class in two parts
        place = (self._place,) if self._place else ()
        message = post(self._channel, reply, self._reply_to, *place)
        if not self._place:
            await self.created(message)
        return (message,)

    async def cancel(self, reason: str) -> None:
        self._chat._post(self._channel, Reply(text=reason), self._reply_to)  # noqa: SLF001
