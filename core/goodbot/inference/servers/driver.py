# SPDX-License-Identifier: Apache-2.0
"""What one server that the owner runs does differently from another, beside `remote.RemoteServer`.

A subclass says what its server does differently, by overriding:

* `attach(name, directory)` and `detach(name)`: load an adapter under a name of its own, and forget it.
* `offered()`: the names that the server has now; by default what `/v1/models` lists. A server that lists no
  adapters returns what the driver itself keeps.
* `first(name, request, top)`: the likeliest first tokens of an answer, by their text, with their log-probs.
* `takes(filters)`: those of the filters of an answer that it has; by default `top_p`.
* `body(name, request)`: the JSON of `/v1/chat/completions`; or `write(name, request)` whole, for another API:
  it yields pieces of text, then one `goodbot.api.chat_answers.Completion`.
* `look()`: is it this kind of server, can it do what is needed, and what does it call the base model?
* `leftovers(directory)`: adapters of ours that an earlier run left there. `heartbeat()`: is it well?
  `forgotten(error)`: does this error say that a name is gone? All three have defaults.

It asks through `self.upstream` (`ask` for whole answers, `stream` for others), raises AdapterError for what
the owner must do about adapters and ServerError for all else, and sets `self.complaint` for `status`.
Versions, drain, fresh names, health and what happens when the server forgets are done in `remote`.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Collection, Mapping
from pathlib import Path
from typing import Any

from goodbot.api.chat_answers import Part
from goodbot.api.marks import Pattern, opened
from goodbot.api.server import GenerateRequest, Server, ServerParts
from goodbot.api.survey import ListedModel
from goodbot.base.errors import AdapterError
from goodbot.base.sampling import Filters
from goodbot.base.worded import Worded
from goodbot.inference.servers import chat, listing
from goodbot.inference.servers.guarding import marks_of
from goodbot.inference.servers.upstream import StatusError, Upstream


class ServerDriver(Server):
    """What a subclass of `RemoteServer` overrides, and the defaults."""

    def __init__(self, parts: ServerParts, title: str) -> None:
        self.parts = parts
        self.upstream = Upstream(title, parts.url, parts.key)
        self.complaint = ""
        """What is wrong with it, though it answers; for `status`."""

    async def look(self) -> str:
        """The name of the base model on the server. Raises ServerError if it cannot be used as it is."""
        return listing.base(await self.models(), self.parts.served_model, self.upstream.place)

    async def offered(self) -> Collection[str]:
        """The names that answer there now."""
        return {model.name for model in await self.models()}

    async def leftovers(self, directory: Path) -> Collection[str]:
        """Names on the server that earlier runs left, of adapters that lie beside `directory`."""
        return ()

    async def attach(self, name: str, directory: Path) -> None:
        """Load the adapter in `directory` (PEFT, verified) as `name`. Raises AdapterError, ServerError."""
        raise AdapterError(Worded("{title} takes no adapters", title=self.upstream.title))

    async def detach(self, name: str) -> None:
        """Forget `name`, which nobody uses; what is not there is ignored. Raises ServerError."""

    async def heartbeat(self) -> None:
        """A light question. Raises ServerError if the server is not well."""
        await self.models()

    def forgotten(self, error: StatusError) -> bool:
        """Whether the server says so because it does not know the name of an adapter."""
        return error.reply.status == 404

    def body(self, name: str, request: GenerateRequest) -> dict[str, Any]:
        """A request to `/v1/chat/completions`: its filters, whatever the server's defaults."""
        return chat.body(name, request)

    def takes(self, filters: Filters, *, far: bool = False) -> Filters:
        """Those of the filters that the server has; `far`: at `/v1/chat/completions`, with `body`."""
        return Filters(top_p=filters.top_p)

    def tells_own(self, request: GenerateRequest) -> bool:
        """Whether its log-probs are the policy's own where it filters: of before that."""
        return False

    async def marks(self) -> Pattern:
        """What the template of its model writes, which nobody else may."""
        return await marks_of(self.parts.model.path)

    def write(self, name: str, request: GenerateRequest) -> AsyncGenerator[Part]:
        """One answer under `name`: its pieces, and one `Completion`."""
        begun = opened(self.parts.model.path, thinking=request.thinking)
        return chat.stream(self.upstream, self.body(name, request), opened=begun)

    async def first(self, name: str, request: GenerateRequest, top: int) -> Mapping[str, float]:
        """How an answer under `name` begins; overridden where the API is another."""
        return await chat.first_tokens(self.upstream, self.body(name, request), top)

    async def models(self) -> list[ListedModel]:
        """What `/v1/models` lists. Raises ServerError."""
        return await listing.models(self.upstream)

    def path_of(self, directory: Path) -> str:
        """A directory of an adapter, as the server sees it."""
        mapped = self.parts.path_on_server.rstrip("/")
        return f"{mapped}/{directory.name}" if mapped else str(directory)
