# SPDX-License-Identifier: Apache-2.0
"""Our own model, for a connector that hands on what other programs ask (`ConnectorHost.model`).

There are two ways. Where a server of the owner's answers over HTTP, `far_side` says where and under which
name, and the connector asks it itself; else `answer` streams text. Both follow the rules of answers in
chats: the active version, or the one that is tried in that conversation; what has begun on a version ends
on it; while a training has the model's memory, questions wait.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from goodbot.api.events import ChannelRef, Message, UserRef
from goodbot.api.marks import ANY, Pattern
from goodbot.api.server import Piece
from goodbot.base.errors import ServerError
from goodbot.base.sampling import FILTERS, UNFILTERED, Filters
from goodbot.config.secrets import Secret

if TYPE_CHECKING:
    from goodbot.api.manners import Manners

_T = TypeVar("_T")
ALIAS = "goodbot"
"""What the model is called by those who want whatever is live; `goodbot-v7` is one version of it."""
TOOLS = "tools"
"""The first message of a prompt may carry the declarations of the tools that the model was shown, as
`tools` of OpenAI's API has them: with them a stored prompt is whole."""
FORM = "form"
"""And in which form a server got it that refuses it as it is (`goodbot.api.server.Generated.form`)."""


@dataclass(frozen=True, kw_only=True, slots=True)
class CompletionRequest:
    """What a program asks for a person. `channel` is its conversation, `thread` and all."""

    messages: Sequence[Message]
    """In the OpenAI shape, each `content` a text; the first may carry `TOOLS`."""
    user: UserRef
    channel: ChannelRef
    max_tokens: int = 0
    """0: as configured."""
    temperature: float | None = None
    """None: as configured."""
    filters: Mapping[str, float] = field(default_factory=dict[str, float])
    """Fields of `goodbot.base.sampling.Filters` that it asks for; the others are as configured."""
    seed: int | None = None
    version: int | None = None
    """None: the one that answers in this conversation."""


@dataclass(frozen=True, kw_only=True, slots=True)
class FarSide:
    """A server that answers `POST {url}/v1/chat/completions` with one version of our model."""

    title: str
    url: str
    key: Secret
    version: int
    fields: Mapping[str, Any]
    """What a request needs to reach that version and to be drawn as the question is; beside
    `model` a program may have its own way with all of them. `messages` is the question's."""
    tells: bool
    """Whether `fields` ask for token ids and log-probs that are those of the request's temperature."""
    filters: Filters = UNFILTERED
    """What an answer to these fields is drawn through, as far as the server takes them."""
    manners: Manners | None = None
    """What the server refuses; what is learnt of it is put there (see `Attempt`, beside `Manners`)."""
    own: bool = False
    """Whether those log-probs are the policy's own, of before `filters`."""
    takes: Collection[str] = FILTERS
    """Filters that a program may ask for there."""
    template: str = ""
    """Its model's chat template, which may begin a thought that no parser there takes out of the text; empty
    where that is not at hand."""
    marks: Pattern = ANY
    """What its model's template writes: to be broken (`goodbot.api.marks`) in all that goes there."""


class OwnModel(ABC):
    """The model that answers in chats."""

    @property
    @abstractmethod
    def name(self) -> str:
        """Of the base model."""

    @property
    @abstractmethod
    def temperature(self) -> float:
        """As configured."""

    @property
    def filters(self) -> Filters:
        """As configured."""
        return UNFILTERED

    @abstractmethod
    def admit(self, user: UserRef, channel: ChannelRef) -> bool:
        """Whether this person may ask here."""

    @abstractmethod
    async def versions(self) -> Collection[int]:
        """Those that can be asked for: the base (0), and what is live or tried. The last is live."""

    @abstractmethod
    async def calls_tools(self) -> bool:
        """Whether `answer` shows the model its tools and its calls come as `<tool_call>{…}</tool_call>`."""

    @abstractmethod
    def answer(self, question: CompletionRequest) -> AsyncGenerator[Piece, None]:
        """Pieces of thought and text, then one `Generated`. Closing it early cancels.

        Raises ServerError, and UsageError for what is too long for the model.
        """

    async def until_answered(self, ask: Callable[[], Awaitable[_T]]) -> _T:
        """What `ask` returns, which reads an answer; it is called again where the model ended under it.

        So only for as long as nobody has seen a part of that. Raises what it raises.
        """
        return await ask()

    @abstractmethod
    def far_side(self, question: CompletionRequest) -> AbstractAsyncContextManager[FarSide | None]:
        """Where to ask instead, for as long as the block lasts; None: nowhere, so use `answer`.

        Raises ServerError.
        """


class NoModel(OwnModel):
    """There is none; whoever asks is told so."""

    @property
    def name(self) -> str:
        return ""

    @property
    def temperature(self) -> float:
        return 1.0

    def admit(self, user: UserRef, channel: ChannelRef) -> bool:
        return True

    async def versions(self) -> Collection[int]:
        return ()

    async def calls_tools(self) -> bool:
        return False

    async def answer(self, question: CompletionRequest) -> AsyncGenerator[Piece, None]:
        raise ServerError("there is no model here that could answer")
        yield ""

    def far_side(self, question: CompletionRequest) -> AbstractAsyncContextManager[FarSide | None]:
        return nullcontext()


def with_tools(messages: Sequence[Message], tools: Sequence[Any]) -> list[Message]:
    """A prompt that carries the tools that go with it; an empty system message where there is no message."""
    if not tools:
        return list(messages)
    first, *rest = messages or ({"role": "system", "content": ""},)
    return [{**first, TOOLS: list(tools)}, *rest]


def without_tools(messages: Sequence[Message]) -> tuple[list[Message], list[Any]]:
    """A prompt as APIs want it: its messages, and its tools apart."""
    messages, _ = without_form(messages)
    if not messages or TOOLS not in messages[0]:
        return list(messages), []
    first, *rest = messages
    tools = first[TOOLS]
    plain = {key: value for key, value in first.items() if key != TOOLS}
    return [plain, *rest], list(tools) if isinstance(tools, list) else []  # pyright: ignore[reportUnknownArgumentType]


def with_form(messages: Sequence[Message], form: str) -> list[Message]:
    """A prompt that says in which form it was sent; without one, as it is."""
    plain, _ = without_form(messages)
    return [{**plain[0], FORM: form}, *plain[1:]] if form and plain else plain


def without_form(messages: Sequence[Message]) -> tuple[list[Message], str]:
    """A prompt as it was meant, and the form in which it was sent."""
    if not messages or FORM not in messages[0]:
        return list(messages), ""
    first, *rest = messages
    plain = {key: value for key, value in first.items() if key != FORM}
    return [plain, *rest], str(first[FORM])
