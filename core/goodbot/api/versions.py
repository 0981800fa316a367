# SPDX-License-Identifier: Apache-2.0
"""All versions of the model, as an owner may see them: what a page of them shows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from goodbot.api.learnt import AnsweredTwice
from goodbot.api.overview import VersionRatings


@dataclass(frozen=True, kw_only=True, slots=True)
class VersionSeen:
    """One version, or the trainings on it that made none."""

    version: int | None
    """0: the base model; None: trainings that were refused."""
    parent: int
    depth: int
    """0: on the straight line; else so many lines stand left of it."""
    state: str
    """`answers`, `tried`, `waits`, `before` (the one that answers comes from it), `back` (rolled back),
    `imported`, `withdrawn`, `other` (of another model) or `refused`."""
    told: str = ""
    """Sentences that say why."""
    made_at: float | None = None
    """Seconds since the epoch; None for the base model."""
    made_of: str = ""
    """`32 rated answers of 2 people (20 good, 12 bad)`; empty where it is not known."""
    learnt: str = ""
    """`shorter (−38%)`; empty where nothing is proved, or owners are to choose without knowing it."""
    pinned: bool = False
    usable: bool = False
    """Its files are there, and it may answer."""
    export: str = ""
    """What writes it for other programs, typed at the bot's machine; empty: it is not to be had."""
    liked: VersionRatings | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class FeatureCompared:
    """One thing that was measured of the answers of two versions, in words."""

    name: str
    """`Answers with a list`."""
    first: str
    """`60%`, of the first version,"""
    second: str
    """and of the second."""
    change: str
    """`−48 points (95% interval −60 to −36 points)`."""
    clear: bool
    """Answers and ratings prove it; any other change may be chance."""


@dataclass(frozen=True, kw_only=True, slots=True)
class VersionsCompared:
    """Two versions beside each other, the older one first."""

    first: int
    second: int
    told: Sequence[str]
    """Sentences on what lies between them."""
    pairs: Sequence[AnsweredTwice] = ()
    """This person's own questions that both have answered, `before` by the first."""
    measured: str = ""
    """How `features` were measured, as sentences."""
    features: Sequence[FeatureCompared] = ()
    """What is clear first, then by the change; none of versions that owners are still to choose between."""


@dataclass(frozen=True, kw_only=True, slots=True)
class BlindPlace:
    """How often a version is chosen over the one that all are measured by; low and high bound 95 %."""

    version: int
    by: int
    share: float
    low: float
    high: float
    choices: int
    """In so many it was one of the two."""


@dataclass(frozen=True, kw_only=True, slots=True)
class BlindBase:
    """How often versions trained on a base model are chosen over it as it came; low and high bound 95 %.

    All versions of a base count as one here. Nobody is asked about two base models together.
    """

    model: str
    share: float
    low: float
    high: float
    choices: int
    """Between the base model as it came and a version of it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Versions:
    """The tree of versions, and two of them compared."""

    answers: str
    """Who answers: `v3 answers now.`"""
    held: bool
    """The version that answers is pinned: no other can answer."""
    seen: Sequence[VersionSeen]
    """The newest first, every version before its parent, the base model last."""
    compared: VersionsCompared | None = None
    asks: int = 0
    """Of so many answers this owner may say which version's is better, without knowing whose is whose."""
    places: Sequence[BlindPlace] = ()
    """By what owners chose so, the best first; of questions that are closed."""
    bases: Sequence[BlindBase] = ()
    """The same by base model, those that answered before too."""
