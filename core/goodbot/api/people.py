# SPDX-License-Identifier: Apache-2.0
"""Everybody whom the bot knows, as its owners see them: what a page of them asks for and shows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

NO_ROLE = "none"
"""In `PeopleWanted.role`: those without one."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PeopleWanted:
    """Who is meant; empty says nothing."""

    text: str = ""
    """A part of an id, of a place or of a group, whatever its case."""
    role: str = ""
    """`owner`, `rater`, `talker` or `none`."""
    after: str = ""
    """What the page before said it ends with."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PersonAsking:
    """A stranger who has written in private, and whom no owner has answered."""

    who: str
    """`connector:id`."""
    name: str
    """What they call themselves; empty where goodbot was started since."""


@dataclass(frozen=True, kw_only=True, slots=True)
class AccountSeen:
    """One account of a person."""

    who: str
    """`connector:id`."""
    role: str
    """`owner`, `rater`, `talker`, or empty."""
    granted: Sequence[str]
    """Where each of its roles comes from, as sentences."""
    grants: bool
    """Whether a role can be given to it: it is of a platform that is on, and has no other's rights."""
    unlink: str = ""
    """The command that parts it from the others, for whoever asks for the page; empty: there is none."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RaterAgreement:
    """How far somebody agrees with most others who rated the same answers."""

    kappa: float
    """Cohen's: 1 always, 0 as often as by chance."""
    answers: int
    """So many answers were compared."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PersonSeen:
    """One person, with all their accounts."""

    id: str
    """One of the accounts, the same from page to page."""
    role: str
    """The highest of their accounts."""
    you: bool
    accounts: Sequence[AccountSeen]
    groups: Sequence[str]
    """The platforms' groups that make them a rater."""
    ratings: int
    """Those that count."""
    left_out: int
    """Answers they rated that an owner has left out."""
    taught: float | None
    """Their share of what this model has learnt from; None where it has learnt from nothing."""
    agreement: RaterAgreement | None
    """None where too few answers tell."""
    alarms: Mapping[str, str]
    """By whom their ratings disagree with now (`own` older ones, `others`), a sentence on it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PeoplePage:
    """Some of them, whoever disagrees with others first, then by role."""

    asking: Sequence[PersonAsking]
    """The newest of those who ask, on the first page."""
    ask: int
    """How many ask in all."""
    people: Sequence[PersonSeen]
    count: int
    """How many match in all."""
    after: str = ""
    """Where to go on looking; empty: that is all."""
