# SPDX-License-Identifier: Apache-2.0
"""Lost knowledge by hand: foreign answers, and what the base was sure of."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from goodbot_training.gate.retention import foreign, foreign_below, retained


def row(*probabilities: float) -> Any:
    return np.log(np.array(probabilities, np.float32))


def test_an_answer_is_foreign_by_its_least_likely_token() -> None:
    below = float(np.log(0.1))
    assert foreign([row(0.9, 0.11), row(0.9, 0.09, 0.9), row()], below) == 1


def test_a_style_that_the_base_has_is_never_foreign() -> None:
    # The base chose one of three styles; a candidate that always takes the third is still at home.
    base = [row(0.33, 0.99), row(0.33, 0.98), row(0.34, 0.99)] * 20
    assert foreign([row(0.34, 0.99)] * 60, foreign_below(base)) == 0


def test_what_is_rare_follows_the_base() -> None:
    sure = [row(0.5, 0.9)] * 100
    assert foreign_below(sure) == pytest.approx(np.log(0.1))
    varied = [row(0.5, 10 ** -(1 + n / 25)) for n in range(100)]  # down to 1e-5 a token
    below = foreign_below(varied)
    assert below < np.log(1e-4)
    assert foreign(varied, below) <= 3, "of its own answers, three in a hundred at most"
    assert foreign_below([]) == pytest.approx(np.log(0.1))


def test_what_the_base_is_sure_of_is_expected_or_lost() -> None:
    base = [row(0.3, 0.95, 0.99), row(0.91, 0.89)]
    candidate = [row(0.001, 0.6, 0.4), row(0.5001, 0.001)]
    assert retained(base, candidate) == (pytest.approx(2 / 3), 3), "of three, one is given .4"
    assert retained([row(0.5)], [row(0.1)]) == (1.0, 0), "sure of nothing, nothing to lose"
