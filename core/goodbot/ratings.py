"""Rating events → labels → one reward a turn. Pure functions; no clock, no store.

A label is what one rater thinks of one turn now. It is a fold over the ledger that depends only
on the *set* of events: not on the order in which they arrived, nor on how often.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from goodbot.events import OrderKey, RatingKind


@dataclass(frozen=True, kw_only=True, slots=True)
class LedgerEvent:
    """One rating event of one rater on one turn, as the ledger holds it."""

    event_id: str
    order: OrderKey
    kind: RatingKind
    source: str = ""
    value: float | None = None
    retracts: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Label:
    """A rater's present opinion of a turn; `event_id` is the event that it comes from."""

    value: float
    event_id: str


def fold(events: Iterable[LedgerEvent]) -> Label | None:
    """The label that these events add up to, or None when nothing is rated any more.

    A RATE replaces its own source's earlier one; the latest live RATE of any source counts.
    A RETRACT that names an event kills exactly that one, whenever it arrived. One that names a
    source kills what that source said before it; one that names neither kills all before it.
    """
    unique = {event.event_id: event for event in events}
    killed = {event.retracts for event in unique.values() if event.retracts}
    sweeps: dict[str, tuple[OrderKey, str]] = {}
    for event in unique.values():
        if event.kind is RatingKind.RETRACT and not event.retracts:
            at = (event.order, event.event_id)
            sweeps[event.source] = max(sweeps.get(event.source, at), at)
    latest: dict[str, LedgerEvent] = {}
    for event in unique.values():
        if event.kind is not RatingKind.RATE or event.value is None:
            continue
        held = latest.get(event.source)
        if held is None or _at(held) < _at(event):
            latest[event.source] = event
    live = [
        event
        for event in latest.values()
        if event.event_id not in killed
        and not any(
            _at(event) < sweeps[source] for source in ("", event.source) if source in sweeps
        )
    ]
    if not live:
        return None
    winner = max(live, key=_at)
    assert winner.value is not None  # noqa: S101  filtered above
    return Label(value=winner.value, event_id=winner.event_id)


def _at(event: LedgerEvent) -> tuple[OrderKey, str]:
    return (event.order, event.event_id)


@dataclass(frozen=True, kw_only=True, slots=True)
class TurnRating:
    """One rater's label as a reward policy sees it. `value` lies in [-1, +1]."""

    value: float
    weight: float = 1.0
    rater: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class RewardPolicy:
    """How the labels of one turn become its reward.

    `fn` is pure and synchronous: it gets all labels of a turn and returns a reward in [-1, +1],
    or None when the turn should train nothing (a tie, say).
    """

    name: str
    fn: Callable[[Sequence[TurnRating]], float | None]
