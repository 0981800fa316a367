# SPDX-License-Identifier: Apache-2.0
"""The proxy on a loopback port, with a client's token, before a fake upstream or a scripted model."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Collection, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from aiohttp import web
from goodbot.api.completions import CompletionRequest, FarSide, OwnModel
from goodbot.api.connector import Capability, ConnectorSpec
from goodbot.api.events import CaptureEvent, ChannelRef, UserRef
from goodbot.api.server import Generated
from goodbot.config.secrets import Secret
from goodbot.testing import RecordingHost
from goodbot_connectors.api.proxy.config import SECRETS, ProxySettings
from goodbot_connectors.api.proxy.endpoint import Proxy
from goodbot_connectors.kit.bridge import clients
from goodbot_connectors.kit.bridge.local import LocalConnector

SPEC = ConnectorSpec(
    name="api", factory="tests:none", capabilities=Capability.ROUTES, settings=ProxySettings, secrets=SECRETS
)


class ProxyConnector(LocalConnector):
    """What connector `api` is to the proxy."""

    spec: ClassVar[ConnectorSpec] = SPEC

    def __init__(self, host: Any, settings: ProxySettings) -> None:
        super().__init__(host, settings)
        self.proxy = Proxy(self, settings)

    def routes(self) -> Sequence[web.AbstractRouteDef]:
        return self.proxy.routes()

    async def stop(self) -> None:
        await super().stop()
        await self.proxy.close()


@dataclass
class Scripted(OwnModel):
    """A model that says what a test wants."""

    says: Sequence[str] = ("Good ", "dogs ", "bark ☂", ".")
    thought: str = ""
    version: int = 3
    template: bool = True
    far: FarSide | None = None
    asked: list[CompletionRequest] = field(default_factory=list[CompletionRequest])
    closed: int = 0
    """Answers that were cancelled half way."""
    error: Exception | None = None
    admits: bool = True

    @property
    def name(self) -> str:
        return "tiny"

    @property
    def temperature(self) -> float:
        return 0.7

    def admit(self, user: UserRef, channel: ChannelRef) -> bool:
        return self.admits

    async def versions(self) -> Collection[int]:
        return (0, self.version)

    async def calls_tools(self) -> bool:
        return self.template

    async def answer(self, question: CompletionRequest) -> AsyncGenerator[str | Generated, None]:
        self.asked.append(question)
        if self.error is not None:
            raise self.error
        try:
            for piece in self.says:
                yield piece
        except GeneratorExit:
            self.closed += 1
            raise
        version = self.version if question.version is None else question.version
        yield Generated(
            text="".join(one for one in self.says if isinstance(one, str)),
            version=version,
            finish="stop",
            thought=self.thought,
            prompt_tokens=(1, 2, 3),
            tokens=tuple(range(len(self.says))),
            logprobs=(-0.5,) * len(self.says),
        )

    def far_side(self, question: CompletionRequest) -> AbstractAsyncContextManager[FarSide | None]:
        self.asked.append(question)
        return contextlib.nullcontext(self.far)


def far_side(url: str, *, tells: bool = True, key: str = "") -> FarSide:
    """A vLLM there, serving v3."""
    return FarSide(
        title="vLLM",
        url=url,
        key=Secret(key),
        version=3,
        tells=tells,
        fields={
            "model": "goodbot-v3",
            "messages": [],
            "max_tokens": 512,
            "temperature": 0.7,
            "top_p": 1.0,
            "seed": 1,
            "top_k": -1,
            **({"logprobs": True, "return_token_ids": True} if tells else {}),
        },
    )


@dataclass(kw_only=True)
class Ground:
    """Where a test asks, and what became of it."""

    url: str
    token: str
    host: RecordingHost
    connector: ProxyConnector

    @property
    def bearer(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.token}"}

    async def captured(self, count: int = 1) -> list[CaptureEvent]:
        """What was kept, once there is so much of it."""
        return await self.host.received(CaptureEvent, count)


@contextlib.asynccontextmanager
async def proxied(
    home: Path,
    *,
    model: OwnModel | None = None,
    environ: dict[str, str] | None = None,
    host: RecordingHost | None = None,
    **settings: Any,
) -> AsyncIterator[Ground]:
    """A running proxy."""
    state = home / "connectors" / "api"
    state.mkdir(parents=True, exist_ok=True)
    token = clients.create(home, "api", "ada", admin=True)
    host = host or RecordingHost(SPEC, state_dir=state, environ=environ)
    if model is not None:
        host.model = model
    connector = ProxyConnector(host, ProxySettings(**settings))
    host.mount(connector)
    await connector.start()
    ground = Ground(url=host.address, token=token, host=host, connector=connector)
    try:
        yield ground
    finally:
        await connector.stop()
        await host.close()
        assert host.failures == []
