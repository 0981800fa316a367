"""One message → one answer: prompt, generation, the stored turn, the sent messages."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import logging
import weakref
from collections.abc import AsyncGenerator, Mapping, Sequence

import aiosqlite

from goodbot.clock import Clock
from goodbot.config import ServingConfig
from goodbot.connector import Connector, ReplyStream
from goodbot.dispatcher import Dispatcher
from goodbot.errors import ConnectorError, RetriableError, ServerError, StoreError, StoreFullError
from goodbot.events import (
    Button,
    ChannelKind,
    ChannelRef,
    Event,
    Message,
    MessageEvent,
    MessageRef,
    Reply,
)
from goodbot.plugins import PluginHost
from goodbot.server import Generated, GenerateRequest, Server
from goodbot.store import Operation, Store, access, forgetting, inbox, ledger, turns
from goodbot.turns import Turn

logger = logging.getLogger(__name__)

BUTTONS = (Button(action="good", label="👍 Good"), Button(action="bad", label="👎 Bad"))

_SEND_TRIES = 6
_LONGEST_PAUSE = 60.0
"""Seconds between two attempts to record an answer while the disk fails."""


class Answers:
    """Answers messages, one at a time in each conversation, in their order."""

    def __init__(
        self, *, store: Store, server: Server, dispatcher: Dispatcher,
        plugins: PluginHost, clock: Clock, config: ServingConfig, model: str, label: str,
        connectors: Mapping[str, Connector],
    ) -> None:  # fmt: skip
        self._store = store
        self._server = server
        self._dispatcher = dispatcher
        self._plugins = plugins
        self._clock = clock
        self._config = config
        self._model = model
        self._label = label
        self._connectors = connectors
        self._places: weakref.WeakValueDictionary[tuple[str, ...], asyncio.Lock] = (
            weakref.WeakValueDictionary()
        )

    async def answer(self, event: Event) -> None:
        """Answer one message of the inbox and close it there."""
        assert isinstance(event, MessageEvent)  # noqa: S101  the dispatcher sorts
        channel = event.channel
        place = (channel.connector, channel.account, channel.id, channel.thread)
        lock = self._places.setdefault(place, asyncio.Lock())
        async with lock:
            connector = self._connectors[channel.connector]
            async with _stream(connector, event) as stream:
                turn = await self._turn(event, stream)
                if turn is not None:
                    await self._deliver(event, turn, stream)

    async def _turn(self, event: MessageEvent, stream: ReplyStream) -> Turn | None:
        """The stored turn of this message: generated now, or before a crash."""
        id_ = turn_id(event)
        stored = await self._store.read(lambda db: turns.get(db, id_))
        if stored is not None:
            return stored
        earlier = await self._earlier(event)
        messages = self._prompt(event, earlier)
        try:
            generated = await self._generate(event, messages, stream)
        except ServerError as error:
            logger.error("no answer: %s", error, extra=_ids(event))
            await stream.cancel(
                "I cannot answer right now: my model is not running. Please try again in a moment."
            )
            await self._store.write(lambda db: inbox.close(db, event))
            return None
        turn = Turn(
            id=id_, channel=event.channel, talker=event.user, messages=messages,
            response=generated.text, version=generated.version, model=self._model,
            temperature=self._config.temperature, created_at=self._clock.now(),
            prompt_tokens=generated.prompt_tokens, tokens=generated.tokens,
            logprobs=generated.logprobs, context=tuple((e.turn, e.talker) for e in earlier),
        )  # fmt: skip
        trainable = bool(generated.text.strip()) and self._plugins.veto_capture(turn) is None
        stored = await self._store.write(lambda db: _insert(db, event, turn, trainable=trainable))
        if stored is None:
            await stream.cancel(
                "Somebody was forgotten while I answered, and this answer with them. "
                "Ask again if you like."
            )
        return stored

    async def _earlier(self, event: MessageEvent) -> list[turns.Exchange]:
        """What was said before in this conversation, as far back as the model is shown it."""
        limit = self._config.history
        if not limit:
            return []
        return await self._store.read(lambda db: turns.conversation(db, event.channel, limit))

    def _prompt(self, event: MessageEvent, earlier: Sequence[turns.Exchange]) -> list[Message]:
        messages: list[Message] = []
        if self._config.system_prompt:
            messages.append({"role": "system", "content": self._config.system_prompt})
        for exchange in earlier:
            messages += [
                {"role": "user", "content": exchange.question},
                {"role": "assistant", "content": exchange.answer},
            ]
        return [*messages, {"role": "user", "content": event.text}]

    async def _generate(
        self, event: MessageEvent, messages: list[Message], stream: ReplyStream
    ) -> Generated:
        request = GenerateRequest(
            messages=messages,
            max_tokens=self._config.max_tokens,
            temperature=self._config.temperature,
            seed=_seed(self._config.seed, event),
        )
        if self._label:
            await stream.append(self._label)
        async with contextlib.aclosing(self._server.generate(request)) as pieces:
            async for piece in pieces:
                if isinstance(piece, Generated):
                    return piece
                await stream.append(piece)
        raise ServerError("the model server ended an answer half way")

    async def _deliver(self, event: MessageEvent, turn: Turn, stream: ReplyStream) -> None:
        """Send, then record which messages carry the turn; a crash in between sends again."""
        private = event.channel.kind is ChannelKind.PRIVATE
        buttons = private or self._connectors[event.channel.connector].group_buttons
        text = turn.response if turn.response.strip() else "(The model gave an empty answer.)"
        reply = Reply(
            text=f"{self._label}{text}", turn=turn.id, reply_to=event.message_id,
            buttons=BUTTONS if buttons else (),
        )  # fmt: skip
        try:
            sent = await self._finish(stream, reply)
        except ConnectorError as error:
            logger.error("an answer could not be sent: %s", error, extra=_ids(event))
            sent = ()

        async def operation(db: aiosqlite.Connection) -> None:
            await self._dispatcher.taint(db, await ledger.attach(db, turn.id, sent))
            await inbox.close(db, event)

        await self._record(operation)
        self._dispatcher.rated()
        await self._plugins.on_turn(turn)

    async def _record(self, operation: Operation[None]) -> None:
        """Write what was sent; while the disk fails, again and again: ratings of it wait for that."""
        pause = 1.0
        while True:
            try:
                return await self._store.write(operation)
            except StoreError as error:
                if not (self._store.trouble or isinstance(error, StoreFullError)):
                    raise
            await self._clock.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)

    async def _finish(self, stream: ReplyStream, reply: Reply) -> tuple[MessageRef, ...]:
        for attempt in range(_SEND_TRIES):
            try:
                return await stream.finish(reply)
            except RetriableError as error:
                if attempt == _SEND_TRIES - 1:
                    raise
                await self._clock.sleep(max(error.retry_after, 2.0**attempt))
        raise AssertionError("unreachable")


@contextlib.asynccontextmanager
async def _stream(connector: Connector, event: MessageEvent) -> AsyncGenerator[ReplyStream, None]:
    """An open stream; whatever goes wrong unexpectedly, the person is not left waiting."""
    channel: ChannelRef = event.channel
    stream = connector.stream(channel, event.message_id)
    try:
        yield stream
    except Exception:
        with contextlib.suppress(ConnectorError):
            await stream.cancel("Something went wrong here; the owner can find it in the log.")
        raise


async def _insert(
    db: aiosqlite.Connection, event: MessageEvent, turn: Turn, *, trainable: bool
) -> Turn | None:
    """Store a turn; returns it without the words of those who were forgotten while it was made.

    None when that is the person who asked, or when the answer repeats them.
    """
    if not await inbox.is_open(db, event):
        return None
    gone = await turns.missing(db, [id_ for id_, _ in turn.context])
    if forgetting.quotes(turn.response, turn.said(lambda id_, _: id_ in gone)):
        await inbox.close(db, event)
        await access.set_switch(db, forgetting.ERASE, "1")  # the question may repeat them too
        return None
    turn = turn.without(lambda id_, _: id_ in gone)
    await turns.insert(db, turn, trainable=trainable and not gone)
    return turn


def turn_id(event: Event) -> str:
    """The id of the turn that answers an event: the same after a crash and a replay."""
    text = f"{event.user.connector}\0{event.user.account}\0{event.event_id}"
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _seed(seed: int, event: Event) -> int:
    digest = hashlib.sha256(f"{seed}\0{event.event_id}".encode()).digest()
    return int.from_bytes(digest[:4], "big") & 0x7FFFFFFF


def _ids(event: MessageEvent) -> dict[str, str]:
    """What a log may say of a message: never its text."""
    return {
        "event_id": event.event_id,
        "turn": turn_id(event),
        "connector": event.user.connector,
    }
