# SPDX-License-Identifier: Apache-2.0
"""Why does a larger first round learn no more than a smaller one? One change at a time.

    python -m tests.learning.larger --sizes 80 --tries "as installed" "no wrong press"

A course is one first round of so many ratings on the shipped model, gate on, on seeds that the study does not
use; its exam is that of `tests.learning.study`. Courses that are done lie in `--runs` and are not run again.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import Any

from goodbot_training.job.types import TrainingSettings
from goodbot_training.objectives import Objective, mispo
from goodbot_training.objectives.advantages import compute_advantages

from tests.learning.arms import ARMS, DEFAULT
from tests.learning.course import Course, take
from tests.learning.figures import estimate, facts
from tests.learning.streams import STREAMS, Stream, press

SEEDS = (100, 101, 102, 103, 104)
LIKES = ("terse", "friendly")
ANSWERS = 240


@dataclass(frozen=True, kw_only=True)
class Try:
    """What is changed, and why that might be it."""

    why: str
    settings: Mapping[str, Any] = field(default_factory=dict[str, Any])
    error: float = 0.1
    """So many presses are wrong."""


TRIES = {
    "as installed": Try(why="one press in ten is wrong: of the answers called good a fifth"),
    "no wrong press": Try(why="bad answers are let go as they vanish, wrong good ones never", error=0.0),
    "doubting": Try(
        why="the same, mended: a good answer that becomes unlikely weighs less, too",
        settings={"objective": "tests.learning.larger:doubting"},
    ),
    "lasting": Try(
        why="the same, mended: the push against bad answers outlasts the wrong good ones",
        settings={"objective": "tests.learning.larger:lasting"},
    ),
    "kl 0": Try(why="the base pulls back what is good, the longer the more", settings={"kl": 0.0}),
    "4 passes": Try(why="a round overshoots, and comes back with more steps", settings={"max_passes": 4}),
    "32 steps": Try(why="as many steps as a round of 40 has", settings={"steps": 32}),
    "whole": Try(why="three fifths of the way were set on rounds of 40", settings={"strength": 0.85}),
    "200 steps": Try(why="200 ratings are looked at 5 times and not 8", settings={"steps": 200}),
}


def doubting(settings: TrainingSettings) -> Objective:
    """`tapered`, where a good answer, too, weighs what the policy has left of it."""

    def tokens(xp: Any, ratios: mispo.Ratios, low: float, high: float) -> Any:
        left = xp.exp(xp.clip(xp.cumsum(ratios.log, axis=1), None, 0.0))
        return xp.where(ratios.advantages > 0, left, mispo.taper(xp, ratios.log, ratios.reference))

    return _like_tapered(settings, "doubting", tokens)


def lasting(settings: TrainingSettings) -> Objective:
    """`tapered`, where a third of the push against a bad answer lasts."""

    def tokens(xp: Any, ratios: mispo.Ratios, low: float, high: float) -> Any:
        left = xp.clip(xp.exp(xp.clip(xp.cumsum(ratios.log, axis=1), None, 0.0)), 1 / 3, None)
        return xp.where(ratios.advantages > 0, 1.0, left * (1.0 - xp.exp(ratios.reference)))

    return _like_tapered(settings, "lasting", tokens)


def _like_tapered(settings: TrainingSettings, name: str, tokens: mispo.TokenTerm) -> Objective:
    mispo.VARIANTS[name] = replace(mispo.VARIANTS["tapered"], tokens=tokens)
    loss = replace(mispo.MisPo.from_settings(replace(settings, objective="tapered")), variant=name)
    return Objective(loss, partial(compute_advantages, decay=settings.ema_decay))


def wanted(arguments: argparse.Namespace) -> Iterator[tuple[int, str, str, int]]:
    """Size, what is tried, liked style, seed; seed by seed."""
    for seed in SEEDS[: arguments.seeds]:
        for size in arguments.sizes:
            for name in arguments.tries:
                for like in LIKES:
                    yield size, name, like, seed


def run(size: int, name: str, like: str, seed: int) -> Course:
    """One course."""
    from goodbot_training.backends.torch.trainer import TorchBackend

    one = TRIES[name]
    arm, stream = f"larger {name}", f"{size}, {name}"
    ARMS[arm] = replace(ARMS[DEFAULT], name=arm, settings={**ARMS[DEFAULT].settings, **one.settings})
    STREAMS[stream] = Stream(name=stream, about="", rate=press(one.error), asked=size, ratings=size)
    return take(TorchBackend(), arm=arm, stream=stream, like=like, seed=seed, answers=ANSWERS)


def text(done: Mapping[tuple[int, str, str, int], Course]) -> str:
    """A row a size and change."""
    rows = ["| ratings | changed | liked | terse | friendly | facts | KL | passed | |", "|" + "---|" * 9]
    for size, name in dict.fromkeys((size, name) for size, name, _, _ in done):
        some = [course for key, course in done.items() if key[:2] == (size, name)]
        by = [[c.live[-1].liked for c in some if c.like == like] for like in LIKES]
        told = [f"{fmean(one):.2f}" if one else "" for one in by]
        liked = estimate([c.live[-1].liked for c in some])
        lost, kl = estimate([facts(c) for c in some]), fmean(c.live[-1].kl for c in some)
        passed = f"{sum(c.passed[-1] for c in some)}/{len(some)}"
        cells = [str(size), name, str(liked), *told, f"{lost:.3f}", f"{kl:.3f}", passed, TRIES[name].why]
        rows.append(f"| {' | '.join(cells)} |")
    return "\n".join(rows)


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.learning.larger", description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="*", default=[40, 80, 200])
    parser.add_argument("--tries", nargs="*", default=list(TRIES), choices=list(TRIES))
    parser.add_argument("--seeds", type=int, default=len(SEEDS))
    parser.add_argument("--runs", type=Path, default=Path("build/larger.jsonl"))
    arguments = parser.parse_args(argv)
    import torch

    torch.set_num_threads(1)
    done: dict[tuple[int, str, str, int], Course] = {}
    if arguments.runs.exists():
        for line in arguments.runs.read_text(encoding="utf-8").splitlines():
            raw = json.loads(line)
            done[tuple(raw["key"])] = Course.from_json(json.dumps(raw["course"]))
    arguments.runs.parent.mkdir(parents=True, exist_ok=True)
    for key in wanted(arguments):
        if key not in done:
            done[key] = run(*key)
            with arguments.runs.open("a", encoding="utf-8") as file:
                file.write(json.dumps({"key": key, "course": json.loads(done[key].as_json())}) + "\n")
            end = done[key].live[-1]
            print(*key, f"liked {end.liked:.3f} facts {end.facts:.3f} kl {end.kl:.3f}", flush=True)
    print(text(done))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
