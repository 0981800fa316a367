# SPDX-License-Identifier: Apache-2.0
"""What is the same for all servers that the owner runs: connection, names, swaps, and what is in flight.

`driver` says what a subclass overrides. A driver that starts processes of its own uses `Upstream`, `chat` and
`InFlight` directly where this does not fit.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import logging
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Coroutine, Mapping, Sequence
from pathlib import Path
from typing import Any

from goodbot.api.chat_answers import Completion
from goodbot.api.completions import FarSide
from goodbot.api.events import Message
from goodbot.api.marks import chat_template
from goodbot.api.server import BASE, GenerateRequest, Piece, ServerParts
from goodbot.base.clock import growing
from goodbot.base.errors import ServerError
from goodbot.base.worded import Worded, said_by
from goodbot.inference.servers import chat
from goodbot.inference.servers.background import BackgroundTasks
from goodbot.inference.servers.driver import ServerDriver
from goodbot.inference.servers.guarding import guarded, mended
from goodbot.inference.servers.heartbeat import Heartbeat
from goodbot.inference.servers.in_flight import InFlight
from goodbot.inference.servers.listing import PREFIX
from goodbot.inference.servers.upstream import StatusError, Unreachable

logger = logging.getLogger(__name__)

_DRAIN_SECONDS = 600.0
"""An answer that is still being written after that loses its adapter."""
_SOON_SECONDS = 5.0
_TRIES, _PAUSE = 2, 4.0


class RemoteServer(ServerDriver):
    """A server that somebody else starts and stops."""

    def __init__(self, parts: ServerParts, title: str) -> None:
        super().__init__(parts, title)
        self.names: dict[int, str] = {}
        """The name on the server of every version that is loaded; that of the base is there once it is up."""
        self._active = BASE
        self._serials: Counter[int] = Counter()
        self._in_flight = InFlight()
        self._loading = asyncio.Lock()
        self._awake = asyncio.Event()
        self._awake.set()
        self._left: set[str] = set()
        """Names that should be gone from the server."""
        self._heartbeat = Heartbeat(parts.clock, self.heartbeat, self._sweep)
        self._background = BackgroundTasks()

    async def start(self) -> None:
        """Connect, or look again after trouble: what is loaded and still there stays as it is."""
        await self.upstream.open()
        try:
            if not self._awake.is_set():
                await self.come_back()
            self.names[BASE] = await self.look()
            if set(self.names) - {BASE}:
                self._keep(await self.offered())
        except ServerError as error:
            await self._heartbeat.stop(said_by(error))
            if not self._in_flight.any():
                await self.upstream.close()
            raise
        self._heartbeat.start()
        await self._sweep()

    async def stop(self) -> None:
        await self._heartbeat.stop()
        await self._background.stop()
        if self.healthy():  # what we brought goes with us, if that is quick
            with contextlib.suppress(ServerError, TimeoutError):
                async with asyncio.timeout(_SOON_SECONDS):
                    for version, name in [*self.names.items()]:  # an answer may forget one
                        if version != BASE:
                            await self.detach(name)
        await self.upstream.close()
        self.names, self._active = {}, BASE
        self._awake.set()

    def healthy(self) -> bool:
        return self.upstream.is_open and BASE in self.names and not self._heartbeat.down

    def trouble(self) -> str:
        complaint, refuses = self.complaint, self.upstream.manners.told()
        both = Worded("{what}; {why}", what=complaint, why=refuses) if complaint and refuses else ""
        return self._heartbeat.down or both or complaint or refuses

    async def generate(self, request: GenerateRequest) -> AsyncGenerator[Piece, None]:
        await self._awake.wait()
        marks = await self.marks()
        # Nothing is waited for until its flight is counted: what is active now may be unloaded then.
        version = self._active if request.version is None else request.version
        request = dataclasses.replace(request, filters=self.takes(request.filters))
        request, broke = guarded(request, marks)
        try:
            async with contextlib.aclosing(self._written(version, request)) as pieces:
                async for piece in pieces:
                    yield mended(piece) if broke else piece
            return
        except StatusError as error:  # it says so before the first piece
            if version == BASE or not self.forgotten(error):
                raise
            logger.warning("v%d is not on the server any more: %s", version, error)
            self._keep(set(self.names.values()) - {self.names.get(version, "")})
            if request.version is not None:
                raise
        async with contextlib.aclosing(self._written(BASE, request)) as pieces:
            async for piece in pieces:
                yield mended(piece) if broke else piece

    async def _written(self, version: int, request: GenerateRequest) -> AsyncGenerator[Piece]:
        name = self.name_of(version)
        with self._in_flight.on(name):
            try:
                async with contextlib.aclosing(self.write(name, request)) as pieces:
                    async for piece in pieces:
                        if isinstance(piece, Completion):
                            own = self.tells_own(request)
                            yield piece.by(version, request.filters, own=own)
                        else:
                            yield piece
            except Unreachable as error:
                self._heartbeat.down = said_by(error)
                raise

    @contextlib.asynccontextmanager
    async def far_side(self, request: GenerateRequest) -> AsyncGenerator[FarSide | None]:
        await self._awake.wait()
        version = self._active if request.version is None else request.version
        with self._in_flight.on(name := self.name_of(version)):
            filters = self.takes(request.filters, far=True)
            request = dataclasses.replace(request, filters=filters)

            async def described() -> FarSide:
                far = chat.far_side(
                    self.upstream,
                    version,
                    self.body(name, request),
                    filters,
                    own=self.tells_own(request),
                    marks=await self.marks(),
                    template=chat_template(self.parts.model.path),
                )
                return await self.drawn(far)

            yield await self._insisted(described)

    async def _insisted(self, described: Callable[[], Awaitable[FarSide]]) -> FarSide:
        """What is said of a server, asked again for some seconds where it does not. Raises ServerError."""
        for tries in range(_TRIES):
            try:
                return await described()
            except ServerError as error:
                fails = isinstance(error, StatusError) and error.reply.status >= 500
                if error.refused and not fails:  # nothing of the question was in what it was asked
                    raise
                logger.info("%s is asked again: %s", self.upstream.place, error)
            await self.parts.clock.sleep(growing(tries, most=_PAUSE))
        try:
            return await described()
        except Unreachable as error:
            self._heartbeat.down = said_by(error)
            raise

    async def drawn(self, far: FarSide) -> FarSide:
        """The same with what the server draws by there, where that is not what it was asked for."""
        return far

    async def first_tokens(
        self, messages: Sequence[Message], *, version: int, top: int
    ) -> Mapping[str, float]:
        name = self.name_of(version)
        if not self._awake.is_set():  # it tells nothing while it makes room
            return {}
        request = GenerateRequest(messages=messages, max_tokens=1, temperature=1.0, seed=0, version=version)
        with self._in_flight.on(name):
            try:
                return await self.first(name, request, top)
            except StatusError as error:
                if error.reply.status in (400, 422, 501) and not self.forgotten(error):
                    return {}  # log-probs are what it does not know
                raise

    async def load(self, version: int, directory: Path) -> None:
        async with self._loading:
            if version != BASE and version not in self.names:
                self.names[version] = await self._attached(version, directory)

    async def reload(self, version: int, directory: Path) -> None:
        async with self._loading:
            name = await self._attached(version, directory)
            old = self.names.pop(version, "")
            self.names[version] = name
            self._active = version
        if old:
            self._later(self._drop(old))

    async def activate(self, version: int) -> None:
        self.name_of(version)
        self._active = version

    async def unload(self, version: int) -> None:
        if version == self._active:
            stays = "v{version} is what {place} answers with: it stays"
            raise ServerError(Worded(stays, version=version, place=self.upstream.place))
        if version != BASE and (name := self.names.pop(version, "")):
            await self._drop(name)

    async def served(self) -> int:
        self.name_of(BASE)
        if self._active != BASE:
            self._keep(await self.offered())
        return self._active

    def name_of(self, version: int) -> str:
        """What the server calls a version. Raises ServerError when that is not loaded."""
        if BASE not in self.names:
            away = Worded("{place} is not connected", place=self.upstream.place)
            raise ServerError(self._heartbeat.down or away)
        if version not in self.names:
            unknown = "v{version} is not loaded on {place}"
            raise ServerError(Worded(unknown, version=version, place=self.upstream.place))
        return self.names[version]

    async def quiet(self, seconds: float) -> bool:
        """For `make_room`: hold new answers back, wait for those under way. False: they go on, so do all."""
        self._awake.clear()
        if await self._in_flight.landed(seconds=seconds):
            return True
        self._awake.set()
        return False

    async def come_back(self) -> None:
        self._awake.set()

    async def _attached(self, version: int, directory: Path) -> str:
        """Load under a name that was never used; returns it."""
        ours = set(self.names.values())
        self._left |= set(await self.leftovers(directory)) - ours
        await self._sweep()
        taken = set(await self.offered()) | ours
        while True:
            self._serials[version] += 1
            serial = self._serials[version]
            name = f"{PREFIX}{version}" + (f"-{serial}" if serial > 1 else "")
            if name not in taken:
                await self.attach(name, directory)
                return name

    async def _drop(self, name: str) -> None:
        """Take a name off the server once its answers are done; if that fails, again with the heartbeat."""
        self._left.add(name)
        if not await self._in_flight.landed(name, seconds=_DRAIN_SECONDS):
            logger.warning("an answer by %s takes over %.0f s: it is cut off", name, _DRAIN_SECONDS)
        await self.detach(name)
        self._left.discard(name)

    async def _sweep(self) -> None:
        for name in [name for name in self._left if not self._in_flight.any(name)]:
            with contextlib.suppress(ServerError):
                await self.detach(name)
                self._left.discard(name)

    def _keep(self, offered: Collection[str]) -> None:
        """Forget the versions whose names the server has lost."""
        gone = [v for v, name in self.names.items() if v != BASE and name not in offered]
        for version in gone:
            logger.warning("the server has forgotten v%d", version)
            del self.names[version]
        if self._active in gone:
            self._active = BASE

    def _later(self, work: Coroutine[Any, Any, None]) -> None:
        self._background.add(work)
