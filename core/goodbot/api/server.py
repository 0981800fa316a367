# SPDX-License-Identifier: Apache-2.0
"""The contract between the core and whatever serves the model.

A server plugin registers a `ServerSpec`; `[serving] server` names the one that answers, by default
`embedded`, a process of our own. Drivers that ship with goodbot lie in `goodbot.inference.servers`. Each is
held to `goodbot.testing.ServingContract`.

A version is served under a name of its own (`goodbot-v7`), never under one that is used again: a
server's caches know adapters by name. So a swap is: load under the new name, see that it answers,
move the pointer, send new requests there, let those in flight end, unload the old name.
"""

from __future__ import annotations

import contextlib
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from goodbot.api.events import Message
from goodbot.base.sampling import UNFILTERED, Filters
from goodbot.base.thoughts import Thought

if TYPE_CHECKING:
    from goodbot.api.backend import BackendSpec
    from goodbot.api.completions import FarSide
    from goodbot.api.model import ResolvedModel
    from goodbot.api.sampler import GivenAnswer
    from goodbot.base.clock import Clock
    from goodbot.config.secrets import Secret

BASE = 0
"""The version number of the base model: no adapter."""


class AdapterFormat(StrEnum):
    """What a server takes an adapter as. `NONE`: it takes none, and answers with its own model."""

    NONE = "none"
    PEFT = "peft"
    MLX = "mlx"
    GGUF = "gguf"
    GGUF_MODEL = "gguf-model"
    """The base with the adapter merged in, for a server that takes nothing but whole models."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ServerSpec:
    """What the host must know of a driver before it imports it."""

    name: str
    factory: str
    """`package.module:Class`, a `Server` that is made with `(settings, ServerParts)`."""
    settings: type[Any]
    """A frozen dataclass; the config section `[serving.settings]` is parsed into it."""
    adapters: AdapterFormat
    requires: tuple[str, ...] = ()
    """Modules that must be importable, checked without importing them."""
    extra: str = ""
    """The extra of the distribution that brings `requires`."""
    url: str = ""
    """Where it usually listens; `[serving] url` says where it does. Empty: no server of the owner's."""
    survey: str = ""
    """`package.module:Class`, a `goodbot.api.survey.Survey`: how it is found here, and examined."""


@dataclass(frozen=True, kw_only=True)
class ServerParts:
    """What a driver is given. It reaches nothing else of the core."""

    model: ResolvedModel
    """The base: the weights that are trained here, which the server serves a copy of."""
    backend: BackendSpec
    url: str
    """Of `[serving] url`, checked; empty for a driver that has none."""
    served_model: str
    """Of `[serving] model`: the base's name on the server; empty: the only one that it offers."""
    key: Secret
    """`GOODBOT_SERVER_KEY`, for a server that asks for one; falsy without."""
    home: Path
    """A directory of the driver's own, under the state directory; it need not exist yet."""
    clock: Clock
    environ: Mapping[str, str]
    """For child processes: without tokens."""
    adapters: Path
    """Where the adapters lie that it is asked to load, each in a directory of its own."""
    path_on_server: str
    """Where the server, in its container or on its host, sees our adapters' directory; empty: as we do."""
    convert: Callable[[Path, AdapterFormat], Awaitable[Path]]
    """A verified adapter directory (PEFT) in another format, made once. Raises AdapterError."""
    drawn_with: Mapping[str, float] = field(default_factory=dict[str, float])
    """What the config itself says of how answers are drawn, by name; a request has all of it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class GenerateRequest:
    """One answer to make. `version` None means the active one at the time it starts."""

    messages: Sequence[Message]
    max_tokens: int
    temperature: float
    seed: int
    version: int | None = None
    filters: Filters = UNFILTERED
    """What is done to the distribution beside the temperature; a server does what it can."""
    conversation: str = ""
    """Opaque; the same for whatever one person says in one place. A server that keeps caches of ours keeps
    one for the next answer of the same conversation, and for nobody else."""
    thinking: bool = False
    """Whether it may think first, where the model's template lets one choose."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Generated:
    """A whole answer. Token ids and log-probs are empty where the server cannot give them."""

    text: str
    version: int
    """The adapter version that wrote it; it never changes within one answer."""
    finish: str
    prompt_tokens: tuple[int, ...] = ()
    """All that the answer was written after: where it thought, the thought, too."""
    tokens: tuple[int, ...] = ()
    logprobs: tuple[float, ...] = ()
    """One a token, of the distribution that it was drawn from: at the request's temperature, filtered."""
    thought: str = ""
    """What the model thought before; no part of `text`."""
    thought_tokens: int = 0
    """So many of the last `prompt_tokens` are the thought's."""
    lifts: tuple[float, ...] = ()
    """By how many nats the filters made each token likelier than the temperature alone does: `logprobs` minus
    `lifts` are the policy's own. Zeros where the server tells these. Empty where nothing was filtered, or
    the server does not tell."""
    filters: Filters | None = None
    """What was applied, where that is not what the request asked for."""
    form: str = ""
    """In which of `goodbot.api.manners.FORMS` the server got the prompt; empty: as it is."""
    temperature: float | None = None
    """What was applied, where that is not what the request asked for."""


Piece = str | Thought | Generated
"""What an answer is made of while it comes: text, what the model thinks before, and at the end the whole."""


class Server(ABC):
    """One model server. Methods raise `ServerError`; `load` raises `AdapterError` for bad files.

    Many answers may be under way at once, and loading and activating do not disturb them: each ends
    on the version that it began with.
    """

    @abstractmethod
    async def start(self) -> None:
        """Come up and answer with the base model."""

    @abstractmethod
    async def stop(self) -> None:
        """Go down; idempotent. Answers in flight are cut off. A server of the owner's goes on."""

    @abstractmethod
    def generate(self, request: GenerateRequest) -> AsyncGenerator[Piece, None]:
        """Yield pieces of thought and text as they come, then one `Generated`. Closing it early cancels."""

    @abstractmethod
    async def load(self, version: int, directory: Path) -> None:
        """Make a version ready under its own name, beside what is served; idempotent.

        `directory` holds the verified adapter, PEFT layout. For a server that takes none: AdapterError.
        """

    @abstractmethod
    async def activate(self, version: int) -> None:
        """Send new requests to this version; ones in flight finish on theirs."""

    @abstractmethod
    async def unload(self, version: int) -> None:
        """Forget a version that is not active, once the answers that it is writing are done.

        What was never loaded is ignored. Nobody waits for this: a `load` of the same version meanwhile
        succeeds at once, and the version stays.
        """

    @abstractmethod
    async def served(self) -> int:
        """Ask the server itself which version new requests would get."""

    @abstractmethod
    def healthy(self) -> bool:
        """Say whether it can answer now."""

    async def first_tokens(
        self, messages: Sequence[Message], *, version: int, top: int
    ) -> Mapping[str, float]:
        """Say how an answer may begin: its likeliest first tokens, at temperature 1.

        The server computes it anew, and never takes it out of a cache of another version.

        Args:
            messages: The prompt, oldest message first.
            version: The version that is asked; 0 is the base model.
            top: How many tokens to tell; fewer where the server tells fewer.

        Returns:
            The log-probability of each in nats, by its text. Empty where the server tells none: then
            nothing can be proven of it.
        """
        return {}

    async def score(self, given: GivenAnswer, *, version: int) -> Sequence[tuple[str, float]]:
        """Say how likely a version finds each token of an answer that was given, as `ScoresAnswers.score`.

        Args:
            given: The answer.
            version: A version that is loaded; 0 is the base model.

        Returns:
            The text of each token and its log-probability. Empty where the server tells none.
        """
        return ()

    def far_side(self, request: GenerateRequest) -> AbstractAsyncContextManager[FarSide | None]:
        """Say where a program may be sent on to with a question like `request`, whose `messages` count.

        For as long as the block lasts the version stays, as for an answer. None, by default: it has no
        HTTP API that speaks OpenAI's chat completions. Raises ServerError.
        """
        return contextlib.nullcontext()

    async def reload(self, version: int, directory: Path) -> None:
        """Put a version right that the server turned out not to serve; new requests then get it again.

        Under a fresh name where it has names. By default: unloaded, where that can be, and loaded.
        """
        await self.load(version, directory)
        await self.activate(version)

    async def make_room(self) -> bool:
        """Give the model's memory back while a training needs it; whether it did.

        Until `come_back`, `generate` waits. A server that cannot (or is somewhere else) returns False.
        It may be cancelled; `come_back` follows then, too.
        """
        return False

    async def come_back(self) -> None:  # noqa: B027  most servers never give room
        """Answer again after `make_room`, with the version that was active."""

    def trouble(self) -> str:
        """Say what is wrong with it now, for `status`, and what to do about it; empty: nothing."""
        return ""
