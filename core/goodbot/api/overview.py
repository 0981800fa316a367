# SPDX-License-Identifier: Apache-2.0
"""How far the bot is in learning, as one person may see it: what a page of it shows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from goodbot.api.learnt import AnsweredTwice


@dataclass(frozen=True, kw_only=True, slots=True)
class TrainingNow:
    """A training that goes on."""

    doing: str
    """`learning`, `checking`."""
    step: int
    steps: int
    """0: not known."""
    left: str
    """`2 min left`; empty: not known."""
    curve: Sequence[tuple[int, float]] = ()
    """The loss of each step so far, `(step, loss)`; of some steps where there are many."""


@dataclass(frozen=True, kw_only=True, slots=True)
class VersionRatings:
    """How the answers of a version were rated; low and high bound 95 % of the share."""

    version: int
    """0: the base model."""
    made_at: float | None
    """Seconds since the epoch; None for the base model."""
    active: bool
    good: int
    rated: int
    share: float
    low: float
    high: float


@dataclass(frozen=True, kw_only=True, slots=True)
class LearntCard:
    """What the version that answers has learnt."""

    version: int
    """0: the base model answers, and `told` says why."""
    told: str
    """Sentences."""
    pinned: bool = False
    pairs: Sequence[AnsweredTwice] = ()
    """This person's own questions of which the answers have changed most."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Overview:
    """What `status` says of learning; and what `why` and `adapters` say, to whoever may type those."""

    answers: str
    """Who answers: `v3 answers now.`"""
    ratings: int
    needed: int
    next: str
    """What the next training waits for, as a sentence."""
    paused: bool = False
    begun: bool = False
    """There is a training without a verdict: it goes on, or is paused."""
    training: TrainingNow | None = None
    lesson: LearntCard | None = None
    """None: this person may not ask `why`."""
    versions: Sequence[VersionRatings] = ()
    """Of which answers were rated, the oldest first; none for whoever may not list the versions."""
