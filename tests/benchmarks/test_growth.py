# SPDX-License-Identifier: Apache-2.0
"""The simulation of growth: its costs stand on the pages, and what it says is near what was measured."""

from __future__ import annotations

import dataclasses
import itertools
import random
import re
from collections.abc import Callable
from statistics import median

import pytest

from tests.architecture.source import ROOT
from tests.support import require

require("simpy")

import simpy  # noqa: E402

from tests.benchmarks import growth  # noqa: E402
from tests.benchmarks.growth_load import BOXES, FULL, Growth, Model, divided, fitting, large, small  # noqa: E402
from tests.benchmarks.growth_parts import Costs, Pace, Sampler, in_line, poisson  # noqa: E402
from tests.benchmarks.growth_points import one_program, overload, swaps  # noqa: E402

PAGE = (ROOT / "docs" / "scale.md").read_text(encoding="utf-8")
MEASURED = (ROOT / "docs" / "performance.md").read_text(encoding="utf-8")
NUMBER = re.compile(r"\d[\d.,]*\d|\d")


def figures(words: str) -> list[float]:
    """The figures of the one place of docs/performance.md that a pattern finds."""
    [found] = re.finditer(words, MEASURED)
    return [float(one.replace(",", "")) for one in found.groups()]


def near(found: float, measured: float) -> bool:
    return abs(found - measured) <= measured / 4


def wrong(name: str, told: str) -> Costs:
    """The costs, but for one."""
    costs = Costs()
    costs.measured[name] = dataclasses.replace(costs.measured[name], told=told)
    return costs


# -- what it is told


@pytest.mark.parametrize("name", Costs().measured)
def test_a_cost_is_what_its_page_says(name: str) -> None:
    cost = Costs().measured[name]
    assert (ROOT / cost.page).read_text(encoding="utf-8").count(cost.words) == 1
    assert cost.told in NUMBER.findall(cost.words)


def test_what_is_assumed_is_said_on_the_page() -> None:
    prose = " ".join(PAGE.split())
    assumed = Costs().assumed
    assert f"{assumed['ratings_a_day']:.0f} ratings a day" in prose
    assert f"{assumed['answers_a_rating']:.0f} answers for each" in prose
    assert f"{assumed['busy_hour']:.0f} times as much" in prose


# -- points that were measured, and that it is not told


def test_chats_beside_a_thousand_swaps() -> None:
    found = swaps(Costs(), 1000, 20)
    assert len(found.swaps) == 1000
    [answers] = figures(r"([\d,]+) answers, none failed")
    [p50] = figures(r"p50 of an answer was ([\d.]+) s")
    assert near(len(found.seconds), answers)
    assert near(median(found.seconds), p50)
    slow = swaps(wrong("small_32", "1,100"), 50, 20)
    assert not near(median(slow.seconds), p50), "half the pace would be noticed"


@pytest.mark.parametrize(
    ("processor", "words"),
    [
        (1.0, r"\| 128 wait \| 495, 517, ([\d.]+) \| 728, 511, ([\d.]+) \|"),
        (0.5, r"with half a processor p99 was ([\d.]+) to ([\d.]+) s"),
        (0.2, r"with a fifth of one ([\d.]+) to ([\d.]+) s"),
    ],
    ids=["all of a processor", "half", "a fifth"],
)
def test_who_waits_at_ten_times_what_it_takes(processor: float, words: str) -> None:
    low, high = figures(words)
    measured = (low + high) / 2 / (1000 if low > 100 else 1)
    assert near(overload(Costs(), processor).p99, measured)
    assert not near(overload(wrong("overload_new", "200"), processor).p99, measured)


def test_half_of_those_who_wait_there() -> None:
    kept, new = figures(r"\| 128 wait \| 495, ([\d.]+), 685 \| 728, ([\d.]+), 696 \|")
    assert near(1e3 * overload(Costs()).p50, (kept + new) / 2)


def test_one_program_that_reports_and_rates() -> None:
    found = one_program(Costs())
    xeon, first, second = figures(r"\| one client \| (\d+) \| 2.48 \| 7 \| (\d+), (\d+) \|")
    assert near(found, xeon)
    assert near(found, (first + second) / 2)
    assert not near(one_program(wrong("pair_alone", "4.6")), (first + second) / 2)


# -- the parts


def test_answers_are_written_together() -> None:
    pace = Pace({1: 10.0, 3: 20.0})
    assert [pace.step(rows) for rows in (1, 2, 3)] == pytest.approx([0.1, 0.125, 0.15])
    env = simpy.Environment()
    sampler = Sampler(env, pace, mixed=0.5)
    over: list[float] = []

    def ask(wait: float, tokens: int, version: int) -> simpy.events.ProcessGenerator:
        yield env.timeout(wait)
        yield sampler.ask(tokens, version)
        over.append(env.now)

    env.process(ask(0.0, 4, 0))
    env.process(ask(0.15, 1, 1))
    env.run()
    # Two steps alone, one beside an answer by another version, and the last one alone again.
    assert over == pytest.approx([0.2 + 1.5 * 0.125, 0.3 + 1.5 * 0.125])
    assert sampler.busy == pytest.approx(over[-1])


def test_a_line_that_is_seldom_full_waits_as_theory_says() -> None:
    """M/D/1 at two fifths: three of five meet a free server, so the median waits for nothing."""
    found = in_line(poisson(0.4, random.Random(1)), 1.0, 1, 4000)
    assert found.busy == pytest.approx(0.4, rel=0.05)
    assert found.p50 == pytest.approx(1.0)
    assert 2.0 < found.p99 < 4.0
    assert in_line(poisson(0.4, random.Random(1)), 1.0, 5, 4000).p99 == pytest.approx(1.0)


@pytest.mark.parametrize("bots", [10, 400, 5000])
def test_a_bot_trains_as_often_as_its_ratings_allow(bots: int) -> None:
    """Drawn together or bot by bot: the mean gap is the same."""
    one = Growth(Costs(), small(Costs()), bots)
    gaps = [*itertools.islice(one._full(random.Random(2)), 3000)]
    assert min(gaps) >= 0
    assert 3000 / sum(gaps) == pytest.approx(one.rounds, rel=0.05)


# -- what it says


def test_the_gate_and_the_learning_are_the_measured_round() -> None:
    costs = Costs()
    assert small(costs).learning + small(costs).checking == costs["round_small"]
    assert 0.5 < small(costs).checking / costs["round_small"] < 0.8, "“most of the time is the gate's”"
    assert large(costs).learning == costs["round_large"]


@pytest.mark.parametrize("make", [small, large])
@pytest.mark.parametrize("bots", growth.SIZES)
def test_divided_bots_fit(bots: int, make: Callable[[Costs], Model]) -> None:
    whole = Growth(Costs(), make(Costs()), bots)
    plan, one = divided(whole)
    assert one.bots * plan.goodbots == pytest.approx(bots)
    assert max(one.writer, one.sampler, one.training) <= FULL
    assert one.answer.p50 < 60


def test_a_box_is_the_smallest_that_does() -> None:
    assert fitting(1, 1.0, 1.0).box == BOXES[0]
    assert fitting(1, 1.7, 1.0).box == BOXES[1]
    assert str(fitting(9, 1.0, 8192.0)) == "20 of 64 cores, 512 GB"


def test_nobody_needs_another_database_for_speed() -> None:
    """One SQLite writer takes what 100,000 bots store in their busiest hour; the page says so."""
    share = Growth(Costs(), small(Costs()), 100_000).writer
    assert FULL / 2 < share < 1
    assert f"{share:.0%}".replace("%", " %") in PAGE


def test_the_page_has_what_it_prints(capsys: pytest.CaptureFixture[str]) -> None:
    growth.main([])
    printed = [line for line in capsys.readouterr().out.splitlines() if line.startswith("| ")]
    assert len(printed) > 20
    lines = PAGE.splitlines()
    assert [line for line in printed if line not in lines] == [], "python -m tests.benchmarks.growth"
