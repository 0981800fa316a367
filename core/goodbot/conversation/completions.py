# SPDX-License-Identifier: Apache-2.0
"""The model that answers in chats, for programs that a connector speaks for."""

from __future__ import annotations

import asyncio
import contextlib
import json
import math
import secrets
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection
from typing import TypeVar

from goodbot.api.completions import CompletionRequest, FarSide, OwnModel
from goodbot.api.events import ChannelRef, UserRef
from goodbot.api.marks import chat_template
from goodbot.api.server import BASE, Generated, GenerateRequest, Piece
from goodbot.base.errors import UsageError
from goodbot.base.sampling import Filters, merged
from goodbot.conversation.asking import conversation, or_active, pieces
from goodbot.conversation.presence import Presence
from goodbot.inference.prompts import Room
from goodbot.learning.parts import LearningParts
from goodbot.learning.training.settings import shape

_T = TypeVar("_T")


class ServedModel(OwnModel):
    """What the configured server serves."""

    def __init__(self, core: LearningParts, *, presence: Presence) -> None:
        """The scheduler is told of each question: it wants quiet for a training."""
        self._server, self._model, self._sampling = core.server, core.model, core.sampling
        self._config, self._authorization = core.config.serving, core.authorization
        self._presence, self._talked = presence, core.scheduler.somebody_talks
        self._active, self._version_for = core.registry.active, core.scopes.version_for
        self._missed = core.scopes.missed
        self._room = Room.of(shape(core.model.path), core.config.serving)
        self._template: str | None = None

    @property
    def name(self) -> str:
        return self._model.name

    @property
    def temperature(self) -> float:
        return self._sampling.temperature

    @property
    def filters(self) -> Filters:
        return self._sampling.filters

    def admit(self, user: UserRef, channel: ChannelRef) -> bool:
        return self._authorization.may_talk(user, channel, enabled=False)

    async def versions(self) -> Collection[int]:
        active = await self._active()
        return (BASE, active) if active != BASE else (BASE,)

    async def calls_tools(self) -> bool:
        if self._template is None:
            self._template = await asyncio.to_thread(chat_template, self._model.path)
        return "tools" in self._template and "<tool_call>" in self._template

    async def answer(self, question: CompletionRequest) -> AsyncGenerator[Piece, None]:
        request = await self._request(question)
        await self._present()
        answer = pieces(self._server, request, only=question.version is not None)
        async with contextlib.aclosing(answer):
            async for piece in answer:
                if isinstance(piece, Generated) and request.version not in (None, piece.version):
                    self._missed(request.version)
                yield piece

    async def until_answered(self, ask: Callable[[], Awaitable[_T]]) -> _T:
        return await self._presence.asked(ask)

    @contextlib.asynccontextmanager
    async def far_side(self, question: CompletionRequest) -> AsyncGenerator[FarSide | None]:
        await self._present()
        async with contextlib.AsyncExitStack() as stack:
            yield await self._presence.asked(lambda: self._far(stack, question))

    async def _far(self, stack: contextlib.AsyncExitStack, question: CompletionRequest) -> FarSide | None:
        request = await self._request(question, checked=False)  # a server of its own knows best what fits

        async def enter(request: GenerateRequest) -> FarSide | None:
            return await stack.enter_async_context(self._server.far_side(request))

        return await or_active(enter, request, only=question.version is not None)

    async def _present(self) -> None:
        self._talked()
        await self._presence.present()

    async def _request(self, question: CompletionRequest, *, checked: bool = True) -> GenerateRequest:
        if checked:
            self._fits(question)
        version = question.version
        if version is None:
            version = await self._version_for(question.channel, question.user)
        return GenerateRequest(
            messages=list(question.messages),
            max_tokens=question.max_tokens or self._config.max_tokens,
            temperature=(
                self._sampling.temperature if question.temperature is None else question.temperature
            ),
            filters=merged(self._sampling.filters, question.filters),
            seed=secrets.randbits(31) if question.seed is None else question.seed & 0x7FFFFFFF,
            version=version,
            thinking=self._config.thinking,
            conversation=conversation(question.channel, question.user),
        )

    def _fits(self, question: CompletionRequest) -> None:
        """Refuse what the model cannot read at once. Raises UsageError."""
        size = sum(len(json.dumps(message, ensure_ascii=False).encode()) for message in question.messages)
        likely = math.ceil(size * self._room.density / 2)
        if self._room.context and likely > self._room.context:
            raise UsageError(
                f"the prompt is too long for {self._model.name}, which reads "
                f"{self._room.context} tokens: send less of the conversation"
            )
