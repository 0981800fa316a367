# SPDX-License-Identifier: Apache-2.0
"""One prompt → one answer: generation, the stored turn, the sent messages."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import itertools
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import aiosqlite

from goodbot.api.completions import with_form
from goodbot.api.connector import Connector, ReplyStream
from goodbot.api.events import (
    ChannelKind,
    ChannelRef,
    Event,
    MessageEvent,
    MessageRef,
    Receipt,
    Reply,
    UserRef,
)
from goodbot.api.server import Generated, GenerateRequest
from goodbot.api.texts import say
from goodbot.api.turns import Turn, ids, turn_id
from goodbot.base.clock import growing
from goodbot.base.errors import ConnectorError, RetriableError, ServerError, StoreError, StoreFullError
from goodbot.base.worded import Worded
from goodbot.conversation.asking import conversation, pieces
from goodbot.conversation.presence import Presence
from goodbot.conversation.rating_requests import RatingRequests
from goodbot.conversation.ratings import Ratings
from goodbot.conversation.shown import Shown
from goodbot.inference.prompts import Prompt
from goodbot.inference.servers.wordless import THINKS_SECONDS, Wordless
from goodbot.learning.parts import LearningParts
from goodbot.learning.training.settings import vocabulary
from goodbot.store import answers, inbox, ledger, messages, retries, turns
from goodbot.store.commit_queue import Operation
from goodbot.store.retries import Retry

logger = logging.getLogger(__name__)

_SEND_TRIES = 6
_LONGEST_ANSWER = 3600.0
"""Seconds from an answer's first piece to its last: who comes to no end is cut off."""
_CHARACTERS_A_TOKEN = 200
"""More no token of a text has; the longest of known vocabularies are runs of spaces."""
_FEWEST_CHARACTERS = 100_000
"""An answer may have so many whatever `max_tokens` says."""
_LONGEST_PAUSE = 60.0
"""Seconds between two attempts to record an answer while the disk fails."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Asked:
    """What is to be answered. `retry` joins the answer to the one whose place it takes."""

    event: Event
    channel: ChannelRef
    talker: UserRef
    """Whose words are answered; in a retry not always who pressed."""
    prompt: Prompt
    retry: Retry | None = None


class Generator:
    """Writes answers: each is stored as a turn before it is sent."""

    def __init__(
        self,
        core: LearningParts,
        *,
        presence: Presence,
        connectors: Mapping[str, Connector],
        ratings: Ratings,
    ) -> None:
        """`ratings` and the scheduler are told of ratings that waited for an answer."""
        self._store, self._plugins, self._clock = core.store, core.plugins, core.clock
        self._server, self._model, self._sampling = core.server, core.model, core.sampling
        self._config = core.config.serving
        self._vocabulary = vocabulary(core.model.path)
        self._requests = RatingRequests(core, connectors)
        self._presence, self._scopes = presence, core.scopes
        self._taint, self.rated = ratings.taint, core.scheduler.wake
        self._wordless = Wordless()

    async def write(self, asked: Asked, stream: ReplyStream) -> Turn | None:
        """Generate an answer and store it; None when somebody was forgotten meanwhile.

        Raises ServerError.
        """
        prompt = asked.prompt
        generated = await self._generate(asked, stream)
        turn = Turn(
            id=turn_id(asked.event),
            channel=asked.channel,
            talker=asked.talker,
            messages=with_form(prompt.messages, generated.form),
            response=generated.text,
            version=generated.version,
            model=self._model.name,
            temperature=(
                self._sampling.temperature if generated.temperature is None else generated.temperature
            ),
            created_at=self._clock.now(),
            prompt_tokens=generated.prompt_tokens,
            tokens=generated.tokens,
            logprobs=generated.logprobs,
            lifts=generated.lifts,
            filters=self._sampling.filters if generated.filters is None else generated.filters,
            context=prompt.context,
            thought=generated.thought,
            thought_tokens=generated.thought_tokens,
            own=await self._scopes.of(asked.channel, asked.talker),
        ).read_by(self._vocabulary)
        self._wordless.note(turn, generated)
        trainable = bool(generated.text.strip()) and self._plugins.veto_capture(turn) is None

        async def operation(db: aiosqlite.Connection) -> Turn | None:
            stored = await answers.insert(db, asked.event, turn, asked.retry, trainable=trainable)
            if stored is not None:
                if asked.retry is None:  # a retry asks where the one before did
                    await self._requests.decide(db, stored)
                await self.attach(db, turn.id, stream.messages)
            return stored

        return await self._store.write(operation)

    async def _generate(self, asked: Asked, stream: ReplyStream) -> Generated:
        if reason := self._presence.note():
            with contextlib.suppress(ConnectorError):  # it comes all the same
                await stream.note(asked.event.say(reason))
            await self._presence.present()
        elif self._model.label:
            await stream.append(self._model.label)
        request = GenerateRequest(
            messages=list(asked.prompt.messages),
            max_tokens=self._config.max_tokens,
            temperature=self._sampling.temperature,
            filters=self._sampling.filters,
            seed=_seed(self._config.seed, asked.event),
            version=await self._scopes.version_for(asked.channel, asked.talker),
            thinking=self._config.thinking,
            conversation=conversation(asked.channel, asked.talker),
        )
        shown = Shown(stream)

        async def ask() -> Generated:
            shown.begin()
            return await self._streamed(request, shown)

        generated = await self._presence.asked(ask)
        if request.version not in (None, generated.version):
            self._scopes.missed(request.version)
        return generated

    async def _streamed(self, request: GenerateRequest, stream: Shown) -> Generated:
        begun: float | None = None
        told = bool(self._model.label)  # then there are words already
        size, most = 0, max(_FEWEST_CHARACTERS, _CHARACTERS_A_TOKEN * request.max_tokens)
        async with contextlib.aclosing(pieces(self._server, request)) as answer:
            async for piece in answer:
                now = self._clock.monotonic()
                begun = now if begun is None else begun
                whole = isinstance(piece, Generated)
                text = piece if isinstance(piece, str) else piece.text
                size = len(text) if whole else size + len(text)
                if size > most or now - begun > _LONGEST_ANSWER:
                    endless = (
                        "the model server does not come to an end with an answer, which was cut off: look at "
                        "what [serving] url leads to"
                    )
                    raise ServerError(Worded(endless))
                if whole:
                    return piece
                if isinstance(piece, str):
                    told = True
                    await stream.append(piece)
                elif not told and now - begun > THINKS_SECONDS:
                    told = True
                    with contextlib.suppress(ConnectorError):  # the answer comes all the same
                        await stream.note(say("thinking", stream.language))
        raise ServerError(Worded("the model server ended an answer half way"))

    async def reply(self, turn: Turn, language: str, reply_to: str = "") -> Reply:
        """A turn as it goes out, with buttons where it asks for a rating.

        `language`: of whoever waits for it; buttons that others see, too, are in that of the bot.
        """
        text = turn.response if turn.response.strip() else self._wordless.text(turn, language)
        private = turn.channel.kind is ChannelKind.PRIVATE
        buttons = await self._requests.buttons(turn, language if private else self._config.language)
        return Reply(text=f"{self._model.label}{text}", turn=turn.id, reply_to=reply_to, buttons=buttons)

    async def deliver(self, event: Event, turn: Turn, stream: ReplyStream, question: str) -> bool:
        """Send, then record which messages carry the turn; a crash in between sends again.

        `question`: the message that it answers, or takes the place of. Each new message is recorded as
        soon as it is there, so that both copies are known then. Whether it was sent.
        """
        stream.keep = functools.partial(self.keep, turn)
        sent: tuple[MessageRef, ...] = ()

        async def operation(db: aiosqlite.Connection) -> None:
            await messages.detach(db, turn.id, set(stream.messages) - set(sent))
            await self.attach(db, turn.id, sent)
            if sent:
                adopted = [await ledger.regroup(db, *one) for one in await retries.adopt(db, turn.id)]
                await self._taint(db, [change for change in adopted if change])
            await inbox.close(db, event)

        try:
            reply_to = question if isinstance(event, MessageEvent) else ""
            reply = await self.reply(turn, stream.language, reply_to)
            sent = await self.send(event, stream, question, reply)
            await self._record(operation)
        except Exception:  # what they say from now on is no answer
            stream.keep = None
            with contextlib.suppress(StoreError):
                await self._store.write(lambda db: messages.detach(db, turn.id, stream.messages))
            raise
        self.rated()
        await self._plugins.on_turn(turn)
        return bool(sent)

    async def sending_again(self, turn: str, question: str) -> None:
        """Remember that the answer may have been sent before, without our hearing of it (`copies`)."""
        with contextlib.suppress(StoreError):
            await self._store.write(lambda db: messages.sending_again(db, turn, question))

    async def keep(self, turn: Turn, sent: Sequence[MessageRef]) -> None:
        """Record what is sent of an answer so far; a disk that fails must not stop the rest."""

        async def operation(db: aiosqlite.Connection) -> None:
            if not await turns.missing(db, [turn.id]):  # it was not forgotten meanwhile
                await self.attach(db, turn.id, sent)

        with contextlib.suppress(StoreError):
            await self._store.write(operation)

    async def attach(self, db: aiosqlite.Connection, turn: str, sent: Sequence[MessageRef]) -> None:
        """Record which messages carry a turn, within the caller's transaction."""
        await self._taint(db, await messages.attach(db, turn, sent))

    async def close(self, event: Event, answer: Receipt | None = None) -> None:
        """Nothing more is to be done about an event of the inbox."""
        await self._store.write(lambda db: inbox.close(db, event, answer))

    async def _record(self, operation: Operation[None]) -> None:
        """Write what was sent; while the disk fails, again and again: ratings of it wait for that."""
        for tries in itertools.count():
            try:
                return await self._store.write(operation)
            except StoreError as error:
                if not (self._store.trouble or isinstance(error, StoreFullError)):
                    raise
            await self._clock.sleep(growing(tries, most=_LONGEST_PAUSE))

    async def send(
        self, event: Event, stream: ReplyStream, question: str, reply: Reply
    ) -> tuple[MessageRef, ...]:
        """End a stream; nothing when the platform refuses. `question` as in `deliver`, for a new answer."""
        for attempt in range(_SEND_TRIES):
            try:
                return await stream.finish(reply)
            except ConnectorError as error:
                if not isinstance(error, RetriableError) or attempt == _SEND_TRIES - 1:
                    logger.error("an answer could not be sent: %s", error, extra=ids(event))
                    break
                if question:
                    await self.sending_again(reply.turn, question)
                await self._clock.sleep(max(error.retry_after, growing(attempt, most=_LONGEST_PAUSE)))
        return ()


def _seed(seed: int, event: Event) -> int:
    digest = hashlib.sha256(f"{seed}\0{event.event_id}".encode()).digest()
    return int.from_bytes(digest[:4], "big") & 0x7FFFFFFF
