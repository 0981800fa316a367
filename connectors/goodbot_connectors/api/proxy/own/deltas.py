# SPDX-License-Identifier: Apache-2.0
"""What an answer is made of while it is written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from goodbot.base.sampling import Filters
from goodbot.base.thoughts import Thought

from goodbot_connectors.api.proxy.dialects.shapes import ChatRequest, ChatResponse
from goodbot_connectors.api.proxy.dialects.tools import Part


@dataclass(frozen=True, kw_only=True, slots=True)
class End:
    """The whole answer. `said.finish` is `stop`, `length` or `tool_calls`."""

    said: ChatResponse
    raw: str | None = None
    """The text as the model wrote it, where that is known."""
    version: int | None = None
    filters: Filters | None = None
    """What it was drawn through, where that is not what was asked for."""
    form: str = ""
    temperature: float | None = None
    """Both as in `goodbot.api.server.Generated`."""
    prompt_count: int = 0
    count: int = 0
    """Tokens, as far as they were told."""


Delta = str | Part | Thought | End
__all__ = ["AnswerWriter", "Delta", "End", "Part", "ResponseHead"]


@dataclass(frozen=True, kw_only=True, slots=True)
class ResponseHead:
    """What every answer says of itself."""

    id: str
    """Unique, without a prefix."""
    model: str
    created: int
    """Seconds since the epoch."""
    asked: ChatRequest
    body: Mapping[str, Any]
    """The request."""


class AnswerWriter(Protocol):
    """Puts an answer into the words of one API."""

    def start(self) -> bytes:
        """What a stream begins with."""
        ...

    def more(self, piece: str | Part | Thought) -> bytes:
        """More of it. A thought goes into the field that the API has for it, never into the text."""
        ...

    def end(self, end: End) -> bytes:
        """What a stream ends with."""
        ...

    def failed(self, message: str) -> bytes:
        """What a stream ends with whose answer broke off: the API's own way to say that."""
        ...

    def whole(self, end: End) -> dict[str, Any]:
        """The answer at once, where it is not streamed."""
        ...
