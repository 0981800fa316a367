# SPDX-License-Identifier: Apache-2.0
"""The parts of a goodbot that can fill up, for `growth`: their costs are measured, their waiting is played.

Times are seconds. What is drawn (gaps, and how long an answer of the API takes) is drawn by a seed.
"""

from __future__ import annotations

import collections
import heapq
import itertools
import random
import tomllib
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import median, quantiles
from typing import Any

import simpy

FILE = Path(__file__).with_name("growth_costs.toml")
PROBE_TOKENS = 4
"""What a new version says before it may answer, in bench_serving as in goodbot."""
Going = Generator[simpy.Event, Any, None]


@dataclass(frozen=True, kw_only=True)
class Cost:
    """A measured figure, and where it stands."""

    told: str
    page: str
    words: str

    @property
    def value(self) -> float:
        return float(self.told.replace(",", ""))


class Costs:
    """All that the simulation is told, by name."""

    def __init__(self) -> None:
        found = tomllib.loads(FILE.read_text(encoding="utf-8"))
        self.assumed: Mapping[str, float] = found.pop("assumed")
        self.measured = {name: Cost(**cost) for name, cost in found.items()}

    def __getitem__(self, name: str) -> float:
        return self.assumed[name] if name in self.assumed else self.measured[name].value


class Pace:
    """How long one pass of a model takes, which is a token for each answer under way."""

    def __init__(self, rates: Mapping[int, float]) -> None:
        """`rates`: how many answers at once, and the tokens a second that were measured then."""
        self.rates = rates
        self.most = max(rates)
        """More at once were not measured: they wait."""
        known = [(rows, rows / rate) for rows, rate in sorted(rates.items())]
        self._steps = [known[0][1]]
        for (low, before), (high, after) in itertools.pairwise(known):
            each = (after - before) / (high - low)
            self._steps += [before + each * (rows - low) for rows in range(low, high)]
        self._steps.append(known[-1][1])

    def step(self, rows: int) -> float:
        return self._steps[rows]


class Sampler:
    """Answers that are written together, a pass after the other; who comes joins at the next one."""

    def __init__(self, env: simpy.Environment, pace: Pace, mixed: float = 0.0) -> None:
        """`mixed`: by how much a pass is longer while there are answers by several versions."""
        self._env, self._pace, self._mixed = env, pace, mixed
        self.busy = 0.0
        self._waiting: collections.deque[tuple[int, int, simpy.Event]] = collections.deque()
        self._rows: list[tuple[int, int, int, simpy.Event]] = []
        self._of: collections.Counter[int] = collections.Counter()
        self._drains: dict[int, simpy.Event] = {}
        self._serial = itertools.count()
        self._steps = 0
        self._idle = env.event()
        env.process(self._write())

    def ask(self, tokens: int, version: int = 0) -> simpy.Event:
        """It comes when the answer is whole."""
        done = self._env.event()
        self._waiting.append((tokens, version, done))
        self._of[version] += 1
        if not self._idle.triggered:
            self._idle.succeed()
        return done

    def drained(self, version: int) -> simpy.Event:
        """It comes when no answer by that version is under way any more."""
        event = self._env.event()
        if self._of[version]:
            self._drains[version] = event
        else:
            event.succeed()
        return event

    def _write(self) -> Going:
        while True:
            while self._waiting and len(self._rows) < self._pace.most:
                tokens, version, done = self._waiting.popleft()
                heapq.heappush(self._rows, (self._steps + tokens, next(self._serial), version, done))
            if not self._rows:
                self._idle = self._env.event()
                yield self._idle
                continue
            seconds = self._pace.step(len(self._rows))
            if sum(count > 0 for count in self._of.values()) > 1:
                seconds *= 1 + self._mixed
            yield self._env.timeout(seconds)
            self.busy += seconds
            self._steps += 1
            while self._rows and self._rows[0][0] <= self._steps:
                _, _, version, done = heapq.heappop(self._rows)
                self._over(version)
                done.succeed()

    def _over(self, version: int) -> None:
        self._of[version] -= 1
        if not self._of[version]:
            del self._of[version]
            if version in self._drains:
                self._drains.pop(version).succeed()


@dataclass(frozen=True)
class Waits:
    """How long those took who were served, waiting and all."""

    count: int
    p50: float
    p99: float
    busy: float = 0.0
    """The share of the time in which the one who serves did something."""


def waits(took: list[float], busy: float = 0.0) -> Waits:
    return Waits(len(took), median(took), quantiles(took, n=100, method="inclusive")[98], busy)


def in_line(gaps: Iterator[float], seconds: float, servers: int, jobs: int) -> Waits:
    """So many jobs of one length each, which come with these gaps and are done in their order."""
    env = simpy.Environment()
    server = simpy.Resource(env, servers)
    took: list[float] = []

    def one(came: float) -> Going:
        with server.request() as turn:
            yield turn
            yield env.timeout(seconds)
        took.append(env.now - came)

    env.process(_coming(env, itertools.islice(gaps, jobs), one))
    env.run()
    return waits(took, jobs * seconds / servers / env.now)


def _coming(env: simpy.Environment, gaps: Iterable[float], one: Callable[[float], Going]) -> Going:
    for gap in gaps:
        yield env.timeout(gap)
        env.process(one(env.now))


def answering(pace: Pace, tokens: int, gaps: Iterator[float], answers: int) -> Waits:
    """So many questions to one sampler, which come with these gaps."""
    env = simpy.Environment()
    sampler = Sampler(env, pace)
    took: list[float] = []

    def one(came: float) -> Going:
        yield sampler.ask(tokens)
        took.append(env.now - came)

    env.process(_coming(env, itertools.islice(gaps, answers), one))
    env.run()
    return waits(took, sampler.busy / env.now)


def poisson(rate: float, drawn: random.Random) -> Iterator[float]:
    """The gaps of what many people do who know nothing of each other."""
    while True:
        yield drawn.expovariate(rate)
