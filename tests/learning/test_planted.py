# SPDX-License-Identifier: Apache-2.0
"""The gate over a few planted adapters, trained here; all of them are in tests/learning/results/gate.md."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from goodbot_training.job.settings import TrainingSettings

from tests.learning.planted import RECIPES, RESULTS, plant, table
from tests.learning.planting import Bench, Case, bench
from tests.support import require

KINDS = ("NaN or Inf", "over-trained", "wrong template", "shuffled, high rate", "one round")


@pytest.fixture(scope="module")
def cases() -> Iterator[list[Case]]:
    """One of each kind, as the judge confirms it, and those that it did not on the way."""
    require("torch")
    here: Bench
    with bench(exam=160) as here:
        yield list(plant(here, 1, [recipe for recipe in RECIPES if recipe.kind in KINDS]))


def test_no_harmful_adapter_passes_and_a_good_one_does(cases: list[Case]) -> None:
    harmful = [case for case in cases if case.harmful]
    assert {case.kind for case in harmful} >= set(KINDS[:4]), "the judge calls them harmful"
    assert [case.verdict.reason for case in harmful if case.verdict.passed] == []
    good = [case for case in cases if case.good and case.kind == "one round"]
    assert [case.verdict.reason for case in good if not case.verdict.passed] == []
    assert all(case.after and case.after.liked > case.before.liked + 0.1 for case in good)


def test_with_forty_ratings_it_never_says_better(cases: list[Case]) -> None:
    for case in cases:
        if case.verdict.passed:
            assert "too few to tell whether it is better" in case.verdict.reason


def test_the_table_names_both_rates_with_their_intervals(cases: list[Case]) -> None:
    text = table(cases)
    assert re.search(r"Harmful ones that pass: 0 of \d+ \(95 % interval 0 to \d+ %\)", text), text
    assert re.search(r"Good ones that are blocked: 0 of \d+ \(95 % interval", text), text


def test_the_kept_table_holds_what_is_asked_of_the_gate() -> None:
    """What is meant to do harm never passes; an honest round does if it has lost no more than the gate lets
    go."""
    text = RESULTS.read_text(encoding="utf-8")
    meant = {recipe.kind for recipe in RECIPES if recipe.harmful}
    rows = re.findall(r"^\| (.+?) \| harmful \| .* to \+([\d.]+) \|.*?\| (\d+) of \d+ \|", text, re.M)
    assert {kind for kind, _, _ in rows} >= meant
    let_go = 100 * TrainingSettings().gate_max_foreign
    passed = [(kind, float(lost)) for kind, lost, number in rows if int(number)]
    assert [one for one in passed if one[0] in meant or one[1] > let_go] == []
    of_harmful, harmful = re.findall(r"Harmful ones that pass: (\d+) of (\d+)", text)[0]
    assert (int(of_harmful) <= 1, int(harmful) >= 20) == (True, True)
    blocked, good = re.findall(r"Good ones that are blocked: (\d+) of (\d+)", text)[0]
    assert int(good) >= 20
    assert int(blocked) <= int(good) // 5
