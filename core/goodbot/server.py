"""The contract between the core and whatever serves the model (embedded today; others by plugin)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass
from pathlib import Path

from goodbot.events import Message

BASE = 0
"""The version number of the base model: no adapter."""


@dataclass(frozen=True, kw_only=True, slots=True)
class GenerateRequest:
    """One answer to make. `version` None means the active one at the time it starts."""

    messages: Sequence[Message]
    max_tokens: int
    temperature: float
    seed: int
    version: int | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Generated:
    """A whole answer. Token ids and log-probs are empty where the server cannot give them."""

    text: str
    version: int
    """The adapter version that wrote it; it never changes within one answer."""
    finish: str
    prompt_tokens: tuple[int, ...] = ()
    tokens: tuple[int, ...] = ()
    logprobs: tuple[float, ...] = ()


class Server(ABC):
    """One model server. Methods raise `ServerError`; `load` raises `AdapterError` for bad files."""

    @abstractmethod
    async def start(self) -> None:
        """Come up and answer with the base model."""

    @abstractmethod
    async def stop(self) -> None:
        """Go down; idempotent. Answers in flight are cut off."""

    @abstractmethod
    def generate(self, request: GenerateRequest) -> AsyncGenerator[str | Generated, None]:
        """Pieces of text as they come, then one `Generated`. Closing it early cancels."""

    @abstractmethod
    async def load(self, version: int, directory: Path) -> None:
        """Make a version ready under its own name, beside what is served."""

    @abstractmethod
    async def activate(self, version: int) -> None:
        """New requests go to this version; ones in flight finish on theirs."""

    @abstractmethod
    async def unload(self, version: int) -> None:
        """Forget a version that is not active."""

    @abstractmethod
    async def served(self) -> int:
        """The version that new requests would get, as the server itself says."""

    @abstractmethod
    def healthy(self) -> bool:
        """Whether it can answer now."""
