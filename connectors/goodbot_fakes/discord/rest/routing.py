# SPDX-License-Identifier: Apache-2.0
"""How a request finds its handler; the paths are those of Discord's OpenAPI document."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, cast

from goodbot_fakes.discord.errors import DiscordError, invalid_form
from goodbot_fakes.discord.state import State

Json = dict[str, Any]
Answer = Json | list[Json] | None
"""What a handler gives; None is 204, no content."""


@dataclass(kw_only=True)
class ApiCall:
    """One request, and what became of it."""

    method: str
    path: str
    """As the document writes it: `/channels/{channel_id}/messages`."""
    params: dict[str, str] = field(default_factory=dict[str, str])
    query: dict[str, str] = field(default_factory=dict[str, str])
    body: Any = None
    headers: dict[str, str] = field(default_factory=dict[str, str])
    status: int = 0
    answer: Any = None
    at: float = 0.0
    """When it came, in the clock's monotonic seconds."""

    def fields(self) -> Json:
        """The body, which must be an object. Raises `DiscordError`."""
        found: object = self.body
        if not isinstance(found, dict):
            raise DiscordError(400, 50109, "The request body contains invalid JSON.")
        return cast("Json", found)

    def number(self, name: str, default: int, most: int) -> int:
        """A number of the query from 1 to `most`. Raises `DiscordError`."""
        given = self.query.get(name, str(default))
        if not given.isdecimal() or not 1 <= int(given) <= most:
            raise invalid_form(name, "NUMBER_TYPE_MAX", f"int value should be 1 to {most}")
        return int(given)


Handler = Callable[[State, ApiCall], Answer]


@dataclass(frozen=True, kw_only=True)
class RestRoute:
    """A handler and what it stands for."""

    method: str
    path: str
    handle: Handler
    free: bool
    """Whether it needs no token: those of interactions carry one in the path."""


ROUTES: list[RestRoute] = []


def route(method: str, path: str, *, free: bool = False) -> Callable[[Handler], Handler]:
    """Let a function answer these requests."""

    def add(handle: Handler) -> Handler:
        ROUTES.append(RestRoute(method=method, path=path, handle=handle, free=free))
        return handle

    return add
