# SPDX-License-Identifier: Apache-2.0
"""Any server that speaks OpenAI's API: it answers with its own model, and takes no adapters."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

from goodbot.api import address
from goodbot.api.marks import ANY, Pattern
from goodbot.api.server import BASE, GenerateRequest, ServerParts
from goodbot.base.errors import AdapterError, ServerError
from goodbot.base.sampling import Filters
from goodbot.base.worded import Worded
from goodbot.inference.servers.choice import NO_ADAPTERS
from goodbot.inference.servers.remote import RemoteServer
from goodbot.inference.servers.upstream import StatusError

_NOT_OPENAIS = ("top_k", "min_p", "repetition_penalty")
_ALL_TOKENS = -1
"""As `top_k`: some servers refuse a 0."""


class OpenAIServer(RemoteServer):
    """A compatible server somewhere."""

    def __init__(self, _: object, parts: ServerParts) -> None:
        super().__init__(parts, "the server")
        self.complaint = Worded("{place}: {why}", place=self.upstream.place, why=Worded(NO_ADAPTERS))

    async def marks(self) -> Pattern:
        return ANY  # its model may be another than ours

    def takes(self, filters: Filters, *, far: bool = False) -> Filters:
        return filters  # what it refuses is learnt (`Manners`), and then not said to have been applied

    def body(self, name: str, request: GenerateRequest) -> dict[str, Any]:
        """With the filters that OpenAI's API does not have: most servers do.

        Those that change anything, and what the config itself names: the server may have values of its own.
        """
        said = {*request.filters.told(), *self.parts.drawn_with}
        values = {**asdict(request.filters), "top_k": request.filters.top_k or _ALL_TOKENS}
        return {**super().body(name, request), **{one: values[one] for one in _NOT_OPENAIS if one in said}}

    async def look(self) -> str:
        try:
            return await super().look()
        except StatusError as error:
            if error.reply.status in (404, 405) and self.parts.served_model:
                return self.parts.served_model  # it lists nothing, so its owner has said the name
            if error.reply.status in (404, 405):
                silent = (
                    "{place} does not tell its models: set [serving] model, and see that [serving] url "
                    "is what "
                    "comes before /v1"
                )
                raise ServerError(Worded(silent, place=self.upstream.place)) from error
            raise

    async def load(self, version: int, directory: Path) -> None:
        if version != BASE:
            raise AdapterError(self.complaint)

    async def reload(self, version: int, directory: Path) -> None:
        await self.load(version, directory)

    async def heartbeat(self) -> None:
        """Another machine's is asked only while it is down: it may count requests."""
        if self._heartbeat.down or address.is_here(self.upstream.url):
            await self.look()
