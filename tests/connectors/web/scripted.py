# SPDX-License-Identifier: Apache-2.0
"""A goodbot whose answers a test decides: the real connector and server, beside a core that is told."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from goodbot.api.actions import THUMBS, retry_row
from goodbot.api.connector import ReplyStream
from goodbot.api.events import (
    ChannelKind,
    CommandEvent,
    Event,
    MessageEvent,
    MessageRef,
    Outcome,
    PressEvent,
    RatingEvent,
    RatingKind,
    Receipt,
    Reply,
    Waiting,
)
from goodbot.api.labels import is_stars
from goodbot.api.sentences import because, words
from goodbot.base.errors import ServerError
from goodbot.testing.host import RecordingHost
from goodbot_connectors.web import SPEC, WebSettings
from goodbot_connectors.web.connector import WebConnector

COUNTED = "12 of 40 ratings (28 to go)."


class Scripted(RecordingHost):
    """Answers what `answers` says, word by word; rates as a core would say it."""

    def __init__(self, state_dir: Path, answers: Mapping[str, str] | None = None) -> None:
        super().__init__(SPEC, state_dir=state_dir)
        self.answers = dict(answers or {})
        self.pause = 0.0
        """Seconds between two words."""
        self.go_on = asyncio.Event()
        """An answer waits for it at `wait_at` while it is not set."""
        self.wait_at = 0.5
        """0: before the first word, 0.5: in the middle."""
        self.go_on.set()
        self.answer = self._receipt
        self.connector = WebConnector(self, WebSettings())
        self._turns = 0
        self._ratings = 11
        self._sent: dict[str, tuple[MessageRef, ...]] = {}

    async def start(self) -> None:
        self.mount(self.connector)
        await self.connector.start()

    async def restart(self) -> None:
        """As another process would begin, on what was stored."""
        await self.connector.stop()
        await asyncio.sleep(0.3)
        self.connector = WebConnector(self, WebSettings())
        await self.start()

    async def close(self) -> None:
        await self.connector.stop()
        await super().close()

    def link(self, user: str = "owner") -> str:
        code = f"code-of-{user}-{len(self.codes)}"
        self.codes[code] = user
        return f"{self.address}/login#{code}"

    async def submit(self, events: Sequence[Event], *, cursor: str | None = None) -> tuple[Receipt, ...]:
        receipts = await super().submit(events, cursor=cursor)
        for event, receipt in zip(events, receipts, strict=True):
            if not receipt.duplicate:
                self.spawn(self._follow(event, receipt), "follow up")
        return receipts

    def _receipt(self, event: Event) -> Receipt:
        text, offer, turn, counted = "", (), "", ()
        if isinstance(event, RatingEvent):
            turn = event.turn
            self._ratings += event.kind is RatingKind.RATE
            said = "Good." if (event.value or 0) > 0 else "Bad."
            counted = (because("until", available=self._ratings, needed=40),)
            text = f"{_SAID.get(event.kind, said)} {words(*counted)}"
            if (event.value or 0) < 0:
                offer = retry_row()
            self._label(event)
        return Receipt(
            event_id=event.event_id,
            outcome=Outcome.ACCEPTED,
            text=text,
            reasons=counted,
            turn=turn,
            offer=offer,
        )

    def _label(self, event: RatingEvent) -> None:
        """Keep the inbox as the ledger would have it."""
        for number, one in enumerate(self.waiting):
            if one.turn == event.turn and event.kind in (RatingKind.RATE, RatingKind.RETRACT):
                what = "stars" if is_stars(event.source) else "label"
                self.waiting[number] = replace(one, **{what: event.value})

    async def _follow(self, event: Event, receipt: Receipt) -> None:
        if isinstance(event, MessageEvent):
            await self._write(event)
        elif isinstance(event, CommandEvent):
            text = f"You typed {event.name}."
            done = Receipt(event_id=event.event_id, outcome=Outcome.ACCEPTED, text=text)
            await self.connector.acknowledge(event, done)
        else:
            await self.connector.acknowledge(event, receipt)
        if isinstance(event, PressEvent) and event.turn:
            await self._again(event)

    async def _write(self, event: MessageEvent) -> None:
        text = self.answers.get(event.text, f"You said: {event.text}")
        stream = self.connector.stream(event.channel, event.message_id)
        try:
            await self._words(stream, text)
        except ServerError as error:
            return await stream.cancel(str(error))
        self._turns += 1
        turn = f"turn{self._turns:012d}"
        self._sent[turn] = await stream.finish(Reply(text=text, turn=turn, buttons=THUMBS))
        self.waiting.insert(0, waiting(turn, event.text, text, connector="web"))

    async def _again(self, event: PressEvent) -> None:
        text = "Here is another answer."
        stream = self.connector.replace(self._sent[event.turn], event.channel)
        await self._words(stream, text)
        self._turns += 1
        turn = f"turn{self._turns:012d}"
        self._sent[turn] = await stream.finish(Reply(text=text, turn=turn, buttons=THUMBS))

    async def _words(self, stream: ReplyStream, text: str) -> None:
        words = text.split(" ")
        for number, word in enumerate(words):
            if number == int(len(words) * self.wait_at):
                await self.go_on.wait()
            await stream.append(word if number == 0 else f" {word}")
            await asyncio.sleep(self.pause)


_SAID = {
    RatingKind.RETRACT: "Taken back.",
    RatingKind.COMMENT: "Your reason is kept.",
    RatingKind.BETTER: "Your better answer is kept.",
}


def waiting(
    turn: str,
    question: str,
    answer: str,
    *,
    connector: str = "telegram",
    label: float | None = None,
    created_at: float = 1_800_000_000.0,
) -> Waiting:
    return Waiting(
        turn=turn,
        connector=connector,
        kind=ChannelKind.SHARED,
        question=question,
        answer=answer,
        created_at=created_at,
        version=3,
        label=label,
    )


@contextlib.asynccontextmanager
async def scripted(state_dir: Path, answers: Mapping[str, str] | None = None) -> AsyncIterator[Scripted]:
    """A running one."""
    host = Scripted(state_dir, answers)
    try:
        await host.start()
        yield host
    finally:
        await host.close()
