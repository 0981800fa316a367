# SPDX-License-Identifier: Apache-2.0
"""The learning benchmark of the shipped model: does it learn what its owner likes, and nothing else?

For each liked style and seed: one round on 40 ratings (10 % wrong), and its control, the same
ratings dealt out at random. One deal of 40 correlates with the style by chance (its standard
deviation is 1/√32), so the control of a seed is the mean of several deals.
`python -m tests.learning.benchmark --write` renews `results/`.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import math
import platform
import sys
import time
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from statistics import fmean, stdev

from goodbot.api.plugins import PluginHost

from tests.learning.shipped import headed
from tests.learning.trial import RATER_ERROR, RATINGS, Trial, run_trial

LIKED = ("terse", "friendly")
SEEDS = 5
DEALS = 3
RESULTS = Path(__file__).parent / "results"


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.learning.benchmark", description=__doc__)
    parser.add_argument("--backend", default="torch", choices=("torch", "mlx"))
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--like", nargs="*", default=list(LIKED))
    parser.add_argument("--answers", type=int, default=480, help="judged answers a trial")
    parser.add_argument("--write", action="store_true", help=f"write {RESULTS.name}/BACKEND.md")
    arguments = parser.parse_args(argv)
    plugins = PluginHost()
    plugins.load_entry_points()
    module, _, name = plugins.backends()[arguments.backend].factory.partition(":")
    factory = getattr(import_module(module), name)
    began = time.process_time()
    sections: list[str] = []
    kept = True
    for like in arguments.like:
        trials: list[Trial] = []
        for seed in range(arguments.seeds):
            for deal in range(DEALS + 1):
                trial = run_trial(factory(), seed=seed, like=like, deal=deal, answers=arguments.answers)
                trials.append(trial)
                print(line(trial), file=sys.stderr, flush=True)
        sections.append(table(like, trials))
        kept &= musts(trials)
    text = "\n\n".join([header(arguments, time.process_time() - began), *sections]) + "\n"
    print(text)
    if arguments.write:
        RESULTS.mkdir(exist_ok=True)
        (RESULTS / f"{arguments.backend}.md").write_text(headed(text), encoding="utf-8")
    return 0 if kept else 1


def header(arguments: argparse.Namespace, seconds: float) -> str:
    names = ("torch", "transformers", "peft") if arguments.backend == "torch" else ("mlx", "mlx-lm")
    versions = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in names)
    return (
        f"# Learning, {arguments.backend}\n\n"
        f"{RATINGS} ratings (32 train, 8 held out), {RATER_ERROR:.0%} of them wrong; "
        f"{arguments.answers} judged answers to held-out questions a trial; {arguments.seeds} seeds.\n"
        f"Python {platform.python_version()}, {versions}, {platform.system()} {platform.machine()}; "
        f"{seconds:.0f} CPU seconds in all. Made by `python -m tests.learning.benchmark`."
    )


def line(trial: Trial) -> str:
    return (
        f"{trial.like:9} seed {trial.seed} {f'deal {trial.deal}' if trial.deal else 'rated '} "
        f"liked {trial.before.liked_share:.3f} → {trial.after.liked_share:.3f}  "
        f"facts {trial.before.facts:.3f} → {trial.after.facts:.3f}  "
        f"{'passed ' if trial.passed else 'refused'} {trial.cpu_seconds:5.1f} CPU s"
    )


def table(like: str, trials: Sequence[Trial]) -> str:
    """One table a liked style; the last lines hold what must be true."""
    rated = [trial for trial in trials if not trial.deal]
    control = [trial for trial in trials if trial.deal]
    deals = [[trial for trial in control if trial.seed == a.seed] for a in rated]
    net = [a.liked_gain - fmean(b.liked_gain for b in bs) for a, bs in zip(rated, deals, strict=True)]
    rows = [
        f"## Liking {like}\n",
        "| seed | liked before | after | after shuffled, each deal | gain minus shuffled gain "
        "| facts before | after | gate (shuffled) |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for a, bs, difference in zip(rated, deals, net, strict=True):
        after = " ".join(f"{b.after.liked_share:.3f}" for b in bs)
        rows.append(
            f"| {a.seed} | {a.before.liked_share:.3f} | {a.after.liked_share:.3f} | {after} | "
            f"{difference:+.3f} | {a.before.facts:.3f} | {a.after.facts:.3f} | "
            f"{'passed' if a.passed else 'refused'} ({sum(b.passed for b in bs)}/{len(bs)} passed) |"
        )
    rows += [
        "",
        f"* liked gain minus shuffled gain: {fmean(net):+.3f} (t = {t_value(net):.1f}); "
        "must be ≥ +0.20 with t ≥ 5, goal +0.30",
        f"* facts: {fmean(t.facts_change for t in rated):+.3f}; must not fall by more than 0.04, goal 0.02",
        f"* shuffled drift: {fmean(t.liked_gain for t in control):+.3f} on average, "
        f"{fmean(abs(t.liked_gain) for t in control):.3f} in size; goal ≤ 0.10",
        f"* a round: {fmean(t.cpu_seconds for t in trials):.1f} CPU seconds, gate included",
    ]
    return "\n".join(rows)


def musts(trials: Sequence[Trial]) -> bool:
    """Whether one liked style was learnt as it must be."""
    rated = [trial for trial in trials if not trial.deal]
    net = [a.liked_gain - fmean(b.liked_gain for b in trials if b.deal and b.seed == a.seed) for a in rated]
    return fmean(net) >= 0.2 and t_value(net) >= 5 and fmean(t.facts_change for t in rated) >= -0.04


def t_value(differences: Sequence[float]) -> float:
    """Student's t of a mean against 0 (paired by seed)."""
    if len(differences) < 2:
        return math.nan
    spread = stdev(differences)
    return fmean(differences) / (spread / math.sqrt(len(differences))) if spread else math.inf


if __name__ == "__main__":
    raise SystemExit(main())
