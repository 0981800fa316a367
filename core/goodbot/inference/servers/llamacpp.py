# SPDX-License-Identifier: Apache-2.0
"""llama.cpp: a `llama-server` of our own for each version that is served.

It takes adapters only when it starts, and it is known to reuse what it remembers of a prompt across the
adapters of one process. So a version is a process: the next one comes up beside the one that answers, new
answers go there, and the old one ends when its last answer has. Within a process nothing is ever
swapped, and its prompt cache is right. On a GPU two models are in its memory for that while; on a CPU they
share the pages of the file. The base has a process while it is active, or was asked for a minute ago.

A process that dies is started again with the next question, or by the reconciler: while it is the active one,
`healthy` is false.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import Counter
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from goodbot.api.completions import ALIAS, FarSide, without_tools
from goodbot.api.events import Message
from goodbot.api.manners import Manners
from goodbot.api.server import BASE, AdapterFormat, GenerateRequest, Piece, Server, ServerParts
from goodbot.base.errors import AdapterError, ServerError
from goodbot.base.thoughts import options
from goodbot.base.worded import Worded, said_by
from goodbot.inference.servers import llama_api, llama_cache
from goodbot.inference.servers.background import BackgroundTasks
from goodbot.inference.servers.guarding import guarded, marks_of, mended
from goodbot.inference.servers.in_flight import InFlight
from goodbot.inference.servers.llama_process import LlamaProcess, command, weights
from goodbot.inference.servers.plugin import LlamaCppSettings
from goodbot.inference.servers.upstream import Unreachable

logger = logging.getLogger(__name__)

_DRAIN_SECONDS = 600.0
_ROOM_SECONDS = 120.0
_LINGER_SECONDS = 60.0


class LlamaCppServer(Server):
    """Processes of `llama-server`, one per version."""

    def __init__(self, settings: LlamaCppSettings, parts: ServerParts) -> None:
        self._settings = settings
        self._parts = parts
        self._children: dict[int, LlamaProcess] = {}
        self._leaving: set[LlamaProcess] = set()
        """Replaced, and still writing."""
        self._directories: dict[int, Path] = {}
        """Of the versions that are loaded, also while room is made."""
        self._active = BASE
        self._serials: Counter[int] = Counter()
        self._in_flight = InFlight()
        self._starting = asyncio.Lock()
        self._coming: LlamaProcess | None = None
        """The process that is coming up."""
        self._awake = asyncio.Event()
        self._awake.set()
        self._up = False
        self._background = BackgroundTasks()
        self._manners = Manners()
        """Of all of them: they are one program with one template."""

    async def start(self) -> None:
        self._awake.set()
        self._up = True
        try:
            await self._child(self._active)
        except AdapterError as error:
            logger.error("v%d does not come up again: %s", self._active, error)
            self._directories.pop(self._active, None)
            self._active = BASE
            await self._child(BASE)

    async def stop(self) -> None:
        self._up = False
        await self._background.stop()
        coming = (self._coming,) if self._coming else ()
        ending = (*self._children.values(), *self._leaving, *coming)
        await asyncio.gather(*(child.stop() for child in ending))
        self._children, self._directories, self._active = {}, {}, BASE
        self._leaving.clear()
        self._awake.set()

    def healthy(self) -> bool:
        if not self._awake.is_set():
            return self._up  # it makes room, and comes back by itself
        child = self._children.get(self._active)
        return self._up and child is not None and child.alive

    def trouble(self) -> str:
        return self._manners.told()

    async def generate(self, request: GenerateRequest) -> AsyncGenerator[Piece, None]:
        version, child = await self._asked(request)
        request, broke = guarded(request, await marks_of(self._parts.model.path))
        async with self._asking(child):
            given = await llama_api.prompt(child.upstream, request.messages, thinking=request.thinking)
            answer = llama_api.write(child.upstream, given, request)
            async with contextlib.aclosing(answer) as pieces:
                async for piece in pieces:
                    made: Piece | llama_api.Completion = piece
                    if isinstance(made, llama_api.Completion):
                        prompt = made.prompt_tokens if made.tokens else ()
                        made = replace(made, prompt_tokens=prompt).by(version, request.filters)
                    yield mended(made) if broke else made

    @contextlib.asynccontextmanager
    async def far_side(self, request: GenerateRequest) -> AsyncGenerator[FarSide | None]:
        version, child = await self._asked(request)
        messages, tools = without_tools(request.messages)
        async with self._asking(child):
            yield FarSide(
                title="llama.cpp",
                url=child.upstream.url,
                key=child.upstream.key,
                version=version,
                fields={
                    "model": ALIAS,
                    "messages": messages,
                    "max_tokens": request.max_tokens,
                    "temperature": request.temperature,
                    **llama_api.fields(request.filters),
                    "samplers": llama_api.samplers(request.filters),
                    "chat_template_kwargs": options(request.thinking),
                    **({"tools": tools} if tools else {}),
                },
                filters=request.filters,
                manners=self._manners,
                marks=await marks_of(self._parts.model.path),
                tells=False,  # its OpenAI API gives log-probs by text, without token ids
            )

    async def first_tokens(
        self, messages: Sequence[Message], *, version: int, top: int
    ) -> Mapping[str, float]:
        if not self._awake.is_set():
            return {}
        child = await self._child(version)
        async with self._asking(child):
            given = await llama_api.prompt(child.upstream, messages)
            return await llama_api.first(child.upstream, given.tokens, top)

    async def load(self, version: int, directory: Path) -> None:
        if version == BASE or version in self._directories:
            return
        self._directories[version] = directory
        try:
            await self._child(version)
        except BaseException:
            self._directories.pop(version, None)
            raise

    async def reload(self, version: int, directory: Path) -> None:
        old = self._children.pop(version, None)
        self._directories[version] = directory
        try:
            await self._child(version)
        finally:
            if old is not None:
                self._leaving.add(old)
                self._background.add(self._drained(old))
        self._active = version

    async def activate(self, version: int) -> None:
        await self._child(version)
        self._active = version
        if version != BASE:
            self._background.add(self._linger())

    async def unload(self, version: int) -> None:
        if version == self._active:
            stays = "v{version} is what {place} answers with: it stays"
            raise ServerError(Worded(stays, version=version, place="llama.cpp"))
        self._directories.pop(version, None)
        if version != BASE and (child := self._children.pop(version, None)):
            await self._drained(child)

    async def served(self) -> int:
        if not self._up:
            raise ServerError(Worded("llama.cpp is not started"))
        return self._active

    async def make_room(self) -> bool:
        self._awake.clear()
        if not await self._in_flight.landed(seconds=_ROOM_SECONDS):
            self._awake.set()
            return False
        children, self._children = self._children, {}
        await asyncio.gather(*(child.stop() for child in children.values()))
        return True

    async def come_back(self) -> None:
        try:
            await self._child(self._active)
        finally:
            self._awake.set()

    async def _asked(self, request: GenerateRequest) -> tuple[int, LlamaProcess]:
        """Which version is asked for, and its process. Raises ServerError, AdapterError."""
        await self._awake.wait()
        version = self._active if request.version is None else request.version
        return version, await self._child(version)

    async def _child(self, version: int) -> LlamaProcess:
        """The process of a version, started if it is not. Raises ServerError, AdapterError."""
        if not self._up:
            raise ServerError(Worded("llama.cpp is not started"))
        if (child := self._children.get(version)) and child.alive:
            return child
        async with self._starting:
            if child := self._children.pop(version, None):
                if child.alive:
                    self._children[version] = child
                    return child
                logger.warning("the llama-server of v%d has ended and is started again", version)
                await child.stop()
            child = self._children[version] = await self._begin(version)
        if version == BASE != self._active:
            self._background.add(self._linger())
        return child

    async def _begin(self, version: int) -> LlamaProcess:
        """A new process of a version. Raises ServerError, AdapterError."""
        directory = self._directories.get(version)
        if version != BASE and directory is None:
            raise ServerError(
                Worded("v{version} is not loaded on {place}", version=version, place="llama.cpp")
            )
        adapter = await self._parts.convert(directory, AdapterFormat.GGUF) if directory else None
        words, read = command(self._settings, self._parts), weights(self._settings)
        cache = await asyncio.to_thread(llama_cache.kept, self._parts.home, read)
        self._serials[version] += 1
        serial = self._serials[version]
        child = self._coming = LlamaProcess(
            f"goodbot-v{version}" + (f"-{serial}" if serial > 1 else ""),
            words,
            weights=read,
            adapter=adapter,
            cache=cache,
            environ=self._parts.environ,
            clock=self._parts.clock,
            manners=self._manners,
        )
        try:
            await child.start()
        except ServerError as error:
            if adapter is None or not self._up or child.blames_machine:
                raise
            cannot = "v{version} cannot be served by llama.cpp: {why}"
            raise AdapterError(Worded(cannot, version=version, why=said_by(error))) from error
        finally:
            self._coming = None
        if not self._up:  # stopped meanwhile, before there was a process to stop
            await child.stop()
            raise ServerError(Worded("llama.cpp is not started"))
        return child

    @contextlib.asynccontextmanager
    async def _asking(self, child: LlamaProcess) -> AsyncGenerator[None]:
        """An answer under way; when it breaks off, its process may have died."""
        with self._in_flight.on(child.name):
            try:
                yield
            except Unreachable:
                await child.doubt()
                raise

    async def _linger(self) -> None:
        """The base's process ends some time after it was needed last."""
        while self._active != BASE and (child := self._children.get(BASE)):
            await self._parts.clock.sleep(_LINGER_SECONDS)
            if self._active != BASE and not self._in_flight.any(child.name):
                self._children.pop(BASE, None)
                await child.stop()

    async def _drained(self, child: LlamaProcess) -> None:
        self._leaving.add(child)
        if not await self._in_flight.landed(child.name, seconds=_DRAIN_SECONDS):
            logger.warning("an answer by %s takes too long: it is cut off", child.name)
        await child.stop()
        self._leaving.discard(child)
