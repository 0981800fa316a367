# SPDX-License-Identifier: Apache-2.0
"""Rating events → labels → one reward a turn. Pure functions; no clock, no store.

A label is what one rater thinks of one turn now. It is a fold over the ledger that depends only
on the *set* of events: not on the order in which they arrived, nor on how often.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass

from goodbot.api.events import OrderKey, RatingKind

Opinion = float | list[float]
"""What one rater says of one turn, as JSON can hold it: a value in [-1, +1], or, where both were
given, `[thumb, stars]`."""

STARS = 5


def majority(opinions: Iterable[Opinion]) -> bool | None:
    """Whether more of them are good than bad; None: it is a tie, or there are none."""
    thumbs = [one[0] if isinstance(one, list) else one for one in opinions]
    sign = sum((one > 0) - (one < 0) for one in thumbs)
    return sign > 0 if sign else None


def star_value(stars: int) -> float:
    """One to five stars (or a Likert scale's points) in [-1, +1]: (stars - 3) / 2."""
    return (stars - 3) / 2


def is_stars(source: str) -> bool:
    """Whether a rating event gives stars, not a thumb: its source is `stars` or `stars:…`."""
    return source == "stars" or source.startswith("stars:")


@dataclass(frozen=True, kw_only=True, slots=True)
class LedgerEvent:
    """One rating event of one rater on one turn, as the ledger holds it."""

    event_id: str
    order: OrderKey
    kind: RatingKind
    source: str = ""
    value: float | None = None
    retracts: str = ""
    stars: bool = False
    """It gives stars (`is_stars` of the source as the platform's connector named it)."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Label:
    """A rater's present opinion of a turn; `event_id` is the newest event that it comes from."""

    value: float
    """The thumb, or the stars where there is no thumb, or the mean of the outcomes where neither is."""
    event_id: str
    stars: float | None = None
    """The stars that were given beside a thumb."""


def fold(events: Iterable[LedgerEvent], *, killed: Collection[str] = ()) -> Label | None:
    """The label that these events add up to, or None when nothing is rated any more.

    A RATE replaces its own source's earlier one. Thumbs and stars stand side by side: of each of
    the two the latest live RATE of any source counts, and taking one back leaves the other.
    An OUTCOME, too, replaces its own source's earlier one; several sources (environments, tests)
    stand side by side, and their mean counts where the same rater has given neither thumb nor
    stars: whoever looked at the answer knows more than what was measured.
    A RETRACT that names an event kills exactly that one, whenever it arrived. One that names a
    source kills what that source said before it; one that names neither kills all before it.
    `killed`: ids of events that were taken back by name, where those that name them are not given.
    """
    in_order = sorted({event.event_id: event for event in events}.values(), key=_at)
    live = _live(in_order, killed)
    rated = [event for event in live if event.kind is RatingKind.RATE]
    return _rated(rated) if rated else _measured(live)


def _live(in_order: Sequence[LedgerEvent], before: Collection[str]) -> list[LedgerEvent]:
    """What still stands: the last word of each source, unless it was taken back."""
    killed = {*before, *(event.retracts for event in in_order if event.retracts)}
    said: dict[tuple[RatingKind, str], LedgerEvent] = {}
    for event in in_order:
        if event.kind is RatingKind.RETRACT and not event.retracts:
            said = {key: one for key, one in said.items() if event.source not in ("", one.source)}
        elif event.kind in (RatingKind.RATE, RatingKind.OUTCOME) and event.value is not None:
            said[event.kind, event.source] = event
    return [event for event in said.values() if event.event_id not in killed]


def _rated(rated: Sequence[LedgerEvent]) -> Label:
    """The last thumb and the last stars side by side."""
    thumb = max((event for event in rated if not event.stars), key=_at, default=None)
    stars = max((event for event in rated if event.stars), key=_at, default=None)
    headline = thumb or stars
    assert headline is not None  # noqa: S101  some event is live
    assert headline.value is not None  # noqa: S101  filtered above
    return Label(
        value=headline.value,
        event_id=max((event for event in (thumb, stars) if event), key=_at).event_id,
        stars=stars.value if thumb and stars else None,
    )


def _measured(outcomes: Sequence[LedgerEvent]) -> Label | None:
    """What programs have measured: the mean over their sources, in [-1, +1]."""
    if not outcomes:
        return None
    values = [event.value or 0.0 for event in sorted(outcomes, key=_at)]
    return Label(value=statistics.fmean(values), event_id=max(outcomes, key=_at).event_id)


def _at(event: LedgerEvent) -> tuple[OrderKey, str]:
    return (event.order, event.event_id)


def reaction_values(good: Iterable[str], bad: Iterable[str], key: Callable[[str], str]) -> dict[str, float]:
    """Say what each reaction of the settings is worth.

    Args:
        good: Reactions that mean good.
        bad: Reactions that mean bad. One that is among both means bad.
        key: Makes of a reaction what the platform calls it.

    Returns:
        1 or -1 by that name.
    """
    return {key(one): 1.0 for one in good} | {key(one): -1.0 for one in bad}
