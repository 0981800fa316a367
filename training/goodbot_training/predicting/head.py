# SPDX-License-Identifier: Apache-2.0
"""States and ratings → chances, and how good they are. Pure; the same each time.

* The states are standardised and turned to their main parts, without a look at any rating. On these a
  logistic regression is fitted, with the ridge that does best on what it has not seen.
* Each rated answer is predicted by a fit on other groups of answers only. Its ridge is chosen there, too.
* The chances are calibrated by two numbers (Platt 1999), again from other groups than they are used on.
* How often a good answer is ranked before a bad one (the AUC) has its interval from groups that are drawn
  again and again: answers of one group are no independent witnesses.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from goodbot.api.predicted import BINS
from numpy.typing import NDArray

Table = NDArray[np.float64]
Whole = NDArray[np.int64]

FOLDS = 5
_PARTS, _ROWS_A_PART = 64, 10
"""So many main parts at most, and so many answers for each of them."""
_RIDGES = (1e-3, 1e-2, 1e-1, 1.0)
_STEPS = 50
_FLAT = 1e-9
_DEALS = 2000
_SURE = 0.01
"""Where there is nothing to predict, that it looks better than chance happens in fewer cases than this."""
_ODD = 6.0
"""So many spreads further out than half of the answers."""
_NORMAL = 1.4826
"""The spread of a normal distribution by its median deviation."""


@dataclass(frozen=True, kw_only=True, slots=True)
class HeldOut:
    """What is predicted of rated answers by fits that have not seen them."""

    logits: Table
    chances: Table
    """Calibrated."""
    auc: float
    low: float
    high: float


def main_parts(states: Table) -> Table:
    """`(n, D)` → `(n, k)`: standardised, of a variance of 1 in all at most."""
    centred = states - states.mean(axis=0)
    spread = centred.std(axis=0)
    scaled = np.divide(centred, spread, out=np.zeros_like(centred), where=spread > _FLAT)
    left, sizes, _ = np.linalg.svd(scaled, full_matrices=False)
    most = max(1, min(_PARTS, len(states) // _ROWS_A_PART, len(sizes)))
    return left[:, :most] * sizes[:most] / np.sqrt(states.shape[1])


def odd(parts: Table) -> NDArray[np.bool_]:
    """Which answers lie far from all others."""
    spread = parts.std(axis=0)
    scaled = np.divide(parts, spread, out=np.zeros_like(parts), where=spread > _FLAT)
    out = np.log(np.maximum((scaled**2).sum(axis=1), _FLAT))
    middle = np.median(out)
    usual = _NORMAL * np.median(np.abs(out - middle))
    return out > middle + _ODD * max(float(usual), _FLAT)


def grouped(*keys: Sequence[str]) -> Whole:
    """Rows that share any of their keys, directly or by others, have one number."""
    groups = np.arange(len(keys[0]))
    for one in keys:
        first: dict[str, int] = {}
        for row, key in enumerate(one):
            here, there = groups[row], groups[first.setdefault(key, row)]
            if here != there:
                groups[groups == max(here, there)] = min(here, there)
    return groups


def held_out(parts: Table, good: Table, groups: Whole, *, seed: int) -> HeldOut:
    """Predict each answer from other groups, and say how well that does."""
    fold = folds(groups, seed)
    logits = _crossed(parts, good, groups, seed, fold)
    chances = np.zeros_like(logits)
    for one in range(FOLDS):
        here = fold == one
        if here.any():
            chances[here] = calibrated(logits[~here], good[~here], logits[here])
    auc, low, high = ranked(logits, good, groups, seed=seed)
    return HeldOut(logits=logits, chances=chances, auc=auc, low=low, high=high)


def predict(parts: Table, good: Table, groups: Whole, others: Table, found: HeldOut, *, seed: int) -> Table:
    """The chances of answers that nobody has rated, by all that were."""
    weights = _fitted(parts, good, groups, seed)
    return calibrated(found.logits, good, _logits(others, weights))


def folds(groups: Whole, seed: int) -> Whole:
    """Which fold each row is in: a group is in one, and folds are about as large as each other."""
    names, place, sizes = np.unique(groups, return_inverse=True, return_counts=True)
    order = np.random.default_rng(seed).permutation(len(names))
    order = order[np.argsort(-sizes[order], kind="stable")]
    full, of = np.zeros(FOLDS, np.int64), np.zeros(len(names), np.int64)
    for group in order:
        of[group] = least = int(full.argmin())
        full[least] += sizes[group]
    return of[place]


def ranked(logits: Table, good: Table, groups: Whole, *, seed: int) -> tuple[float, float, float]:
    """The AUC and its 99 % interval."""
    order, place = np.unique(logits, return_inverse=True)
    names, group = np.unique(groups, return_inverse=True)
    random = np.random.default_rng(seed)

    def auc(weights: Table) -> float:
        up = np.bincount(place, weights * good, len(order))
        down = np.bincount(place, weights * (1 - good), len(order))
        pairs = up.sum() * down.sum()
        return float(up @ (down.cumsum() - down / 2) / pairs) if pairs else 0.5

    def drawn() -> Table:
        """How often each row's group is drawn, where as many are drawn as there are."""
        times = np.bincount(random.integers(len(names), size=len(names)), minlength=len(names))
        return times[group].astype(np.float64)

    deals = [auc(drawn()) for _ in range(_DEALS)]
    low, high = np.quantile(deals, (_SURE / 2, 1 - _SURE / 2))
    return auc(np.ones(len(good))), float(low), float(high)


def bins(chances: Table, good: Table) -> list[dict[str, Any]]:
    """As many answers each, from the smallest chance to the largest."""
    order = np.argsort(chances, kind="stable")
    return [
        {"answers": len(rows), "expected": float(chances[rows].mean()), "good": int(good[rows].sum())}
        for rows in np.array_split(order, BINS)
        if len(rows)
    ]


def calibrated(logits: Table, good: Table, others: Table) -> Table:
    """The chances of `others`, by how `logits` went with ratings. Never the wrong way round."""
    scale = float(logits.std()) or 1.0
    weights = _solved(logits[:, None] / scale, good, 1e-3)
    weights[0] = max(weights[0], 0.0)
    return _chances(_logits(others[:, None] / scale, weights))


def _crossed(parts: Table, good: Table, groups: Whole, seed: int, fold: Whole) -> Table:
    logits = np.zeros(len(good))
    for one in range(FOLDS):
        here = fold == one
        if here.any() and not here.all():
            logits[here] = _logits(parts[here], _fitted(parts[~here], good[~here], groups[~here], seed))
    return logits


def _fitted(parts: Table, good: Table, groups: Whole, seed: int) -> Table:
    """By the ridge that says most of groups that were not looked at."""
    fold = folds(groups, seed + 1)
    losses = [_loss(parts, good, fold, ridge) for ridge in _RIDGES]
    return _solved(parts, good, _RIDGES[int(np.argmin(losses))])


def _loss(parts: Table, good: Table, fold: Whole, ridge: float) -> float:
    total = 0.0
    for one in range(FOLDS):
        here = fold == one
        if here.any() and not here.all():
            logits = _logits(parts[here], _solved(parts[~here], good[~here], ridge))
            total += float(np.logaddexp(0.0, np.where(good[here] > 0, -logits, logits)).sum())
    return total


def _solved(parts: Table, good: Table, ridge: float) -> Table:
    """Weights, and a constant behind them: least mean loss + ridge/2 · |weights|², by Newton's method.

    The constant has next to no ridge: it keeps finite where all ratings are alike.
    """
    x = np.column_stack([parts, np.ones(len(parts))])
    penalty = np.full(x.shape[1], ridge)
    penalty[-1] = 1e-4
    weights = np.zeros(x.shape[1])
    for _ in range(_STEPS):
        chances = _chances(x @ weights)
        slope = x.T @ (chances - good) / len(x) + penalty * weights
        bend = (x.T * (chances * (1 - chances))) @ x / len(x) + np.diag(penalty)
        step = np.linalg.solve(bend, slope)
        size = float(np.abs(step).max())
        weights = weights - step * min(1.0, 5.0 / max(size, _FLAT))  # a far step is a bad guess
        if size < 1e-8:
            break
    return weights


def _logits(parts: Table, weights: Table) -> Table:
    return parts @ weights[:-1] + weights[-1]


def _chances(logits: Table) -> Table:
    return 1 / (1 + np.exp(-np.clip(logits, -30.0, 30.0)))
