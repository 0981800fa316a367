# SPDX-License-Identifier: Apache-2.0
"""A guarded route on a real server, and what a request to it is told."""

from __future__ import annotations

import contextlib
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from aiohttp import web
from goodbot.api.connector import Capability, ConnectorSpec
from goodbot.base.errors import FatalConnectorError, RetriableError, StoreError, StoreFullError, UsageError
from goodbot.testing.host import RecordingHost
from goodbot_connectors.kit.bridge import clients
from goodbot_connectors.kit.bridge.clients import ApiClient
from goodbot_connectors.kit.bridge.guard import HttpError, answer, guarded, json_object
from goodbot_connectors.kit.bridge.local import LocalConnector

from tests.core.daemon.http.asking import raw

ERRORS: dict[str, Exception] = {
    "usage": UsageError("say it otherwise"),
    "store": StoreError("the disk is gone"),
    "full": StoreFullError("the disk is full"),
    "retry": RetriableError("wait", retry_after=2.5),
    "fatal": FatalConnectorError("a person must act"),
    "no": HttpError(422, "Which one?"),
    "bug": RuntimeError("canary"),
}


class Settings:
    """None."""


SPEC = ConnectorSpec(
    name="api",
    factory="tests.connectors.bridge.serving:Echo",
    capabilities=Capability.ROUTES,
    settings=Settings,
)


class Echo(LocalConnector):
    """Says who asked and what they sent, or fails as asked."""

    spec = SPEC

    def routes(self) -> list[web.RouteDef]:
        return [
            web.post("/v1/echo", guarded(self._echo, self.clients)),
            web.get("/v1/echo", guarded(self._who, self.clients)),
            web.post("/v1/big", guarded(self._big, self.clients, largest=4 << 20)),
        ]

    async def _echo(self, request: web.Request, client: ApiClient) -> web.Response:
        body = await json_object(request)
        if "fail" in body:
            raise ERRORS[body["fail"]]
        return answer({"who": client.name, "body": body})

    async def _who(self, request: web.Request, client: ApiClient) -> web.Response:
        return answer({"who": client.name})

    async def _big(self, request: web.Request, client: ApiClient) -> web.Response:
        return answer({"keys": len(await json_object(request, 4 << 20))})


class Served:
    """It, and a token for it."""

    def __init__(self, host: RecordingHost, connector: Echo, token: str) -> None:
        self.host, self.connector, self.token = host, connector, token
        self.port = int(host.address.rpartition(":")[2])

    async def ask(
        self,
        body: bytes | None = b"{}",
        method: str = "POST",
        path: str = "/v1/echo",
        drop: str = "",
        **headers: str,
    ) -> tuple[int, Any, str]:
        """Status, JSON and head of one request; headers with `_` for `-`, `drop` leaves one out."""
        given = {
            "Host": f"127.0.0.1:{self.port}",
            "Authorization": f"Bearer {self.token}",
            "Content-Type": "application/json",
            "Connection": "close",
            **{name.replace("_", "-"): value for name, value in headers.items()},
        }
        if body is None:
            given.pop("Content-Type")
        else:
            given.setdefault("Content-Length", str(len(body)))
        given.pop(drop, "")
        lines = "".join(f"{name}: {value}\r\n" for name, value in given.items())
        request = f"{method} {path} HTTP/1.1\r\n{lines}\r\n".encode() + (body or b"")
        status, head, said = await raw(self.port, request)
        assert "access-control" not in head
        return status, json.loads(said) if said else None, head


@contextlib.asynccontextmanager
async def served(home: Path, name: str = "me") -> AsyncIterator[Served]:
    state = home / "connectors" / "api"
    token = clients.create(home, "api", name, admin=True)
    host = RecordingHost(SPEC, state_dir=state)
    connector = Echo(host, Settings())
    host.mount(connector)
    await connector.start()
    try:
        yield Served(host, connector, token)
    finally:
        await connector.stop()
        await host.close()
