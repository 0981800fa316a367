# SPDX-License-Identifier: Apache-2.0
"""The contract between the core and a part of `goodbot report`: what it is shown, and what it says.

A plugin registers a `ReportSpec`. For each report the core makes the part anew, shows it the answers page by
page, the newest first, and asks it in the end. So a part counts, and keeps no more than it will say.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from goodbot.api.labels import Opinion, majority
from goodbot.api.overview import VersionRatings
from goodbot.api.predicted import Predicted
from goodbot.api.sentences import Reason


@dataclass(frozen=True, kw_only=True, slots=True)
class ReportedAnswer:
    """One answer, with what people thought of it."""

    id: str
    at: float
    """When it was given, seconds since the epoch."""
    connector: str
    place: str
    """The chat's id."""
    shared: bool
    """Several people talk there."""
    version: int | None
    """0: the base model; None: another model gave it."""
    question: str
    answer: str
    """The beginning of it; so with the question."""
    length: int
    """Characters of the whole answer."""
    ratings: Mapping[str, Opinion]
    """By rater, `connector:id`."""
    stars: float | None = None
    """The mean of those that were given, from 1 to 5."""
    taught: Mapping[str, float] | None = None
    """By rater, what their rating weighed in what the live version has learnt; None: it taught nothing."""

    readable: bool = False
    """Whoever asks for the report may read it elsewhere: of others no word may be told."""

    seconds: float | None = None
    """How long somebody waited for all of it; None: not known."""

    filtered: str = ""
    """Why a content filter has kept it out of training, as `email, word`; empty: none has."""

    judged: float | None = None
    """What a judge has found of it while nobody has rated it, 1 or -1; None: nothing that counts."""

    @property
    def thumbs(self) -> dict[str, float]:
        """By rater, their thumb, or their stars where they gave no thumb: from -1 to 1."""
        return {who: one[0] if isinstance(one, list) else one for who, one in self.ratings.items()}

    @property
    def good(self) -> bool | None:
        """Whether more of its raters say so than say the opposite; None: it is a tie, or nobody has."""
        return majority(self.ratings.values())


@dataclass(frozen=True, kw_only=True, slots=True)
class FixedQuestion:
    """One question that is asked of each version: an owner's own, or one of two that differ in one thing."""

    text: str
    right: Sequence[str] = ()
    """A right answer holds one of these; empty: nobody says what is right."""
    about: str = ""
    """What the two differ in; empty: it is no half of a pair."""
    value: str = ""
    """What it says of that."""
    pair: int = 0
    """Which two belong together."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ReportedBot:
    """What a part may know beside the answers."""

    live: int
    """The version that answers; 0: the base model."""
    line: Sequence[int]
    """The live version and those that it comes from, the oldest first."""
    versions: Sequence[VersionRatings]
    """Of which answers were rated, the oldest first."""
    learnt: Mapping[int, int]
    """From how many answers a version has learnt, with all that it comes from."""
    answers: int
    """So many were shown."""
    more: bool
    """There are older ones, which were not."""
    memory: Mapping[int, int] = field(default_factory=dict[int, int])
    """By version, the bytes that its training held at most, as far as known."""
    questions: Sequence[FixedQuestion] = ()
    """What versions are asked in the same words each time."""
    said: Mapping[int, Mapping[str, str]] = field(default_factory=dict[int, Mapping[str, str]])
    """By version, what it said to them."""
    predicted: Predicted | Reason | None = None
    """What the reward model says, or why it says nothing; None: it is off, or has just begun."""
    language: str = ""
    """What whoever asks for the report reads; empty: English."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ReportSection:
    """What a part says."""

    lines: Sequence[str]
    """For people, under the part's title."""
    data: Mapping[str, Any]
    """The same for programs, as JSON takes it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ReportTold:
    """What a part has said, under its name and title."""

    name: str
    title: str
    lines: Sequence[str]
    data: Mapping[str, Any]


@dataclass(frozen=True, kw_only=True, slots=True)
class ReportSeen:
    """The report of a page: the one that was made last, and how far the next one is."""

    at: float | None = None
    """When it was made, seconds since the epoch; None: there is none."""
    parts: Sequence[ReportTold] = ()
    making: bool = False
    """Another one is being made now."""
    asking: bool = False
    """It asks the version that answers fixed questions first."""
    done: int = 0
    """Answers that it has looked at, or questions that it has asked,"""
    of: int = 0
    """of so many at most."""
    trouble: str = ""
    """Why the last one that was asked for could not be made, as a sentence."""


class ReportPart(ABC):
    """One part of one report. What it does is done in a thread."""

    @abstractmethod
    def add(self, answers: Sequence[ReportedAnswer]) -> None:
        """Take some more of the answers in."""

    @abstractmethod
    def told(self, bot: ReportedBot) -> ReportSection:
        """Say what it has seen; that was all."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ReportSpec:
    """A part that `goodbot report` offers."""

    name: str
    """As it is typed: small letters, digits and `-`."""
    title: str
    """What stands above it; one of ours is told in the reader's language."""
    factory: str
    """`MODULE:CLASS` of a `ReportPart`, which is made without arguments, or of its `settings`."""
    settings: type[Any] | None = None
    """A frozen dataclass that the section `[reports.NAME]` is parsed into; None: it takes none."""
