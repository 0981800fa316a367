# SPDX-License-Identifier: Apache-2.0
"""Programs of this machine as a connector: each client is a person, their answers are turns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from goodbot.api.connector import ConnectorHost

from goodbot_connectors.api import SPEC
from goodbot_connectors.api.config import ApiSettings
from goodbot_connectors.api.handlers import Handlers
from goodbot_connectors.api.proxy.endpoint import Proxy
from goodbot_connectors.kit.bridge.local import LocalConnector

if TYPE_CHECKING:
    from aiohttp.web import AbstractRouteDef


class ApiConnector(LocalConnector):
    """The API and the proxy."""

    spec = SPEC
    settings: ApiSettings

    def __init__(self, host: ConnectorHost, settings: ApiSettings) -> None:
        super().__init__(host, settings)
        self._handlers = Handlers(self)
        self._proxy = Proxy(self, settings)

    def routes(self) -> Sequence[AbstractRouteDef]:
        return (*self._handlers.routes(), *self._proxy.routes())

    async def stop(self) -> None:
        await super().stop()
        await self._proxy.close()
