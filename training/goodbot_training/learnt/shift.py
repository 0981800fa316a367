# SPDX-License-Identifier: Apache-2.0
"""Which features of answers a round has changed, and was asked to change. Pure.

A feature is *named* where three things hold together:

* the answers show it: pairs of answers, before and after, to the same questions with the same random
  numbers. Under "both policies answer alike" the sign of each question's mean difference d is a coin's:
  T = |Σ d| / √Σ d², against the largest T of all features under random signs;
* the ratings asked for it: its correlation with the rewards of the round has the same sign, against the
  largest of all features where the same rewards are dealt out at random;
* it is large enough to be worth a word, and its 95 % t interval, over the questions' means, does not hold 0.

The largest of all features keeps the chance of a single wrong name at the level of a test, however many
there are (Westfall and Young's single step). The second condition is there because a round always changes
something: where ratings are dealt out at random, weights follow that chance, and answers do move. That is a
shift, and nothing that was learnt from anybody. So there a name has at most the chance `ASKED`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from goodbot.api.learnt import LENGTH, Shift
from goodbot.base.intervals import student
from numpy.random import Generator

from goodbot_training.learnt.features import Table, TextFeature

SHOWN, ASKED = 0.05, 0.01
"""The levels of the tests: of answers that have not moved, and of ratings that ask for nothing."""
LEAST_QUESTIONS = 6
"""With fewer, nothing is said of all the others: all of five signs are alike by chance in 6 % of cases."""
_LEAST = 0.1
"""Of a length or of all answers: a smaller change is not worth a word."""
_DEALS, _AT_ONCE = 2000, 200


def shifts(
    chosen: Sequence[TextFeature],
    before: Table,
    after: Table,
    questions: Sequence[int],
    rated: Table,
    rewards: Sequence[float],
    *,
    seed: int,
) -> list[Shift]:
    """Each feature's shift. `before` and `after` `(n, features)` answer `questions` `(n,)`; `rated` is of the
    answers that have `rewards`."""
    random = np.random.default_rng(seed)
    scaled = [_scaled(chosen, one) for one in (before, after, rated)]
    moved, shown = _moved(scaled[1] - scaled[0], np.asarray(questions), random)
    asked, wanted = _asked(scaled[2], np.asarray(rewards, np.float64), random)
    change, low, high = _intervals(chosen, before, after, np.asarray(questions))
    named = (shown <= SHOWN) & (wanted <= ASKED) & (np.sign(moved) == np.sign(asked))
    named &= (np.abs(change) >= _LEAST) & (low * high > 0) & (np.sign(change) == np.sign(moved))
    return [
        Shift(
            feature=one.name,
            word=one.word,
            before=round(float(before[:, j].mean()), 4),
            after=round(float(after[:, j].mean()), 4),
            change=round(float(change[j]), 4),
            low=round(float(low[j]), 4),
            high=round(float(high[j]), 4),
            named=bool(named[j]),
        )
        for j, one in enumerate(chosen)
    ]


def _scaled(chosen: Sequence[TextFeature], values: Table) -> Table:
    """Lengths as their logarithm: one endless answer is not to outweigh all others."""
    long = np.array([one.name == LENGTH for one in chosen])
    return np.where(long, np.log1p(values), values)


def _moved(change: Table, questions: Table, random: Generator) -> tuple[Table, Table]:
    """The sum of the changes of each feature, and its p, of all features together."""
    change = _means(change, questions)
    size = np.sqrt((change**2).sum(axis=0))
    norm = np.divide(1.0, size, out=np.zeros_like(size), where=size > 0)
    signs = random.choice((-1.0, 1.0), (_DEALS, len(change)))
    dealt = (np.abs(signs @ change) * norm).max(axis=1)
    total = change.sum(axis=0)
    return total, _level(np.abs(total) * norm, dealt)


def _asked(rated: Table, rewards: Table, random: Generator) -> tuple[Table, Table]:
    """The correlation of each feature with the rewards, and its p, of all features together."""
    centred, r = rated - rated.mean(axis=0), rewards - rewards.mean()
    size = np.sqrt((centred**2).sum(axis=0)) * np.sqrt((r**2).sum())
    norm = np.divide(1.0, size, out=np.zeros_like(size), where=size > 1e-9)
    deals = (random.permuted(np.tile(r, (_AT_ONCE, 1)), axis=1) for _ in range(_DEALS // _AT_ONCE))
    dealt = np.concatenate([(np.abs(one @ centred) * norm).max(axis=1) for one in deals])
    found = r @ centred * norm
    return found, _level(np.abs(found), dealt)


def _level(found: Table, dealt: Table) -> Table:
    """How often chance brings as much, counting what was found as one of its cases."""
    more = np.count_nonzero(dealt[:, None] >= found[None, :] - 1e-12, axis=0)
    return (1.0 + np.asarray(more, np.float64)) / (1 + len(dealt))


def _intervals(
    chosen: Sequence[TextFeature], before: Table, after: Table, questions: Table
) -> tuple[Table, Table, Table]:
    """The change of each feature and its 95 % t interval over the means of the questions.

    A length's change is a ratio of means: its error is that of `new - old - change · old`, linear in both.
    """
    old, new = _means(before, questions), _means(after, questions)
    long = np.array([one.name == LENGTH for one in chosen])
    unit = np.where(long, np.maximum(old.mean(axis=0), 1e-9), 1.0)
    change: Table = (new - old).mean(axis=0) / unit
    rest: Table = (new - old - np.where(long, change * old, change)) / unit
    half: Table = student(0.975, len(rest) - 1) * rest.std(axis=0, ddof=1) / np.sqrt(len(rest))
    return change, change - half, change + half


def _means(values: Table, questions: Table) -> Table:
    """`(questions, features)`: a question counts once, however often it was asked."""
    return np.array([values[questions == one].mean(axis=0) for one in np.unique(questions)])
