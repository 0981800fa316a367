# SPDX-License-Identifier: Apache-2.0
"""How long after its start a bot takes a rating, and how long after it answers, by the size of its model.

    python -m tests.benchmarks.bench_start MODEL …      beside the shipped model, in turns

The floor is what Python needs to read aiohttp, without which nobody could say anything to it.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

import httpx

from tests.cli.program import PROGRAM, environment
from tests.learning.bases import BASES
from tests.real.taught import Real, Size

ROUNDS = 7
_LATEST = 300.0
_UNWANTED = "PYTHONDONTWRITEBYTECODE"
"""With it each start would compile goodbot anew, which none does that somebody has installed."""
FLOOR = "Python and aiohttp alone"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs="*", type=Path)
    parser.add_argument("--backend", default="torch")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        bots = dict[str, tuple[Real, str]]()
        for model in (Path(BASES["tiny"].obtain()), *arguments.models):
            size = Size(backend=arguments.backend, ratings=40, held_out=8, tokens=8, passes=1, anchors=16)
            bots[model.name] = _rated(Real(Path(directory) / f"home-{len(bots)}", model, size))
        found: dict[str, list[tuple[float, float]]] = {name: [] for name in bots}
        floor = list[float]()
        for number in range(arguments.rounds):
            floor.append(_floor())
            for name, (bot, turn) in bots.items():
                found[name].append(_times(bot, turn, score=float(number % 2)))
    print(f"\n## From the start of `goodbot run` (median of {arguments.rounds}, seconds)\n")
    print("| model | a rating is taken | it answers |")
    print("|---|---|---|")
    print(f"| {FLOOR} | {median(floor):.2f} | |")
    for name, times in found.items():
        rated, answered = (median(column) for column in zip(*times, strict=True))
        print(f"| {name} | {rated:.2f} | {answered:.2f} |")


def _rated(bot: Real) -> tuple[Real, str]:
    """Set up, and with an answer that can be rated."""
    bot.set_up()
    bot.start()
    [turn] = bot.asked(["What is 2 + 2?"])
    bot.stop()
    return bot, turn.id


def _floor() -> float:
    began = time.perf_counter()
    subprocess.run([sys.executable, "-c", "import aiohttp.web"], check=True, env=_environment())
    return time.perf_counter() - began


def _times(bot: Real, turn: str, score: float) -> tuple[float, float]:
    """Seconds until a rating of an older answer was accepted, and until a question was answered."""
    began = time.perf_counter()
    with tempfile.TemporaryFile() as log:
        bot.process = subprocess.Popen(
            [*PROGRAM, "--home", str(bot.home), "run"],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            text=True,
            env=_environment(),
            start_new_session=True,
        )
    address = f"http://127.0.0.1:{bot.port}/v1"
    with httpx.Client(headers={"Authorization": f"Bearer {bot.token}"}, timeout=_LATEST) as client:
        rating = {"turn": turn, "score": score}
        rated = _until(lambda: client.post(f"{address}/feedback", json=rating), began)
        question = {"model": "goodbot", "messages": [{"role": "user", "content": "What is 3 + 3?"}]}
        answered = _until(lambda: client.post(f"{address}/chat/completions", json=question), began)
    bot.stop()
    return rated, answered


def _environment() -> dict[str, str]:
    return {name: value for name, value in environment().items() if name != _UNWANTED}


def _until(asks: Callable[[], httpx.Response], began: float) -> float:
    """Seconds since then when it is first taken."""
    while (now := time.perf_counter()) < began + _LATEST:
        try:
            if asks().is_success:
                return time.perf_counter() - began
        except httpx.TransportError:
            pass  # nobody listens yet
        time.sleep(max(0.0, now + 0.01 - time.perf_counter()))
    raise TimeoutError("it never was")


if __name__ == "__main__":
    main()
