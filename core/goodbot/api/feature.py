# SPDX-License-Identifier: Apache-2.0
"""The contract between the core and a feature: what runs beside the bot, and only looks on.

A plugin registers a `FeatureSpec`; the section `[features.NAME]` switches it on. A feature may answer over
HTTP, hear the `on_*` hooks, have a command, and work as long as goodbot runs. It decides nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from goodbot.base.clock import Clock
from goodbot.base.errors import UsageError
from goodbot.config.secrets import Secrets

if TYPE_CHECKING:
    from aiohttp.web import AbstractRouteDef


@dataclass(frozen=True, kw_only=True, slots=True)
class Figures:
    """How a running goodbot is, in numbers: nothing of it is what people wrote, or who they are."""

    parts: Mapping[str, bool]
    """Whether each part works, as `/readyz` has it: the store, the model, each connector."""
    started_at: float
    """Seconds since the epoch."""
    version: int
    """The version that answers; 0: the base model."""
    good: int
    """Of its answers, how many are liked;"""
    rated: int
    """so many are rated."""
    ratings: int
    """Rated answers that wait for the next training;"""
    needed: int
    """for so many it waits."""
    training: bool
    """Whether a training goes on."""
    paused: bool
    """Whether somebody has switched training, or goodbot, off."""
    restarts: int
    """How often the model's process was started again, or a server connected anew."""
    refused: Mapping[int, int]
    """Requests over HTTP that were told to come again later, by status: 429, 503."""
    inbox: int
    """Messages and presses that wait for an answer."""
    commits: int
    """Changes that wait for the database."""
    database: int
    """Its bytes, with its log."""
    disk_free: int
    """Bytes."""
    disk_reserve: int
    """With fewer bytes free, only ratings are kept."""


@dataclass(frozen=True, kw_only=True, slots=True)
class HappenedWanted:
    """What a feature wants to hear of, and how much of it."""

    kinds: Sequence[str]
    """Of `rating`, `training` (one that has ended) and `version` (one that was made)."""
    private_chats: bool = False
    """Also ratings of answers in private chats, where who talks there has agreed to share them."""
    words: bool = False
    """With what people wrote: the question, the answer, and what was said of it; keys and tokens masked."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Happened:
    """One thing that has happened, as it is known now."""

    id: str
    """The same whenever it is asked for."""
    kind: str
    at: float
    """Seconds since the epoch."""
    data: Mapping[str, Any]
    """As JSON takes it. `person` of a rating is `connector:id`, for all accounts of a person the same."""


class FeatureHost(Protocol):
    """What a feature may ask of the core."""

    clock: Clock
    secrets: Secrets

    async def figures(self) -> Figures:
        """Return how goodbot is, now."""
        ...

    async def happened(self, wanted: HappenedWanted, mark: str) -> tuple[Happened | None, str]:
        """Return the next thing that happened after a mark, and the mark behind it; None: nothing yet.

        The empty mark is now. What people have forgotten is not there. Keep a mark once you have done
        what you do; until then the same thing comes again.
        """
        ...

    async def waiting(self, wanted: HappenedWanted, mark: str) -> int:
        """Return how many such things there are after a mark."""
        ...

    async def get(self, key: str) -> str | None:
        """Return a small durable value of the feature's own; None where there is none."""
        ...

    async def set(self, key: str, value: str) -> None:
        """Store a small durable value; returns after the commit. It is in no backup."""
        ...

    async def predict(self) -> str:
        """Run the reward model anew, where ratings have come; returns why it did not go, as a clause.

        A child reads answers with the model for as long as it takes. What it says is in `ReportedBot`, and
        nowhere where anything is learnt.
        """
        ...

    def trouble(self, part: str, text: str) -> None:
        """Say to owners and in `status` why a part of the feature does not work; `""` takes it back."""
        ...


class Feature:
    """Made with its host and the settings of its section. What it has of the `on_*` hooks is called."""

    def __init__(self, host: FeatureHost, settings: Any) -> None:
        self.host = host
        self.settings = settings

    def routes(self) -> Sequence[AbstractRouteDef]:
        """List what is answered over HTTP. Nobody but the feature asks who it is that wants to know."""
        return ()

    async def run(self) -> None:
        """Run until cancelled; what is raised is told in `status` and the log, and it is run again."""

    async def asked(self, words: Sequence[str]) -> tuple[str, Mapping[str, Any]]:
        """Answer the feature's own command, in words and for `--json`. Raises UsageError, GoodbotError."""
        raise UsageError("there is nothing to ask")


@dataclass(frozen=True, kw_only=True)
class FeatureSpec:
    """What the host must know of a feature before it imports it."""

    name: str
    """The section `[features.NAME]` switches it on."""
    factory: str
    """`package.module:Class`, a `Feature`."""
    settings: type[Any]
    """A frozen dataclass; the config section is parsed into it."""
    answers: bool = False
    """Whether it has routes, so that goodbot must listen for it."""
    secrets: tuple[str, ...] = ()
    """Environment variables that it may read, and no others of that kind. It does not run without them."""
    requires: tuple[str, ...] = ()
    """Modules that must be importable, checked without importing them."""
    extra: str = ""
    """The extra of the distribution that brings `requires`."""
