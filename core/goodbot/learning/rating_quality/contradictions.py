# SPDX-License-Identifier: Apache-2.0
"""Whose ratings have begun to contradict: the others' of the same answers, or their own of before.

Both are a sequence of yes and no, and both are watched by the same test (Page's CUSUM, 1954):

    S(0) = 0,  S(n) = max(0, S(n-1) + log(p1/p0))              if the n-th contradicts
               S(n) = max(0, S(n-1) + log((1-p1)/(1-p0)))      if it does not

with p0 how often that happens to honest people, and p1 = (1 + p0) / 2 what is looked for. The alarm
is on while S ≥ log 10,000. For somebody who contradicts with probability p0 or less it takes 10,000
comparable ratings or more on average until it goes on (Lorden 1971), however often one looks.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import aiosqlite

from goodbot.store import vote_history
from goodbot.store.vote_history import Vote

FALSE_ALARM_EVERY = 10_000
"""Comparable ratings of an honest rater, on average, until a false alarm."""
_LIMIT = math.log(FALSE_ALARM_EVERY)
_TASTE = (0.25, 0.45)
"""Honest raters contradict each other in a quarter of what they both rate, at least and at most."""
_SECOND_THOUGHTS = 0.05
"""Of an honest rater's ratings, how many turn an old one of his own round."""
_OLD_SECONDS = 3600.0
"""Turning round what is younger is a correction."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Alarm:
    """Somebody's ratings contradict, in the stretch that has set off the alarm."""

    rater: str
    against: str
    """`others` or `own`."""
    count: int
    """Of the `of` comparable ratings in that stretch, how many contradict."""
    of: int
    usual: float
    """How many do so where all is well, as a share."""
    since: float
    """When the stretch began."""
    seq: int
    """The rating that set it off."""


async def alarmed(db: aiosqlite.Connection, scope: str) -> list[Alarm]:
    """Whose ratings contradict now."""
    return alarms(*await vote_history.votes(db, scope))


def alarms(labels: Sequence[Vote], history: Sequence[Vote]) -> list[Alarm]:
    """All that are on now. `labels` is what counts at present, `history` every rating, by `seq`."""
    return [*against_others(labels), *against_own(history)]


def against_own(history: Sequence[Vote]) -> list[Alarm]:
    """Those who turn round what they said themselves more than an hour before."""
    last: dict[tuple[str, str], Vote] = {}
    tried: defaultdict[str, list[tuple[Vote, bool]]] = defaultdict(list)
    for vote in history:
        before = last.get((vote.rater, vote.turn))
        last[vote.rater, vote.turn] = vote
        turned = before is not None and before.good != vote.good
        if before is None or (turned and vote.time - before.time >= _OLD_SECONDS):
            tried[vote.rater].append((vote, turned))
    found = (_watch(rater, "own", tried[rater], _SECOND_THOUGHTS)[0] for rater in sorted(tried))
    return [alarm for alarm in found if alarm]


def against_others(labels: Sequence[Vote]) -> list[Alarm]:
    """Those who say the opposite of what most others say of the same answer.

    Whoever does so most strongly is named, and the rest is compared again without them: who was
    only contradicted by them is cleared so. Of two who have nobody but each other to be compared
    with, nothing tells which is right, and both are named.
    """
    left, named = list(labels), list[Alarm]()
    uncleared: dict[str, Alarm] = {}
    while True:
        found = _contradicting(left)
        named += [alarm for rater, alarm in sorted(uncleared.items()) if rater not in found]
        on = {rater: alarm for rater, (alarm, _) in found.items() if alarm}
        if not on:
            return named
        worst = max(on, key=lambda rater: (found[rater][1], rater))
        named.append(on.pop(worst))
        left = [vote for vote in left if vote.rater != worst]
        uncleared = on


def _contradicting(labels: Sequence[Vote]) -> dict[str, tuple[Alarm | None, float]]:
    """Of each rater who shares answers with others: the alarm, if it is on, and the highest S."""
    good: defaultdict[str, int] = defaultdict(int)
    bad: defaultdict[str, int] = defaultdict(int)
    for vote in labels:
        (good if vote.good else bad)[vote.turn] += 1
    tried: defaultdict[str, list[tuple[Vote, bool]]] = defaultdict(list)
    opposed: defaultdict[str, int] = defaultdict(int)
    shared: defaultdict[str, int] = defaultdict(int)
    for vote in labels:
        same, other = good[vote.turn], bad[vote.turn]
        same, other = (same - 1, other) if vote.good else (other - 1, same)
        opposed[vote.rater] += other
        shared[vote.rater] += same + other
        if same != other:
            tried[vote.rater].append((vote, other > same))
    # Each pair of raters of one turn was counted from both its sides.
    pairs, differing = sum(shared.values()) // 2, sum(opposed.values()) // 2
    result: dict[str, tuple[Alarm | None, float]] = {}
    for rater, votes in tried.items():
        among, of = differing - opposed[rater], pairs - shared[rater]
        usual = min(max((among + 1) / (of + 4), _TASTE[0]), _TASTE[1])
        result[rater] = _watch(rater, "others", votes, usual)
    return result


def _watch(
    rater: str, against: str, tried: Sequence[tuple[Vote, bool]], usual: float
) -> tuple[Alarm | None, float]:
    """The alarm if it is on after the last vote, and the highest S on the way."""
    sought = (1 + usual) / 2
    up, down = math.log(sought / usual), math.log((1 - sought) / (1 - usual))
    score, highest, begun, crossed = 0.0, 0.0, 0, 0
    for number, (_, contradicts) in enumerate(tried):
        if not score:
            begun = number
        before = score
        # Held at twice the limit, so that it can be lived down.
        score = min(2 * _LIMIT, max(0.0, score + (up if contradicts else down)))
        highest = max(highest, score)
        if before < _LIMIT <= score:
            crossed = number
    if score < _LIMIT:
        return None, highest
    stretch = tried[begun:]
    alarm = Alarm(
        rater=rater,
        against=against,
        usual=usual,
        since=stretch[0][0].time,
        count=sum(contradicts for _, contradicts in stretch),
        of=len(stretch),
        seq=tried[crossed][0].seq,
    )
    return alarm, highest
