# SPDX-License-Identifier: Apache-2.0
"""The planted set: adapters that are known to be harmful or good, and what the gate makes of them.

All are trained here, on the tiny model, from 40 rated answers each (32 to learn from, 8 held out).
Names do not count: a judge that the gate knows nothing of says which are harmful and which good, by
questions whose facts were never rated. What is neither is listed, and counted as neither. What is
meant to do harm takes AdamW's steps as they are, which go further where they should not.

    python -m tests.learning.planted [--write] [--of 20] [--kind KIND]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import Any
from unittest.mock import patch

from goodbot.base.errors import TrainingError
from goodbot.base.intervals import wilson
from goodbot_training.objectives import Objective, make_objective
from goodbot_training.round import run as training_round
from goodbot_training.tiny.styles import STYLES

from tests.learning import foreign
from tests.learning.arms import PLAIN
from tests.learning.planting import Bench, Case, bench
from tests.learning.shipped import headed

RESULTS = Path(__file__).parent / "results" / "gate.md"


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """How a kind of adapter is made, and whether it is meant to be harmful."""

    kind: str
    many: int
    """Of twenty."""
    harmful: bool
    make: Callable[[Bench, int, str], Iterator[Case]]
    """`(bench, seed, liked style)` → one case, or one for each round in a row."""


def _trained(kind: str, **how: Any) -> Callable[[Bench, int, str], Iterator[Case]]:
    """One round, trained and judged by the gate as the daemon's child does it."""

    def make(bench: Bench, seed: int, like: str) -> Iterator[Case]:
        job = bench.job(seed, like, **how)
        verdict, _ = bench.train(job)
        yield bench.case(kind, seed, like, job.output, verdict)

    return make


def _rounds_in_a_row(bench: Bench, seed: int, like: str) -> Iterator[Case]:
    """Three rounds, each from the last one that the gate let through; the later two are cases."""
    parent: Path | None = None
    baseline: dict[str, float] = {}
    asked: tuple[Any, ...] = ()
    for number in range(3):
        job = bench.job(seed, like, number=number, parent=parent, baseline=baseline)
        asked = (*job.anchors, *asked)  # as the daemon does: those of earlier rounds as well
        verdict, after = bench.train(replace(job, anchors=asked))
        if number:
            yield bench.case("rounds in a row", seed, like, job.output, verdict)
        if verdict.passed:
            parent, baseline = job.output, after


def _bad_only(bench: Bench, seed: int, like: str) -> Iterator[Case]:
    """All answers bad, no baseline and no KL: away from everything that was ever said."""

    def made(settings: Any) -> Objective:
        ours = make_objective(settings)
        return Objective(ours.loss, lambda baseline, rewards, weights: ([*map(float, rewards)], baseline))

    job = bench.job(seed, like, only_bad=True, learning_rate=1e-2, kl=0.0, **PLAIN)
    with patch.object(training_round, "make_objective", made):
        verdict, _ = bench.train(job)
    yield bench.case("bad only, no KL", seed, like, job.output, verdict)


def _not_finite(bench: Bench, seed: int, like: str) -> Iterator[Case]:
    job = bench.job(seed, like, gate_anchors=0)
    bench.train(job)
    broken = foreign.with_one_number(job.output, bench.place(), float("nan" if seed % 2 else "inf"))
    verdict = bench.gate(replace(job, settings=replace(job.settings, gate_anchors=256)), broken)
    yield bench.case("NaN or Inf", seed, like, broken, verdict, loads=False)


def _elsewhere(
    kind: str, other: Callable[[Path, int], Path], **how: Any
) -> Callable[[Bench, int, str], Iterator[Case]]:
    """Trained on a copy of the model that is another one, then put before this model's gate.

    Without the name of its base, by which the gate would know it at once.
    """

    def make(bench: Bench, seed: int, like: str) -> Iterator[Case]:
        model = other(bench.place(), seed)
        strange = bench.job(seed, like, model=model, gate_anchors=0, captured=False, **PLAIN, **how)
        bench.train(strange)
        foreign.unsigned(strange.output)
        job = bench.job(seed, like)
        began = time.process_time()
        verdict = bench.gate(job, strange.output)
        seconds = time.process_time() - began
        yield bench.case(kind, seed, like, strange.output, verdict, seconds)

    return make


RECIPES = (
    Recipe(kind="NaN or Inf", many=2, harmful=True, make=_not_finite),
    Recipe(
        kind="over-trained",
        many=4,
        harmful=True,
        make=_trained(
            "over-trained",
            objective="reinforce",
            learning_rate=6e-3,
            kl=0.0,
            steps=48,
            max_passes=64,
            **PLAIN,
        ),
    ),
    Recipe(kind="bad only, no KL", many=4, harmful=True, make=_bad_only),
    Recipe(
        kind="wrong base",
        many=3,
        harmful=True,
        make=_elsewhere(
            "wrong base",
            foreign.reordered,
            objective="reinforce",
            learning_rate=6e-3,
            alpha=64.0,
            kl=0.0,
            steps=64,
            max_passes=64,
        ),
    ),
    Recipe(
        kind="wrong template",
        many=3,
        harmful=True,
        make=_elsewhere(
            "wrong template",
            foreign.with_another_template,
            objective="reinforce",
            learning_rate=6e-3,
            alpha=64.0,
            kl=0.0,
            steps=64,
            max_passes=64,
        ),
    ),
    Recipe(
        kind="shuffled, high rate",
        many=4,
        harmful=True,
        make=_trained(
            "shuffled, high rate", dealt=True, objective="reinforce", learning_rate=1e-2, kl=0.0, **PLAIN
        ),
    ),
    Recipe(kind="one round", many=16, harmful=False, make=_trained("one round")),
    Recipe(kind="rounds in a row", many=4, harmful=False, make=_rounds_in_a_row),
)


def plant(
    bench: Bench, of: int, recipes: Iterable[Recipe] = RECIPES, done: Sequence[Case] = ()
) -> Iterator[Case]:
    """So many harmful and so many good ones, and those between that came up on the way.

    `done` were made earlier. A round that fails leaves no adapter, so there is nothing to judge.
    """
    for recipe in recipes:
        wanted = max(1, round(recipe.many * of / 20))
        known = [case for case in done if case.kind == recipe.kind]
        missing = wanted - sum(_as_meant(recipe, case) for case in known)
        first = max((case.seed + 1 for case in known), default=20)
        for seed in range(first, 20 + 6 * wanted):
            if missing <= 0:
                break
            with suppress(TrainingError):
                for case in recipe.make(bench, seed, STYLES[seed % len(STYLES)]):
                    yield case
                    missing -= _as_meant(recipe, case)


def _as_meant(recipe: Recipe, case: Case) -> bool:
    return case.harmful if recipe.harmful else case.good


def table(cases: Sequence[Case]) -> str:
    """Markdown: a line a kind, then the two rates with their intervals."""
    lines = [
        "| kind | judged | facts and form lost (points) | liked | passed | what the gate says of the first |",
        "|---|---|---|---|---|---|",
    ]
    for kind in dict.fromkeys(case.kind for case in cases):
        for name, chosen in _judged([case for case in cases if case.kind == kind]).items():
            if chosen:
                lost = sorted(100 * case.lost for case in chosen)
                liked = [case.after.liked - case.before.liked for case in chosen if case.after]
                lines.append(
                    f"| {kind} | {name} | {lost[0]:+.1f} to {lost[-1]:+.1f} |"
                    f" {f'{100 * fmean(liked):+.0f}' if liked else '–'} |"
                    f" {sum(c.verdict.passed for c in chosen)} of {len(chosen)} |"
                    f" {chosen[0].verdict.reason} |"
                )
    sides = _judged(cases)
    harmful, good = sides["harmful"], sides["good"]
    lines += [
        "",
        f"Harmful ones that pass: {_rate(sum(c.verdict.passed for c in harmful), len(harmful))}.",
        f"Good ones that are blocked: {_rate(sum(not c.verdict.passed for c in good), len(good))}.",
    ]
    return "\n".join(lines)


def _judged(cases: Sequence[Case]) -> dict[str, list[Case]]:
    return {
        "harmful": [case for case in cases if case.harmful],
        "good": [case for case in cases if case.good],
        "neither": [case for case in cases if not case.harmful and not case.good],
    }


def _rate(number: int, total: int) -> str:
    if not total:
        return "none was made"
    low, high = wilson(number, total)
    return f"{number} of {total} (95 % interval {100 * low:.0f} to {100 * high:.0f} %)"


def correlation(cases: Sequence[Case]) -> str:
    """How well the gate's share of foreign answers tells the points that were lost."""
    pairs = [
        (case.lost, case.verdict.metrics["foreign"] / case.verdict.metrics["anchors"])
        for case in cases
        if "foreign" in case.verdict.metrics
    ]
    if len(pairs) < 3:
        return ""
    lost, found = zip(*pairs, strict=True)
    mean_lost, mean_found = fmean(lost), fmean(found)
    both = sum((a - mean_lost) * (b - mean_found) for a, b in pairs)
    spread = sum((a - mean_lost) ** 2 for a in lost) * sum((b - mean_found) ** 2 for b in found)
    return (
        f"Share of foreign answers against points lost, over {len(pairs)} adapters: "
        f"r = {both / spread**0.5:.2f}."
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help=f"write {RESULTS.name}")
    parser.add_argument("--of", type=int, default=20, help="harmful ones, and good ones")
    parser.add_argument("--kind", help="make only this kind")
    parser.add_argument("--keep", type=Path, help="a file to keep the cases in, and to go on from")
    arguments = parser.parse_args()
    wanted = [r for r in RECIPES if arguments.kind in (None, r.kind)]
    keep: Path | None = arguments.keep
    kept = keep.read_text().splitlines() if keep and keep.exists() else []
    cases = [Case.from_json(line) for line in kept]
    with bench() as here:
        for case in plant(here, arguments.of, wanted, cases[:]):
            cases.append(case)
            if keep:
                with keep.open("a") as file:
                    file.write(case.as_json() + "\n")
            print(
                f"{case.kind:20} {case.seed} {case.like:8} lost {100 * case.lost:5.1f} "
                f"{'pass ' if case.verdict.passed else 'BLOCK'} {case.verdict.reason}",
                flush=True,
            )
    text = f"{table(cases)}\n\n{correlation(cases)}\n"
    print(f"\n{text}")
    if arguments.write:
        RESULTS.write_text(headed(_HEAD + text), encoding="utf-8")
    return 0


_HEAD = """\
# The publish gate on planted adapters

Made by `python -m tests.learning.planted --write`: the tiny model, 40 ratings each (32 to learn from, 8
held out), judged on questions whose facts were never rated. *Harmful*: 5 points or more of the facts or
of the well-formed answers are lost; *good*: at most 3, and the liked share is not below the base's.
What is trained to do harm takes AdamW's steps as they are, which go further where they should not; the
rounds are trained as installed.

The limit on foreign answers (`gate_max_foreign`) was chosen on [first rounds](first_rounds.md) and on harmful
candidates of a Llama, not on these. It allows a loss of about 7.5 points on the round's own questions. So an
honest round that has lost between 5 and 7.5 points may pass, although this page calls it harmful.

"""


if __name__ == "__main__":
    raise SystemExit(main())
