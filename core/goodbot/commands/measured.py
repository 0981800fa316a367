# SPDX-License-Identifier: Apache-2.0
"""What trainings have measured of the answers of two versions, for a page that has both beside each other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import aiosqlite

from goodbot.api.learnt import LENGTH, Learnt, Shift
from goodbot.api.server import BASE
from goodbot.api.texts import beside, figure, joined, percent, say
from goodbot.api.versions import FeatureCompared
from goodbot.learning.adapters import lineage
from goodbot.store import comparisons, shifts
from goodbot.store.adapters import AdapterRow

_Key = tuple[str, str]
"""A feature, and of a first word which one."""


async def measured(
    db: aiosqlite.Connection, rows: Sequence[AdapterRow], first: int, second: int, language: str
) -> tuple[str, list[FeatureCompared]]:
    """Compare what was measured of two versions.

    One training measures its version and the one before by the same questions. What lies further apart was
    measured by different ones, so of that nothing is called clear.

    Args:
        db: The database.
        rows: All versions.
        first: The older one of the two.
        second: The newer one.
        language: What the reader reads.

    Returns:
        How it was measured, and each feature. Nothing of a version that rests on what was taken back, or
        that its owners are asked about: they would know which answer is whose.
    """
    known = {row.version: row for row in rows}
    for row in (known[version] for version in (first, second) if version != BASE):
        if row.tainted or (row.run and await comparisons.asks(db, row.run)):
            return "", []
    later = await shifts.of(db, known[second].run)
    if later is None:
        return "", []
    if known[second].parent == first:
        return _at_once(later, language)
    if first != BASE:
        earlier = await shifts.of(db, known[first].run)
        old = {_key(one): one.after for one in earlier.known} if earlier else {}
    else:
        trained = [row for row in lineage.ancestors(rows, second) if row.parent == BASE]
        began = await shifts.of(db, trained[0].run) if trained else None
        old = {_key(one): one.before for one in began.known} if began else {}
    return _apart(old, {_key(one): one.after for one in later.known}, language)


def _key(one: Shift) -> _Key:
    return one.feature, one.word


def _at_once(learnt: Learnt, language: str) -> tuple[str, list[FeatureCompared]]:
    """Both by the same questions."""
    seen = [one for one in learnt.known if one.before or one.after]
    seen.sort(key=lambda one: (not one.named, -abs(one.change)))
    told = [_row(_key(one), one.before, one.after, one, language) for one in seen]
    how = say("measured_both", language, answers=learnt.answers, questions=learnt.questions)
    if not told:
        return "", []
    of_its_own = say("measured_seen", language) if learnt.trained else ""
    return joined(language, how, of_its_own, say("measured_chance", language)), told


def _apart(
    old: Mapping[_Key, float], new: Mapping[_Key, float], language: str
) -> tuple[str, list[FeatureCompared]]:
    """Each by questions of its own."""
    told = [_row(key, before, after, None, language) for key, before, after in _changed(old, new)]
    return (say("measured_apart", language), told) if told else ("", [])


def _changed(old: Mapping[_Key, float], new: Mapping[_Key, float]) -> Iterator[tuple[_Key, float, float]]:
    """The largest change first; a length has to have been there."""
    both = [(key, old[key], new[key]) for key in new if key in old and (old[key] or new[key])]
    both = [one for one in both if one[0][0] != LENGTH or one[1] >= 1]
    yield from sorted(both, key=lambda one: -abs(_change(*one)))


def _change(key: _Key, before: float, after: float) -> float:
    """A part of the length, else of all answers."""
    return (after - before) / before if key[0] == LENGTH else after - before


def _row(key: _Key, before: float, after: float, one: Shift | None, language: str) -> FeatureCompared:
    """Of a `Shift` with its interval."""
    feature, word = key
    values = [figure(x, language) if feature == LENGTH else percent(x, language) for x in (before, after)]
    changes = [one.change, one.low, one.high] if one else [_change(key, before, after)]
    signed = [percent(x, language, signed=True) for x in changes]
    change = signed[0]
    if feature != LENGTH:
        signed = [f"{100 * x:+.0f}".replace("-", "−") for x in changes]
        change = say("measured_points", language, change=signed[0])
    if one:
        interval = "interval_percent" if feature == LENGTH else "interval_points"
        change = beside(change, say(interval, language, low=signed[1], high=signed[2]), language)
    return FeatureCompared(
        name=say(f"measured_{feature}", language, word=word),
        first=values[0],
        second=values[1],
        change=change,
        clear=one is not None and one.named,
    )
