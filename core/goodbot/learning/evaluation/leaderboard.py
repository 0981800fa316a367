# SPDX-License-Identifier: Apache-2.0
"""How the versions stand by blind choices: Bradley and Terry's model, with 95 % intervals. Pure.

A version is chosen over another with chance 1 / (1 + exp(b − a)), of their strengths a and b. "The same" is
half a choice for each, and each two that were compared get half a choice more, so that who never lost stays
finite: of two versions alone that is ln((won + ½) / (lost + ½)), its variance 1 / (won + ½) + 1 / (lost + ½).
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from statistics import NormalDist

from goodbot.api.versions import BlindBase, BlindPlace
from goodbot.store.comparisons import Sum, Tally

NEWEST = 40
"""So many comparisons count: the time grows with the cube of the versions."""
_Z95 = NormalDist().inv_cdf(0.975)
_STEPS = 100
_LONGEST_STEP = 2.0
_NEAR = 1e-9

_Wins = Mapping[tuple[int, int], float]


def places(sums: Sequence[Sum]) -> list[BlindPlace]:
    """The versions that choices connect with the newest one that was chosen between, the best first.

    All are measured by the oldest of these. Nothing where nobody has chosen.
    """
    wins, choices = defaultdict[tuple[int, int], float](float), defaultdict[int, int](int)
    for one in sums:
        tally, decided = one.tally, one.tally.decided + one.tally.same
        if not decided:
            continue
        if (one.new, one.old) not in wins:
            wins[one.new, one.old] = wins[one.old, one.new] = 0.5
        wins[one.new, one.old] += tally.new + tally.same / 2
        wins[one.old, one.new] += tally.old + tally.same / 2
        for version in (one.old, one.new):
            choices[version] += decided
    if not choices:
        return []
    by, *others = sorted(_connected(wins, max(choices)))
    strengths, variances = _fit(wins, by, others)
    found = [
        BlindPlace(
            version=version,
            by=by,
            share=_chance(strength),
            low=_chance(strength - _Z95 * math.sqrt(variances[version])),
            high=_chance(strength + _Z95 * math.sqrt(variances[version])),
            choices=choices[version],
        )
        for version, strength in strengths.items()
    ]
    return sorted(found, key=lambda one: (-one.share, -one.version))


def bases(tallies: Mapping[str, Tally]) -> list[BlindBase]:
    """How often each base model's versions, as one, are chosen over it as it came, the most often first.

    `tallies` are by base model, its own answers the `old` ones. No choice is between two base models, so
    each is measured by itself.
    """
    found = [
        BlindBase(model=model, share=one.share, low=one.low, high=one.high, choices=one.choices)
        for model, tally in tallies.items()
        for one in places([Sum(old=0, new=1, state="", tally=tally)])
        if one.version != one.by
    ]
    return sorted(found, key=lambda one: (-one.share, one.model))


def _connected(wins: _Wins, version: int) -> set[int]:
    """The version and all that a chain of comparisons leads to."""
    found, todo = {version}, [version]
    while todo:
        at = todo.pop()
        near = {other for one, other in wins if one == at} - found
        found |= near
        todo += near
    return found


def _fit(wins: _Wins, by: int, others: Sequence[int]) -> tuple[dict[int, float], dict[int, float]]:
    """Strengths and their variances, of `by` 0, by Newton's method."""
    strengths = dict.fromkeys((by, *others), 0.0)
    inverse: list[list[float]] = []
    for _ in range(_STEPS):
        gradient, information = _slope(wins, strengths, others)
        inverse = _inverted(information)
        steps = [sum(a * b for a, b in zip(row, gradient, strict=True)) for row in inverse]
        for version, step in zip(others, steps, strict=True):
            strengths[version] += max(-_LONGEST_STEP, min(_LONGEST_STEP, step))
        if max(map(abs, steps)) < _NEAR:
            break
    return strengths, {by: 0.0} | {version: inverse[n][n] for n, version in enumerate(others)}


def _slope(
    wins: _Wins, strengths: Mapping[int, float], others: Sequence[int]
) -> tuple[list[float], list[list[float]]]:
    """The log-likelihood's gradient, and its Fisher information."""
    at = {version: n for n, version in enumerate(others)}
    gradient = [0.0 for _ in others]
    information = [[0.0 for _ in others] for _ in others]
    for (one, other), won in wins.items():
        if one not in at:
            continue
        row, times = at[one], won + wins[other, one]
        chance = _chance(strengths[one] - strengths[other])
        gradient[row] += won - times * chance
        information[row][row] += times * chance * (1 - chance)
        if other in at:
            information[row][at[other]] -= times * chance * (1 - chance)
    return gradient, information


def _inverted(matrix: Sequence[Sequence[float]]) -> list[list[float]]:
    """Of a positive definite one, by Gauss and Jordan; such a one needs no pivots."""
    size = len(matrix)
    rows = [[*row, *(float(n == m) for m in range(size))] for n, row in enumerate(matrix)]
    for n in range(size):
        pivot = rows[n] = [value / rows[n][n] for value in rows[n]]
        for m in range(size):
            if m != n and (factor := rows[m][n]):
                rows[m] = [value - factor * part for value, part in zip(rows[m], pivot, strict=True)]
    return [row[size:] for row in rows]


def _chance(strength: float) -> float:
    return 1 / (1 + math.exp(-strength))
