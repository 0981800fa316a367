"""The learning rate of each arm: the best of a few, on seeds that the study does not use.

    python -m tests.learning.rates kto bco "TRL KTO"

Of 0.1, 0.3, 0.6, 1 and 3 times the default rate the one with the largest liked share of the candidate
on the natural stream, mean over styles and seeds, of those that keep the facts within 3 points (of
all, where none does). What it prints is written into `tests.learning.arms` by hand.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from statistics import fmean

from tests.learning.arms import ARMS
from tests.learning.course import Course, take

RATES = (0.1, 0.3, 0.6, 1.0, 3.0)
SEEDS = (100, 101)
LIKED = ("terse", "friendly")
FACTS_MAY_FALL = 0.03
ANSWERS = 240


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.learning.rates", description=__doc__)
    parser.add_argument("arms", nargs="+", choices=list(ARMS))
    for arm in parser.parse_args(argv).arms:
        found: dict[float, list[Course]] = {}
        for rate in RATES:
            found[rate] = courses = _courses(arm, rate)
            shown = f"x{rate:<4} liked {_liked(courses):.3f}  facts {_lost(courses):+.3f}"
            print(f"{arm:13} {shown}", flush=True)
        kept = {r: c for r, c in found.items() if _lost(c) >= -FACTS_MAY_FALL} or found
        print(f"{arm:13} take {max(kept, key=lambda rate: _liked(kept[rate]))}", flush=True)
    return 0


def _courses(arm: str, rate: float) -> list[Course]:
    from goodbot_training.backends.torch.trainer import TorchBackend

    kept = ARMS[arm]
    ARMS[arm] = replace(kept, settings={**kept.settings, "learning_rate_scale": rate})
    try:
        return [
            take(TorchBackend(), arm=arm, stream="natural", like=like, seed=seed, answers=ANSWERS)
            for seed in SEEDS
            for like in LIKED
        ]
    finally:
        ARMS[arm] = kept


def _liked(courses: Sequence[Course]) -> float:
    return fmean(c.candidate[-1].liked for c in courses)


def _lost(courses: Sequence[Course]) -> float:
    return fmean(c.candidate[-1].facts - c.before.facts for c in courses)


if __name__ == "__main__":
    raise SystemExit(main())
