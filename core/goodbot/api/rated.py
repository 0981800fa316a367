# SPDX-License-Identifier: Apache-2.0
"""Rated answers, as one person may see them: what a page of them asks for and shows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class RatedWanted:
    """Which rated answers are meant; None and empty say nothing."""

    since: float | None = None
    """When it was given, seconds since the epoch."""
    until: float | None = None
    """Before then."""
    place: str = ""
    """A connector; for owners also one chat of it: `connector:id`."""
    person: str = ""
    """For owners: who asked, rated or wrote something of it, `connector:id`."""
    rating: str = ""
    """`good`, `bad` or `tie`, by the mean of the ratings; for others than owners by their own."""
    version: str = ""
    """A number, `base`, or `others` for other models."""
    topic: str = ""
    """A word of the question, as `RatedTopic` has it."""
    text: str = ""
    """Words of the question or the answer, whatever their case."""
    turns: Sequence[str] = ()
    """One of these answers, where any is named."""
    words: bool = False
    """Somebody said why, or what the answer should have been."""
    left_out: bool = False
    """For owners: something that was said of it is left out."""
    after: str = ""
    """What the page before said it ends with."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RatedBy:
    """What one person thinks of an answer."""

    who: str
    """`connector:id`; empty: whoever asks for the page."""
    thumb: float | None
    stars: float | None
    at: float
    counts: bool = True


@dataclass(frozen=True, kw_only=True, slots=True)
class RatedWords:
    """What one person wrote of an answer."""

    who: str
    """As in `RatedBy`."""
    kind: str
    """`comment` or `better`."""
    text: str
    at: float
    counts: bool = True


@dataclass(frozen=True, kw_only=True, slots=True)
class RatedAnswer:
    """One rated answer."""

    turn: str
    connector: str
    place: str
    """The chat's id; empty for others than owners."""
    kind: str
    """`private` or `shared`."""
    asked_by: str
    """`connector:id`; empty for others than owners."""
    question: str
    answer: str
    at: float
    version: int
    answered_by: str
    """Another model that gave the answer; empty: ours."""
    ratings: Sequence[RatedBy]
    words: Sequence[RatedWords]
    left_out: bool = False
    """Something that was said of it is."""
    taught: Sequence[int] = ()
    """Versions that learnt from it."""
    why_not: str = ""
    """A sentence on why no training takes it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RatedTopic:
    """What some of the newest rated answers are about."""

    word: str
    """Their questions hold it."""
    answers: int
    bad: float
    """The share of them that is rated bad."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RatedTaught:
    """What one answer has taught."""

    told: str
    """In sentences."""
    version: int = 0
    """The newest version that learnt from it, if its words could be compared, else 0."""
    before: int = 0
    """The version that it went on from; 0: the base model."""
    tokens: Sequence[tuple[str, float]] = ()
    """Each token of the answer, and by how many nats that version finds it likelier."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RatedPage:
    """Some of them, the newest first."""

    answers: Sequence[RatedAnswer]
    after: str = ""
    """Where to go on looking; empty: that is all. There may be more though none is on this page."""
