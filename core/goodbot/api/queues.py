# SPDX-License-Identifier: Apache-2.0
"""Queues: answers that an owner has chosen for others to rate, as a page shows and changes them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class QueueShare:
    """Whom a queue is shared with."""

    kind: str
    """`all` who rate, `group` or `person`."""
    who: str = ""
    """`connector:id` of a person, or of a platform's group whose members rate."""


@dataclass(frozen=True, kw_only=True, slots=True)
class QueueWanted:
    """What an owner wants of a queue."""

    do: str
    """`make`, `close` or `open` (again)."""
    id: int = 0
    """Which one; of a new one nothing."""
    name: str = ""
    turns: Sequence[str] = ()
    """The answers of a new one."""
    newest: int = 0
    """In place of those: so many of the newest that nobody has rated."""
    shared: Sequence[QueueShare] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class QueueWaiting:
    """An open queue that is shared with whoever asks."""

    id: int
    name: str
    done: int
    """So many of its answers they have rated …"""
    answers: int
    """… of so many that they may see."""


@dataclass(frozen=True, kw_only=True, slots=True)
class QueueMade:
    """A queue as owners see it."""

    id: int
    name: str
    made_by: str
    """`connector:id`."""
    at: float
    closed: bool
    answers: int
    """Those that the owner who asks may see."""
    shared: Sequence[QueueShare]
    raters: Sequence[tuple[str, int]]
    """Who has rated how many of them, `connector:id`; 100 at most."""


@dataclass(frozen=True, kw_only=True, slots=True)
class QueuesSeen:
    """The queues, as one person may see them."""

    waiting: Sequence[QueueWaiting] = ()
    made: Sequence[QueueMade] = ()
    """For owners alone."""
    groups: Sequence[str] = ()
    """For owners: the groups that one can be shared with, `connector:id`."""
