# SPDX-License-Identifier: Apache-2.0
"""A receiver of webhooks on this machine, and a host that tells what a test lays down."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import hmac
import json
from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web
from goodbot.api.feature import Figures, Happened, HappenedWanted
from goodbot.config.secrets import Secrets
from goodbot.features.webhooks.outbox import Webhooks
from goodbot.features.webhooks.plugin import KEY, Receiver, WebhooksSettings
from goodbot.testing import VirtualClock

SECRET = "0123456789abcdef0123456789abcdef"


@dataclass
class Got:
    """Everything that came, and what is answered: 200 once `answers` is used up; 0: nothing, ever."""

    port: int
    bodies: list[bytes] = field(default_factory=list[bytes])
    headers: list[Mapping[str, str]] = field(default_factory=list[Mapping[str, str]])
    answers: list[int] = field(default_factory=list[int])

    @property
    def events(self) -> list[dict[str, Any]]:
        return [json.loads(body) for body in self.bodies]

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/hook"

    def settings(self, **more: Any) -> dict[str, Any]:
        return {"url": self.url, "local": True, **more}

    async def handle(self, request: web.Request) -> web.Response:
        self.bodies.append(await request.read())
        self.headers.append(dict(request.headers))
        status = self.answers.pop(0) if self.answers else 200
        if not status:
            await asyncio.Event().wait()
        return web.Response(status=status, headers={"Location": "/elsewhere"})


@contextlib.asynccontextmanager
async def receiver(port: int = 0, got: Got | None = None) -> AsyncGenerator[Got]:
    got = got or Got(port)
    app = web.Application()
    app.router.add_route("*", "/{any:.*}", got.handle)
    runner = web.AppRunner(app, shutdown_timeout=0.05)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", got.port)
    await site.start()
    got.port = got.port or runner.addresses[0][1]
    try:
        yield got
    finally:
        await runner.cleanup()


def key_of(name: str) -> str:
    """As the docs say it."""
    return hmac.new(SECRET.encode(), name.encode(), hashlib.sha256).hexdigest()


def signed_by(key: str, headers: Mapping[str, str], body: bytes) -> bool:
    """As the docs say it, in other words than the product's."""
    at, mac = (part.split("=", 1)[1] for part in headers["Goodbot-Signature"].split(","))
    return hmac.new(key.encode(), at.encode() + b"." + body, hashlib.sha256).hexdigest() == mac


class Laid:
    """A host of what a test lays down; `kept` outlives it."""

    def __init__(self, kept: dict[str, str] | None = None) -> None:
        self.clock = VirtualClock(waits=True)
        self.secrets = Secrets((KEY,), {KEY: SECRET})
        self.kept = {} if kept is None else kept
        self.things: list[Happened] = []
        self.troubles: dict[str, str] = {}

    def lay(self, *ids: str) -> None:
        self.things += [Happened(id=id_, kind="rating", at=1.0, data={"person": "slack:U1"}) for id_ in ids]

    async def figures(self) -> Figures:
        raise NotImplementedError

    async def happened(self, wanted: HappenedWanted, mark: str) -> tuple[Happened | None, str]:
        at = int(mark or 0)
        return (self.things[at], str(at + 1)) if at < len(self.things) else (None, str(at))

    async def waiting(self, wanted: HappenedWanted, mark: str) -> int:
        return len(self.things) - int(mark or 0)

    async def get(self, key: str) -> str | None:
        return self.kept.get(key)

    async def set(self, key: str, value: str) -> None:
        self.kept[key] = value

    def trouble(self, part: str, text: str) -> None:
        self.troubles[part] = text
        if not text:
            del self.troubles[part]


def webhooks(host: Laid, **to: Mapping[str, Any]) -> Webhooks:
    lent: Any = host  # its clock is a virtual one
    return Webhooks(lent, WebhooksSettings(to={name: Receiver(**one) for name, one in to.items()}))


@contextlib.asynccontextmanager
async def running(made: Webhooks) -> AsyncGenerator[Webhooks]:
    task = asyncio.create_task(made.run())
    try:
        yield made
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
