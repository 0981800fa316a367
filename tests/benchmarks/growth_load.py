# SPDX-License-Identifier: Apache-2.0
"""What so many bots ask of a goodbot and of its machine, for `growth`: shares, waiting, and what would do."""

from __future__ import annotations

import dataclasses
import heapq
import math
import random
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from tests.benchmarks.growth_parts import PROBE_TOKENS, Costs, Pace, Waits, answering, in_line, poisson

JOBS = 500
"""That come in a slice."""
FULL = 0.8
_DAY = 86_400.0
_MANY = 500
"""Bots from which their trainings come like one Poisson stream."""
_SEED = 31


@dataclass(frozen=True)
class Box:
    """A machine that one can have."""

    cores: int
    gigabytes: int

    def __str__(self) -> str:
        return f"{self.cores} cores, {self.gigabytes} GB"


BOXES = (Box(2, 16), Box(4, 32), Box(8, 64), Box(16, 128), Box(32, 256), Box(64, 512))


@dataclass(frozen=True)
class Model:
    """What answers and learns, by its measured costs."""

    title: str
    pace: Pace
    learning: float
    """Processor seconds of a round, but for its gate."""
    checking: float
    """Those of the gate; 0: only the sum was measured."""


def small(costs: Costs) -> Model:
    """4 million weights. The gate is what the other passes leave of the measured round."""
    slower = costs["round_one_pass"] / costs["round_one_pass_xeon"]
    each = slower * costs["round_ratings"] * costs["rating_tokens"] / costs["learning_xeon"]
    learning = costs["round_one_pass"] + (costs["round_passes"] - 1) * each
    pace = Pace({rows: costs[f"small_{rows}"] for rows in (1, 8, 32)})
    return Model("a model of 4 million weights", pace, learning, costs["round_small"] - learning)


def large(costs: Costs) -> Model:
    """135 million weights; it answers like the measured one of 133 million."""
    pace = Pace({rows: costs[f"large_{rows}"] for rows in (1, 8, 32)})
    return Model("a model of 135 million weights", pace, costs["round_large"], 0.0)


@dataclass(frozen=True)
class Growth:
    """So many bots, and what they ask of a machine. `share` of a second: of one processor, or one thread."""

    costs: Costs
    model: Model
    bots: float

    @property
    def ratings(self) -> float:
        """A second, as a mean of the day; the busiest hour has `busy_hour` times as many."""
        return self.bots * self.costs["ratings_a_day"] / _DAY

    @property
    def answers(self) -> float:
        return self.ratings * self.costs["answers_a_rating"]

    @property
    def rounds(self) -> float:
        return self.ratings / self.costs["round_needs"]

    @property
    def busiest(self) -> float:
        return self.costs["busy_hour"]

    @property
    def writer(self) -> float:
        """Of the one who writes to the database: an answer and its rating are two events of a pair."""
        return self.busiest * (self.ratings + self.answers) * self.costs["pair_many"] / 2e3

    @property
    def sampler(self) -> float:
        """Of what one sampler writes at most; a swap is the probe of a new version."""
        tokens = self.answers * self.costs["answer_tokens"] + self.rounds * PROBE_TOKENS
        return self.busiest * tokens / self.model.pace.rates[self.model.pace.most]

    @property
    def learning(self) -> float:
        """Of one training at a time. It waits for a quiet hour, so it has all of the day."""
        return self.rounds * self.model.learning

    @property
    def checking(self) -> float:
        return self.rounds * self.model.checking

    @property
    def training(self) -> float:
        return self.learning + self.checking

    @property
    def apart(self) -> float:
        """Processors, where each bot has a goodbot of its own: nobody's answers are written together."""
        one = self.model.pace.step(1) * self.costs["answer_tokens"]
        events = (self.ratings + self.answers) * self.costs["pair_alone"] / 2e3
        return self.busiest * (self.answers * one + events) + self.training

    def memory(self, goodbots: float, adapters: float, each: str = "memory_answers") -> float:
        """Gigabytes, by what the tiny model takes. Trainings take theirs while they run."""
        trains = min(goodbots, math.ceil(self.training))
        answers = goodbots * self.costs[each] + adapters * self.costs["adapter"]
        return (answers + trains * self.costs["memory_trains"]) / 1e3

    # -- what is played

    @cached_property
    def answer(self) -> Waits:
        """An answer of one sampler."""
        gaps = poisson(self.busiest * self.answers, random.Random(_SEED))
        return answering(self.model.pace, int(self.costs["answer_tokens"]), gaps, JOBS)

    @cached_property
    def rating(self) -> Waits:
        gaps = poisson(self.busiest * (self.ratings + self.answers), random.Random(_SEED))
        return in_line(gaps, self.costs["pair_many"] / 2e3, 1, 10 * JOBS)

    def trained(self, servers: int) -> Waits:
        """From the last rating that a training needs to its end."""
        return in_line(
            self._full(random.Random(_SEED)), self.model.learning + self.model.checking, servers, JOBS
        )

    def answer_apart(self, cores: int) -> Waits:
        gaps = poisson(self.busiest * self.answers, random.Random(_SEED))
        return in_line(gaps, self.model.pace.step(1) * self.costs["answer_tokens"], cores, JOBS)

    def _full(self, drawn: random.Random) -> Iterator[float]:
        """The gaps between ratings with which a bot has as many as a training needs."""
        if self.bots > _MANY:
            yield from poisson(self.rounds, drawn)
        bots, needs = max(1, round(self.bots)), int(self.costs["round_needs"])
        each = self.ratings / bots
        # In the middle of a day some are nearly there and others have just begun.
        due = [drawn.gammavariate(drawn.randrange(1, needs + 1), 1 / each) for _ in range(bots)]
        heapq.heapify(due)
        now = 0.0
        while True:
            then = heapq.heapreplace(due, due[0] + drawn.gammavariate(needs, 1 / each))
            yield then - now
            now = then


@dataclass(frozen=True)
class Plan:
    """What holds so many bots, with a fifth of everything left."""

    goodbots: int
    boxes: int
    box: Box

    def __str__(self) -> str:
        return f"{self.box}" if self.boxes == 1 else f"{self.boxes:,} of {self.box}"


def fitting(goodbots: int, cores: float, gigabytes: float) -> Plan:
    """The smallest box, or as many of the largest as it takes."""
    for box in BOXES:
        if max(cores / box.cores, gigabytes / box.gigabytes) <= FULL:
            return Plan(goodbots, 1, box)
    most = BOXES[-1]
    return Plan(goodbots, math.ceil(max(cores / most.cores, gigabytes / most.gigabytes) / FULL), most)


def each_apart(growth: Growth) -> Plan:
    """A goodbot for each bot."""
    bots = round(growth.bots)
    return fitting(bots, growth.apart, growth.memory(bots, 0))


def divided(growth: Growth) -> tuple[Plan, Growth]:
    """As many goodbots as it takes, and what one of them has to do."""
    goodbots = math.ceil(max(growth.writer, growth.sampler, growth.training) / FULL)
    one = dataclasses.replace(growth, bots=growth.bots / goodbots)
    cores = goodbots * (one.writer + one.answer.busy + one.training)
    return fitting(goodbots, cores, growth.memory(goodbots, growth.bots)), one
