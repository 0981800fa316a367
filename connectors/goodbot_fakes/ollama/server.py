# SPDX-License-Identifier: Apache-2.0
"""`FakeOllama`: `ollama serve` on loopback, with its models, its memory, and faults to switch on."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web
from goodbot.base.clock import Clock, SystemClock

from goodbot_fakes.ollama import api, chat, create
from goodbot_fakes.ollama.runners import Runners
from goodbot_fakes.ollama.store import BlobStore, ModelManifest

MODEL = "tiny:0.1b"


@dataclass(kw_only=True, slots=True)
class Faults:
    """What goes wrong; all may be switched while it runs."""

    adapters_ignored: bool = False
    """Models are made, loaded and answered, without their adapters."""
    create_does_nothing: bool = False
    """`/api/create` ends with success and leaves nothing behind."""
    create_drops_adapter: bool = False
    """`/api/create` makes a model like the base, without the adapter."""
    out_of_memory: bool = False
    """Whatever is not in memory cannot be loaded."""
    lost_blobs: int = 0
    """So many uploads are acknowledged and gone."""
    breaks_off: bool = False
    """Answers end in the middle."""
    hanging: set[str] = field(default_factory=set[str])
    """Paths that are never answered."""
    failing: set[str] = field(default_factory=set[str])
    """Paths that are answered with status 500."""


class FakeOllama:
    """Use `async with FakeOllama() as ollama`; it has one model, `tiny:0.1b`, in GGUF.

    It behaves as `version`, and says that it is `called`. `clock` lets models go when they were not used
    for 5 minutes. `pace` is seconds a token.
    """

    def __init__(
        self, *, version: str = "0.33.3", called: str = "", clock: Clock | None = None, pace: float = 0.001
    ) -> None:
        self.version = version
        self.called = called or version
        self.pace = pace
        self.store = BlobStore()
        self.store.base(MODEL)
        self.runners = Runners(clock=clock or SystemClock())
        self.faults = Faults()
        self.seen: list[tuple[str, dict[str, Any]]] = []
        """Every request: `METHOD /path`, and its JSON."""
        self._runner: web.AppRunner | None = None
        self._port = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    @property
    def numbers(self) -> tuple[int, ...]:
        """Of its version, without what comes after a hyphen."""
        return tuple(map(int, self.version.partition("-")[0].split(".")))

    async def __aenter__(self) -> FakeOllama:
        await self.come_up()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.go_down()

    async def come_up(self) -> None:
        """Listen, at the same port as before; blobs that no model names are removed."""
        self.store.prune()
        app = web.Application(client_max_size=1 << 30, middlewares=[self._fault])
        app.add_routes([*api.routes(self), *create.routes(self), *chat.routes(self)])
        # An answer that nobody reads any more ends, as llama-server's does.
        self._runner = web.AppRunner(app, handler_cancellation=True, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", self._port)
        await site.start()
        self._port = self._runner.addresses[0][1]

    async def go_down(self) -> None:
        """Stop listening; the memory is empty after it, the disk is not."""
        if self._runner is not None:
            await self._runner.cleanup()
        self._runner = None
        self.runners.loaded.clear()

    async def restart(self, *, forgetting: bool = False) -> None:
        """As after an update. Forgetting, its disk is new too, with the base model pulled again."""
        await self.go_down()
        if forgetting:
            self.store = BlobStore()
            self.store.base(MODEL)
        await self.come_up()

    def pull_anew(self, name: str = MODEL) -> ModelManifest:
        """`ollama pull`, after somebody has published other weights under that name."""
        return self.store.base(name, weights=f"{name} anew")

    def asked(self, path: str) -> list[dict[str, Any]]:
        """The bodies of all requests to a path, in order."""
        return [body for what, body in self.seen if what.partition(" ")[2] == path]

    async def until_asked(self, path: str) -> None:
        """Wait for a request to a path; one that came before counts."""
        while not self.asked(path):
            await asyncio.sleep(0.005)

    @web.middleware
    async def _fault(self, request: web.Request, handler: Any) -> web.StreamResponse:
        path = request.path
        body: dict[str, Any] = {}
        if request.content_type == "application/json":
            body = await request.json()
        self.seen.append((f"{request.method} {path}", body))
        if path in self.faults.hanging:
            await asyncio.Event().wait()
        if path in self.faults.failing:
            return api.refused("internal server error", 500)
        return await handler(request)
