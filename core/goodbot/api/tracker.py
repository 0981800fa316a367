# SPDX-License-Identifier: Apache-2.0
"""The contract between the core and an experiment tracker."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Setting = str | int | float | bool | None


@dataclass(frozen=True, kw_only=True)
class TrackerSpec:
    """What the host must know of a tracker before it imports it."""

    name: str
    """The section `[tracking.NAME]` switches it on."""
    factory: str
    """`package.module:Class`, a `Tracker`; imported in a process of its own."""
    settings: type[Any]
    """A frozen dataclass; the config section is parsed into it."""
    requires: tuple[str, ...] = ()
    """Modules that must be importable, checked without importing them."""
    extra: str = ""
    """The extra of the distribution that brings `requires`."""
    secrets: tuple[str, ...] = ()
    """Environment variables that it gets where they are set; it gets no others of that kind."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TrackedRun:
    """What a tracker is told of the run that it is made for."""

    name: str
    """`run-7`; the same again where a run goes on after an interruption."""
    directory: Path
    """Where to write, unless the settings say otherwise; it exists."""
    about: Mapping[str, Setting]
    """How the run trains: model, backend, number of ratings, every training setting."""


class Tracker(ABC):
    """One run on one tracker. Its process ends with it, so blocking is fine; so is failing.

    Made with the settings of its section and the run; what it raises ends up as one line in the log.
    """

    def __init__(self, settings: Any, run: TrackedRun) -> None:
        self.settings = settings
        self.run = run

    @abstractmethod
    def log(self, step: int, numbers: Mapping[str, float]) -> None:
        """Record numbers of one optimizer step: `train/loss`, `train/kl`, …"""

    def spread(self, name: str, values: Sequence[float]) -> None:  # noqa: B027  few have a place for it
        """Record how numbers are spread, before the first step: `rewards`, `answer_seconds`.

        A tracker that has no place for that records nothing.
        """

    @abstractmethod
    def finish(self, state: str) -> None:
        """End the record of a run that is `activated`, `refused`, `failed`, `superseded` or `interrupted`."""
