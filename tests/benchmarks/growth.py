# SPDX-License-Identifier: Apache-2.0
"""Growth, played: what fills up first with 10, 1,000 and 100,000 bots, by how much, and what the next box is.

    python -m tests.benchmarks.growth

A bot is a group of people with what it has learnt from them. Its costs are measured ones
(`growth_costs.toml`, each with its page); how much people do is assumed there. Two ways are played: a
goodbot for each bot, as today, and one goodbot for all with an adapter for each, which is not there today.

How 100,000 end in seconds. Nobody plays 100,000 bots: what many people do who know nothing of each other
comes as one Poisson stream, so their arrivals are drawn together, and a slice of time is played that holds
`JOBS` of them, hours for ten bots and seconds for 100,000. Answers and trainings differ a thousandfold in
length, so each part is played alone, in a slice of its own; that they share processors is added up. What is
more than full is not played, for its line would grow for ever. Bots are divided instead, so that no part is
over `FULL`, and one goodbot, or one box, is played with its share.
"""

from __future__ import annotations

import argparse
import dataclasses
import sys
from collections.abc import Sequence

from tests.benchmarks.growth_load import BOXES, FULL, Box, Growth, Plan, divided, each_apart, large, small
from tests.benchmarks.growth_parts import Costs, Waits
from tests.benchmarks.growth_points import checked
from tests.benchmarks.table import row

SIZES = (10, 1_000, 100_000)
APART = ("processors", "memory", "memory without the model")
TOGETHER = ("writer", "sampler", "learning", "checking", "memory")


def main(arguments: Sequence[str] = ()) -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.growth")
    parser.add_argument("--bots", type=int, nargs="*", default=SIZES)
    options = parser.parse_args(arguments)
    costs = Costs()
    box = BOXES[0]
    for model in (small(costs), large(costs)):
        print(f"\n## A goodbot for each bot, {model.title}; the first box has {box}\n")
        row("bots", *APART, "first", "the next box", "an answer", "a training", head=True)
        for bots in options.bots:
            row(f"{bots:,}", *apart_line(Growth(costs, model, bots), box))
        print(f"\n## One goodbot for all, {model.title}; the first box has {box}\n")
        row(
            "bots",
            *TOGETHER,
            "first",
            "the next box",
            "goodbots",
            "a rating",
            "an answer",
            "a training",
            head=True,
        )
        for bots in options.bots:
            row(f"{bots:,}", *together_line(Growth(costs, model, bots), box))
    print("\n## What was measured, and what this says of it\n")
    row("point", "measured", "simulated", head=True)
    for line in checked(costs):
        row(*line)


def apart_line(growth: Growth, box: Box) -> list[str]:
    """Of a row, all but its name."""
    memory = growth.memory(growth.bots, 0) / box.gigabytes
    without = growth.memory(growth.bots, 0, "memory_daemon") / box.gigabytes
    used = {"processors": growth.apart / box.cores, "memory": memory}
    plan = each_apart(growth)
    share = dataclasses.replace(growth, bots=growth.bots / plan.boxes)
    left = max(1, int(plan.box.cores - (share.apart - share.training)))
    played = (share.answer_apart(plan.box.cores), share.trained(left))
    return [
        *map(full, (*used.values(), without)),
        first(used),
        next_box(plan, box),
        seconds(played[0]),
        minutes(played[1]),
    ]


def together_line(growth: Growth, box: Box) -> list[str]:
    """Likewise. Where only a round's sum was measured, checking is a part of learning."""
    values = (growth.writer, growth.sampler, growth.learning, growth.checking)
    memory = growth.memory(1, growth.bots) / box.gigabytes
    used = {"writer": growth.writer, "sampler": growth.sampler, "training": growth.training, "memory": memory}
    plan, one = divided(growth)
    played = (one.rating, one.answer, one.trained(1))
    shown = [full(value) if value else "–" for value in (*values, memory)]
    waited = [f"{1e3 * played[0].p99:.1f} ms", seconds(played[1]), minutes(played[2])]
    return [*shown, first(used), next_box(plan, box), f"{plan.goodbots:,}", *waited]


def first(used: dict[str, float]) -> str:
    """What fills up first, and by how much."""
    name = max(used, key=lambda one: used[one])
    return f"{name}, {full(used[name])}" if used[name] > FULL else "nothing"


def next_box(plan: Plan, box: Box) -> str:
    return "the same" if (plan.boxes, plan.box) == (1, box) else str(plan)


def full(used: float) -> str:
    """How full something is: in percent, and as a multiple where it does not fit by far."""
    return "< 1 %" if used < 0.01 else f"{used:.0%}".replace("%", " %") if used < 3 else f"{used:,.0f} ×"


def seconds(found: Waits) -> str:
    """Median, and the one of a hundred that takes longest."""
    return f"{found.p50:.2f} s, {found.p99:.2f} s"


def minutes(found: Waits) -> str:
    return f"{found.p50 / 60:.0f} min, {found.p99 / 60:.0f} min"


if __name__ == "__main__":
    main(sys.argv[1:])
