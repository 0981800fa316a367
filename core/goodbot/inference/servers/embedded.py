# SPDX-License-Identifier: Apache-2.0
"""The embedded server: one sampler child that holds the model; adapters are swapped in place.

If the child dies, or hangs and is killed, the answers in flight fail and the next `start` brings it back
with the base model; the reconciler then loads what should be active.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncGenerator, Generator, Mapping, Sequence
from pathlib import Path

from goodbot.api.events import Message
from goodbot.api.sampler import GivenAnswer
from goodbot.api.server import BASE, Generated, GenerateRequest, Piece, Server, ServerParts
from goodbot.base.errors import AdapterError, ServerError
from goodbot.base.thoughts import Thought
from goodbot.base.worded import Worded
from goodbot.inference.servers.sampler_process import SamplerProcess

logger = logging.getLogger(__name__)

_ROOM_SECONDS = 120.0
"""So long new questions wait for the answers in flight, before a training has to."""


class EmbeddedServer(Server):
    """A child process that samples with one backend, many answers at once."""

    def __init__(self, _: object, parts: ServerParts) -> None:
        self._sampler = SamplerProcess(parts.backend, parts.model.path, parts.environ, parts.adapters)
        self._loaded: dict[int, Path] = {}
        """What the child answers by. It keeps as many in memory as fit, and reads the others again."""
        self._active = BASE
        self._writing = 0
        self._idle, self._open = asyncio.Event(), asyncio.Event()
        """Nothing is being written; questions need not wait."""
        self._idle.set()
        self._open.set()
        self._away = False
        """The child is stopped, to make room."""

    async def start(self) -> None:
        self._away = False
        self._forget()
        await self._sampler.start()
        self._open.set()

    async def stop(self) -> None:
        self._away = False
        self._open.set()  # who waits is told that it is not running
        await self._sampler.stop()

    def healthy(self) -> bool:
        return self._away or self._sampler.alive()

    async def generate(self, request: GenerateRequest) -> AsyncGenerator[Piece, None]:
        while not self._open.is_set():  # it may be shut again before this goes on
            await self._open.wait()
        with self._counted(), self._noticed(request.version):
            async with self._sampler.request(
                "generate",
                messages=list(request.messages),
                max_tokens=request.max_tokens,
                temperature=request.temperature,
                seed=request.seed,
                version=request.version,
                conversation=request.conversation,
                thinking=request.thinking,
                filters=request.filters.told(),
            ) as answers:
                async for answer in answers:
                    if answer["event"] == "thought":
                        yield Thought(str(answer["text"]))
                        continue
                    if answer["event"] == "text":
                        yield str(answer["text"])
                        continue
                    yield Generated(
                        text=str(answer["text"]),
                        version=int(answer["version"]),
                        finish=str(answer["finish"]),
                        prompt_tokens=tuple(answer.get("prompt_tokens") or ()),
                        tokens=tuple(answer.get("tokens") or ()),
                        logprobs=tuple(answer.get("logprobs") or ()),
                        thought=str(answer.get("thought") or ""),
                        thought_tokens=int(answer.get("thought_tokens") or 0),
                        lifts=tuple(answer.get("lifts") or ()),
                    )
                    return

    async def load(self, version: int, directory: Path) -> None:
        if version != BASE and version not in self._loaded:
            if self._away:
                busy = (
                    "a training has the model's memory, so no adapter can be loaded; try again when it "
                    "is over"
                )
                raise ServerError(Worded(busy))
            await self._load(version, directory)

    async def _load(self, version: int, directory: Path) -> None:
        shut_out = self.healthy() and not self._sampler.reaches_adapters()
        if shut_out and await self.make_room():
            await self.come_back()  # another child, which can read what was made anew
        await self._sampler.call("load", version=version, path=str(directory))
        self._loaded[version] = directory

    async def activate(self, version: int) -> None:
        if not self._away:
            with self._noticed(version):
                await self._sampler.call("activate", version=version)
        elif version != BASE and version not in self._loaded:
            raise AdapterError(Worded("v{version} is not loaded", version=version))
        self._active = version

    async def unload(self, version: int) -> None:
        if version not in self._loaded:
            return
        if version == self._active:
            raise AdapterError(Worded("v{version} is active and cannot be unloaded", version=version))
        del self._loaded[version]  # first: whoever wants it meanwhile has to load it again
        if not self._away:
            await self._sampler.call("unload", version=version)

    async def reload(self, version: int, directory: Path) -> None:
        """The child puts it in the old one's place, which stays if that fails."""
        if version != BASE and version in self._loaded and not self._away:
            await self._load(version, directory)
        await super().reload(version, directory)

    async def served(self) -> int:
        if self._away:
            return self._active
        version = int((await self._sampler.call("served")).get("version", BASE))
        if version != self._active:  # it has lost its adapters: load them anew when asked
            self._forget()
            self._active = version
        return version

    async def first_tokens(
        self, messages: Sequence[Message], *, version: int, top: int
    ) -> Mapping[str, float]:
        if self._away:
            return {}
        with self._noticed(version):
            answer = await self._sampler.call(
                "first_tokens", messages=list(messages), version=version, top=top
            )
        tokens: Mapping[str, float] = answer.get("tokens") or {}
        return {str(text): float(logprob) for text, logprob in tokens.items()}

    async def score(self, given: GivenAnswer, *, version: int) -> Sequence[tuple[str, float]]:
        if self._away:
            return ()
        with self._noticed(version):
            answer = await self._sampler.call(
                "score",
                version=version,
                messages=list(given.messages),
                response=given.response,
                thought=given.thought,
                prompt_tokens=given.tokens.prompt if given.tokens else (),
                tokens=given.tokens.response if given.tokens else (),
            )
        return [(str(text), float(logprob)) for text, logprob in answer.get("tokens") or ()]

    async def make_room(self) -> bool:
        """Once the answers in flight are done, the child is stopped; False where they take too long."""
        self._open.clear()
        try:
            try:
                await asyncio.wait_for(self._idle.wait(), _ROOM_SECONDS)
            except TimeoutError:
                self._open.set()
                return False
            self._away = True
            await self._sampler.stop()
        except BaseException:
            self._away = False
            self._open.set()
            raise
        return True

    async def come_back(self) -> None:
        if not self._away:
            self._open.set()
            return
        try:
            await self._sampler.start()
            for version, directory in [*self._loaded.items()]:
                await self._load_again(version, directory)
            await self._sampler.call("activate", version=self._active)
        finally:
            self._away = False
            self._open.set()

    async def _load_again(self, version: int, directory: Path) -> None:
        """The others are read when somebody asks for them: nobody waits for a thousand."""
        later = version != self._active
        try:
            await self._sampler.call("load", version=version, path=str(directory), later=later)
        except AdapterError as error:  # the reconciler says what is to be served instead
            logger.error("v%d cannot be loaded again: %s", version, error)
            del self._loaded[version]
            if version == self._active:
                self._active = BASE

    @contextlib.contextmanager
    def _noticed(self, version: int | None) -> Generator[None]:
        """What the child turns out not to have, because its files went away, is to be loaded again."""
        try:
            yield
        except AdapterError:
            if version != self._active:
                self._loaded.pop(BASE if version is None else version, None)
            raise

    @contextlib.contextmanager
    def _counted(self) -> Generator[None]:
        self._writing += 1
        self._idle.clear()
        try:
            yield
        finally:
            self._writing -= 1
            if not self._writing:
                self._idle.set()

    def _forget(self) -> None:
        self._loaded.clear()
        self._active = BASE
