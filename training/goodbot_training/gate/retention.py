# SPDX-License-Identifier: Apache-2.0
"""Lost knowledge, told apart from a learnt style; both measured against the base, so that many
small losses add up.

A style is a choice among things that the base might have said. A wrong fact, a blend of two styles
or a broken ending is none: somewhere in such an answer stands a token that the base holds unlikely.
So the share of *foreign* answers, those with a token below `foreign_below`, counts lost knowledge, and
a style that goes from a third of the answers to all of them leaves it alone. Of 216 honest rounds each
had about as many more foreign answers than the base as it had fewer right ones (r = .84, slope 1.0). Of
tokens under .002, which the gate counted before, that is not so (r = .40): a sum that is one off is no
rarity to a model that is itself not quite sure. See tests/learning/results/first_rounds.md and gate.md.

The other way round, a token of which the base is sure (`SURE`) is no choice of style; a candidate
that no longer expects many of those has lost language. That is the coarser of the two: what is
forgotten of a style that nobody wants is no harm.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from goodbot.api.step import Floats

SURE = 0.9
"""A probability, at the sampling temperature, from which the base counts as sure of a token."""
EXPECTED = 0.5
"""What a candidate must still give such a token."""
_RARE = 0.1
_RARE_ANSWERS = 0.03  # 64 of the base's answers tell such a share; one in a hundred they do not


def foreign_below(base_answers: Sequence[Floats]) -> float:
    """The log-prob below which a token is foreign to the base.

    `base_answers` are the base's log-probs of its own answers. log .1, or lower where more than three
    in a hundred of the base's own answers have such a token: long answers and large vocabularies do.
    """
    least = [float(row.min()) for row in base_answers if len(row)]
    return min(math.log(_RARE), float(np.quantile(least, _RARE_ANSWERS)) if least else 0.0)


def foreign(answers: Sequence[Floats], below: float) -> int:
    """How many answers hold a token that the base gives a log-prob under `below`.

    `answers` are the base's log-probs of the candidate's answers. To count one prompt twice at most was
    tried: of the planted adapters it let 1 of 26 harmful ones pass, and blocked as many good ones.
    """
    return sum(bool(len(row)) and float(row.min()) < below for row in answers)


def retained(base: Sequence[Floats], candidate: Sequence[Floats]) -> tuple[float, int]:
    """Of the tokens that the base is sure of, the share that the candidate still expects; and their number.

    Both are log-probs of the base's own answers, `(R,)` each; 1 where the base is sure of nothing.
    """
    before, after = np.concatenate([*base]), np.concatenate([*candidate])
    sure = before >= math.log(SURE)
    share = (after[sure] >= math.log(EXPECTED)).mean() if sure.any() else 1.0
    return float(share), int(sure.sum())
