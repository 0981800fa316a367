# SPDX-License-Identifier: Apache-2.0
"""A connector with pages, as a test needs it; people are who they say they are here."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from aiohttp import web
from goodbot import (
    Capability,
    ChannelKind,
    ChannelRef,
    Connector,
    ConnectorSpec,
    MessageRef,
    OrderKey,
    RatingEvent,
    RatingKind,
    Receipt,
    Reply,
    UserRef,
    Waiting,
    hookimpl,
)
from goodbot.base.clock import Clock
from goodbot.config import HttpConfig

from tests.core.builders import Bot, open_bot


@dataclass(frozen=True, kw_only=True)
class SiteSettings:
    """What a test says of it."""

    path: str = "/page"
    fails: str = ""


SPEC = ConnectorSpec(
    name="web",
    factory="tests.core.daemon.http.site:Site",
    capabilities=Capability.INBOX | Capability.ROUTES,
    settings=SiteSettings,
)
OTHER = ConnectorSpec(
    name="other",
    factory="tests.core.daemon.http.site:Other",
    capabilities=Capability.ROUTES,
    settings=SiteSettings,
)


class Site(Connector):
    """Answers at `/page` and a few paths that a test breaks things with."""

    spec = SPEC
    settings: SiteSettings

    def __init__(self, host: Any, settings: SiteSettings) -> None:
        super().__init__(host, settings)
        self.asked = 0
        self.signed_out = 0
        self.going = asyncio.Event()
        self._count = 0

    def routes(self) -> Sequence[web.AbstractRouteDef]:
        page = web.get(self.settings.path, self._page)
        if self.settings.path == "/other":
            return [page]
        return [
            page,
            web.post("/size", self._size),
            web.get("/never", self._never),
            web.get("/broken", self._broken),
        ]

    @property
    def account(self) -> str:
        return "here"

    async def start(self) -> None:
        self.going.set()
        if self.settings.fails:
            raise RuntimeError(self.settings.fails)

    async def stop(self) -> None:
        pass

    async def send(self, channel: ChannelRef, reply: Reply) -> tuple[MessageRef, ...]:
        return (MessageRef(channel=channel, id="1"),)

    async def sign_out(self) -> None:
        self.signed_out += 1

    async def _page(self, request: web.Request) -> web.Response:
        self.asked += 1
        return web.Response(text=f"a page of {self.spec.name}")

    async def _size(self, request: web.Request) -> web.Response:
        return web.Response(text=str(len(await request.read())))

    async def _never(self, request: web.Request) -> web.Response:
        self.asked += 1
        await asyncio.Event().wait()
        return web.Response()

    async def _broken(self, request: web.Request) -> web.Response:
        raise RuntimeError("canary: what somebody wrote")

    # What people do on it.

    def user(self, name: str) -> UserRef:
        return UserRef(connector=self.spec.name, account=self.account, id=name)

    async def inbox(self, name: str, **wanted: Any) -> list[str]:
        """The answers that somebody sees, by turn."""
        return [entry.turn for entry in await self.entries(name, **wanted)]

    async def entries(self, name: str, **wanted: Any) -> Sequence[Waiting]:
        return await self.host.inbox(self.user(name), **wanted)

    async def rate(self, name: str, turn: str, value: float | None = 1.0, **more: Any) -> Receipt:
        """Press good or bad in the inbox, or with None take it back."""
        self._count += 1
        kind = RatingKind.RATE if value is not None else RatingKind.RETRACT
        place = ChannelRef(connector="web", account="here", id=name, kind=ChannelKind.PRIVATE)
        event = RatingEvent(
            **{
                "event_id": f"w{self._count}",
                "order": OrderKey(self._count),
                "user": self.user(name),
                "channel": place,
                "kind": kind,
                "turn": turn,
                "source": "button",
                "value": value,
                **more,
            }
        )
        [receipt] = await self.host.submit([event])
        return receipt


class Other(Site):
    """A second one, without an inbox."""

    spec = OTHER


PLUGIN = SimpleNamespace(register_connector=hookimpl(lambda: SPEC))
ANOTHER = SimpleNamespace(register_connector=hookimpl(lambda: OTHER))


@contextlib.asynccontextmanager
async def served(
    home: Path,
    port: int,
    clock: Clock | None = None,
    http: dict[str, Any] | None = None,
    terminal: bool = False,
    **connectors: Any,
) -> AsyncGenerator[tuple[Bot, Site]]:
    """A goodbot with pages at that port."""
    sections = {"http": HttpConfig(**{"port": port, **(http or {})}), "connectors": {"web": {}, **connectors}}
    async with open_bot(
        home, clock=clock, extra=(PLUGIN, ANOTHER), sections=sections, terminal=terminal
    ) as bot:
        yield bot, cast("Site", bot.app.connectors.running["web"])
