# SPDX-License-Identifier: Apache-2.0
"""What was measured of a whole goodbot, played with the costs of its parts: a check of `growth`.

None of these results is among the costs. test_growth.py compares them with the pages, within a quarter.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

import simpy
from goodbot.base.crowd import WAITING

from tests.benchmarks.growth_parts import PROBE_TOKENS, Costs, Going, Pace, Sampler, Waits, waits


@dataclass
class Swapped:
    """What the chats and who swaps have seen."""

    seconds: list[float] = field(default_factory=list[float])
    swaps: list[float] = field(default_factory=list[float])
    active: int = 0
    over: bool = False


def swaps(costs: Costs, count: int, chats: int, block: int = 25) -> Swapped:
    """`bench_serving --part swaps`: back to back, in blocks that begin with all chats asking."""
    pace = Pace({rows: costs[f"small_{rows}"] for rows in (1, 8, 32)})
    tokens = int(costs["answer_tokens"])
    load = (costs["new_adapter"] - costs["first_piece"]) / 1e3 - PROBE_TOKENS * pace.step(1)
    found = Swapped()
    for first in range(1, count + 1, block):
        env = simpy.Environment()
        sampler = Sampler(env, pace, costs["two_versions"] / 100)
        found.over = False
        for _ in range(chats):
            env.process(_chat(env, sampler, found, tokens))
        versions = range(first, min(first + block, count + 1))
        env.process(_swapping(env, sampler, found, versions, load))
        env.run()
    return found


def _chat(env: simpy.Environment, sampler: Sampler, found: Swapped, tokens: int) -> Going:
    while not found.over:
        began = env.now
        yield sampler.ask(tokens, found.active)
        found.seconds.append(env.now - began)


def _swapping(
    env: simpy.Environment, sampler: Sampler, found: Swapped, versions: range, load: float
) -> Going:
    for version in versions:
        began = env.now
        yield env.timeout(load)
        yield sampler.ask(PROBE_TOKENS, version)
        found.active = version
        found.swaps.append(env.now - began)
        if version > 1:
            yield sampler.drained(version - 1)
    found.over = True


def overload(costs: Costs, processor: float = 1.0, seed: int = 31) -> Waits:
    """`bench_overload` at ten times, as it was when `WAITING` could wait: the others are told to come again.

    How many goodbot answers a second there is a cost; how long they wait is not. `processor`: the share of
    one that it gets.
    """
    env = simpy.Environment()
    drawn = random.Random(seed)
    seconds, asked = costs["overload_seconds"], int(costs["overload_asked"])
    rate = processor * (costs["overload_kept"] + costs["overload_new"]) / seconds
    server = simpy.Resource(env)
    took: list[float] = []

    def one(came: float) -> Going:
        with server.request() as turn:
            yield turn
            yield env.timeout(drawn.expovariate(rate))
        took.append(env.now - came)

    def come() -> Going:
        for _ in range(asked):
            yield env.timeout(seconds / asked)
            if server.count + len(server.queue) < WAITING:
                env.process(one(env.now))

    env.process(come())
    env.run()
    return waits(took)


def one_program(costs: Costs, pairs: int = 500) -> float:
    """Pairs a second of one program that reports an answer and rates it, again and again."""
    env = simpy.Environment()

    def go_on() -> Going:
        for _ in range(pairs):
            yield env.timeout(costs["http"] / 1e3)
            yield env.timeout(costs["pair_alone"] / 1e3)

    env.process(go_on())
    env.run()
    return pairs / env.now


def checked(costs: Costs) -> list[tuple[str, str, str]]:
    """Points that stand on docs/performance.md and are no cost here; test_growth.py allows a quarter."""
    found = swaps(costs, 1000, 20)
    times = sorted(found.seconds)
    lines = [
        ("1,000 swaps under 20 chats: answers", "20,660", f"{len(times):,}"),
        ("… p50 of an answer", "0.79 s", f"{times[len(times) // 2]:.2f} s"),
        ("… a swap (not held by a test)", "135 ms", f"{1e3 * sum(found.swaps) / len(found.swaps):.0f} ms"),
        ("one program, pair after pair", "380, 420 a second", f"{one_program(costs):.0f} a second"),
    ]
    for processor, measured in ((1.0, "0.69 s"), (0.5, "0.9 to 1.4 s"), (0.2, "2.7 to 3.8 s")):
        name = f"ten times what it takes, {processor:g} of a processor: p99"
        lines.append((name, measured, f"{overload(costs, processor).p99:.2f} s"))
    return lines
