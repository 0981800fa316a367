# SPDX-License-Identifier: Apache-2.0
"""Faults, planted where each occurs, in a goodbot whose time a test turns on. The real parts find them.

Two are given by what asks the operating system: how many bytes of the disk are free, and how long asyncio
waits until it tries again to take a connection.
"""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import logging
import os
import resource
import signal
import socket
from asyncio import constants
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import aiosqlite
import pytest
from goodbot.access import pairing
from goodbot.api.events import Outcome, UserRef
from goodbot.base import full_disk, one_time
from goodbot.base.descriptors import Descriptors
from goodbot.base.errors import StoreError, boundary
from goodbot.config import HttpConfig
from goodbot.daemon.maintenance import Maintenance
from goodbot.store import ledger, settings, turns
from goodbot.testing import VirtualClock

from tests.core.builders import Bot, open_bot, rate, turn, until
from tests.core.test_descriptors import give_back, take_all
from tests.support import free_port

logger = logging.getLogger(__name__)

MINUTE = 60.0
HOUR = 3600.0


class Watched:
    """A goodbot of which v1 answers. Its maintenance and its news look when the test says so."""

    def __init__(self, bot: Bot, clock: VirtualClock) -> None:
        self.bot, self.clock = bot, clock
        self.each: Callable[[], Awaitable[None]] | None = None
        """What happens before each look, while a fault stands."""
        self.maintenance = bot.app.maintenance
        self._numbers = itertools.count()
        self._heard = 0

    @property
    def port(self) -> int:
        return self.bot.app.config.http.port

    def number(self) -> int:
        """One that was not used before."""
        return next(self._numbers)

    def restart(self) -> None:
        """Forget all that is not stored of what was seen and told."""
        self.maintenance = Maintenance(self.bot.app, self.bot.app.manager)
        self.bot.app.courier._told.clear()

    def reads(self, language: str) -> None:
        """The owner's platform says that this is their language."""
        event = self.bot.chat.typed("help")
        user = dataclasses.replace(event.user, language=language)
        self.bot.app.courier.readers.heard([dataclasses.replace(event, user=user)])

    async def after(self, minutes: int) -> list[str]:
        """What an owner is told unasked in so many minutes, with a look in each."""
        for _ in range(minutes):
            if self.each is not None:
                await self.each()
            await self.maintenance.look_after_server()
            await self.maintenance.once()
            with boundary(logger, "telling the owners"):
                await self.bot.app.news.look()
            self.clock.advance(MINUTE)
        told, self._heard = self.bot.chat.news[self._heard :], len(self.bot.chat.news)
        return [one.text for one in told if not one.text.startswith("Your rating counts")]

    async def rated(
        self, values: Sequence[float], *, version: int, rater: str = "owner", ago: float = 0.0
    ) -> list[str]:
        """Store answers of a version with somebody's rating of each; returns their turns."""
        names = [f"planted{self.number()}" for _ in values]
        model, now = self.bot.app.model.name, self.clock.now()

        async def operation(db: aiosqlite.Connection) -> None:
            for name in names:
                made = turn(name, version=version, model=model, created_at=now)
                await turns.insert(db, made, trainable=True)

        await self.bot.store.write(operation)
        await self.rate(names, values, rater, ago)
        return names

    async def rate(self, names: Sequence[str], values: Sequence[float], rater: str, ago: float = 0.0) -> None:
        """Store somebody's ratings of these turns, of so many seconds ago."""
        user = UserRef(connector="loopback", account="loopback", id=rater)
        now = self.clock.now() - ago

        async def operation(db: aiosqlite.Connection) -> None:
            for name, value in zip(names, values, strict=True):
                number = self.number()
                event = rate(f"planted{number}", number, value, name, user=user)
                receipt = event.receipt(Outcome.ACCEPTED, turn=name)
                await ledger.insert(db, event, name, f"loopback:{rater}", receipt, now)

        await self.bot.store.write(operation)


@contextlib.asynccontextmanager
async def watched(home: Path) -> AsyncGenerator[Watched]:
    """A goodbot that has learnt v1, with all of that told."""
    clock = VirtualClock(waits=True)
    sections = {"http": HttpConfig(port=free_port())}
    async with open_bot(home, clock=clock, sections=sections) as bot:
        bot.app.http.descriptors = Descriptors(clock)
        await bot.app.http.start()
        await bot.rated(8)
        await bot.train()
        for task in ("maintenance", "news"):
            bot.app._tasks[task].cancel()
        on = Watched(bot, clock)
        await on.after(1)
        yield on


# -- the faults


@contextlib.asynccontextmanager
async def no_space(_: Watched) -> AsyncGenerator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(full_disk, "_free", lambda home: 400_000_000)
        yield


@contextlib.asynccontextmanager
async def store_fails(on: Watched) -> AsyncGenerator[None]:
    """The system takes nothing more into any file, and says so with EFBIG, a sibling of ENOSPC."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1, before[1]))
    try:
        with contextlib.suppress(StoreError):
            await on.bot.store.write(lambda db: settings.set_switch(db, "planted", "x"))
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@contextlib.asynccontextmanager
async def model_ends(on: Watched) -> AsyncGenerator[None]:
    """It is killed, and no other comes up."""
    server: Any = on.bot.app.server
    on.bot.fake.set(**{"no start": "There was not enough memory."})
    os.kill(server._sampler._process.pid, signal.SIGKILL)
    await until(lambda: not server.healthy())
    yield
    on.bot.fake.set(**{"no start": ""})


@contextlib.asynccontextmanager
async def adapter_lost(on: Watched) -> AsyncGenerator[None]:
    """The server drops it, and does not take it again."""
    on.bot.fake.set(refused=[1])
    on.bot.fake.forget()
    yield
    on.bot.fake.set(refused=[])
    await on.bot.rollback("1")


@contextlib.asynccontextmanager
async def adapter_ignored(on: Watched) -> AsyncGenerator[None]:
    """The server has it, and answers like the base model, however often it is loaded."""
    on.bot.fake.set(first="base")
    yield
    on.bot.fake.set(first="ok")
    await on.bot.rollback("1")


@contextlib.asynccontextmanager
async def platform_down(on: Watched) -> AsyncGenerator[None]:
    """The connector says so, as it does where its platform refuses it."""
    on.bot.chat.host.trouble("the token is refused")
    yield
    on.bot.chat.host.trouble("")


@contextlib.asynccontextmanager
async def clock_wrong(on: Watched) -> AsyncGenerator[None]:
    """Somebody sets it; the platform goes on telling what time it is there."""
    on.clock.jump(600)
    on.bot.chat.host.told_time(on.clock.now() - 600)
    yield
    on.clock.jump(-600)
    on.bot.chat.host.told_time(on.clock.now())


@contextlib.asynccontextmanager
async def descriptors_gone(on: Watched) -> AsyncGenerator[None]:
    """Somebody calls in each minute, and there is no descriptor for them."""
    knows = on.bot.app.http.descriptors

    async def calls() -> None:
        before, held = resource.getrlimit(resource.RLIMIT_NOFILE), list[int]()
        with socket.socket() as caller:
            try:
                take_all(held)
                caller.connect(("127.0.0.1", on.port))
                await until(lambda: knows._last == on.clock.monotonic())
            finally:
                give_back(held)
                resource.setrlimit(resource.RLIMIT_NOFILE, before)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(constants, "ACCEPT_RETRY_DELAY", 0.01)
        on.each = calls
        yield
        on.each = None


@contextlib.asynccontextmanager
async def guessed_at(on: Watched) -> AsyncGenerator[None]:
    """A stranger types codes until the one that was made is locked; its owner makes another."""
    await pairing.open_code(on.bot.store, "loopback", on.clock.now())
    mallory = f"mallory{on.number()}"  # who goes on is taken for somebody who wants to join
    for _ in range(pairing.MAX_FAILURES):
        await on.bot.say(one_time.fresh(), user=mallory)
    yield
    await pairing.open_code(on.bot.store, "loopback", on.clock.now())


class LikedLess:
    """People rate the answers of v1 worse than they had rated the base model's; and better again."""

    def __init__(self) -> None:
        self._times = 0

    @contextlib.asynccontextmanager
    async def __call__(self, on: Watched) -> AsyncGenerator[None]:
        if not self._times:  # with the 4 of 8 that v1 was made of: 30 of 40
            await on.rated([1.0] * 26 + [-1.0] * 6, version=0)
        worse, better = ((12, 28), 60) if not self._times else ((0, 100), 200)
        await on.rated([1.0] * worse[0] + [-1.0] * worse[1], version=1)
        yield
        await on.rated([1.0] * better, version=1)
        self._times += 1


@contextlib.asynccontextmanager
async def rater_turned(on: Watched) -> AsyncGenerator[None]:
    """Eve says the opposite of what she had said before; and then nothing odd for a while."""
    old = await on.rated([1.0] * 8, version=99, rater="eve", ago=2 * HOUR)
    await on.rate(old[:5], [-1.0] * 5, "eve")
    yield
    await on.rated([1.0] * 10, version=99, rater="eve")
