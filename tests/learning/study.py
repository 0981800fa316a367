"""The learning benchmark: every arm on every stream, over seeds, beside its controls.

    python -m tests.learning.study            the whole table (`make bench-learning`)
    python -m tests.learning.study --quick    two seeds, few answers (`make bench-learning-quick`)

Courses that are done lie in `--runs` (JSON lines) and are not run again: stop and go on as you
like. `--write` renews the table and the curves in `results/`.

The rule by which a default is chosen, stated before the table was made: among the variants of
MIS-PO, the one whose worst stream is best (liked gain, gate on, mean over styles and seeds), of
those that lose at most 3 points of facts on every stream.
"""

from __future__ import annotations

import argparse
import itertools
import multiprocessing
import os
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from tests.learning.arms import ARMS
from tests.learning.course import Course
from tests.learning.streams import STREAMS

RESULTS = Path(__file__).parent / "results"
LIKED = ("terse", "friendly")
SEEDS = 5
ANSWERS = 240
WORKERS = 2

Key = tuple[str, str, str, int, int]
"""Arm, stream, liked style, seed, judged answers."""


def main(argv: Sequence[str] | None = None) -> int:
    arguments = _arguments(argv)
    if arguments.quick:
        arguments.seeds, arguments.answers = 2, 120
        arguments.streams = ["natural", "bad only"]
        arguments.arms = ["frozen", "shuffled", "scale", "sign_aware", "kto"]
    wanted = [
        (arm, stream, like, seed, arguments.answers)
        for seed, like, stream, arm in itertools.product(
            range(arguments.seeds), arguments.like, arguments.streams, arguments.arms
        )
    ]
    done = {key(course): course for course in _stored(arguments.runs)}
    missing = [one for one in wanted if one not in done]
    began = time.perf_counter()
    for number, course in enumerate(_run(missing, arguments.workers), start=1):
        _append(arguments.runs, course)
        done[key(course)] = course
        left = (time.perf_counter() - began) / number * (len(missing) - number)
        print(
            f"{number}/{len(missing)}  {_line(course)}  {left / 60:.0f} min left", file=sys.stderr
        )
    from tests.learning import report

    courses = [done[one] for one in wanted]
    print(report.text(courses))
    if arguments.write:
        RESULTS.mkdir(exist_ok=True)
        report.write(courses, RESULTS)
    return 0 if report.musts_hold(courses) else 1


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.learning.study", description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--arms", nargs="*", default=list(ARMS), choices=list(ARMS))
    parser.add_argument("--streams", nargs="*", default=list(STREAMS), choices=list(STREAMS))
    parser.add_argument("--like", nargs="*", default=list(LIKED))
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--answers", type=int, default=ANSWERS, help="judged answers a policy")
    parser.add_argument("--workers", type=int, default=WORKERS)
    parser.add_argument("--runs", type=Path, default=Path("build/learning.jsonl"))
    parser.add_argument(
        "--write", action="store_true", help="renew results/study.md and its curves"
    )
    return parser.parse_args(argv)


def key(course: Course) -> Key:
    return (course.arm, course.stream, course.like, course.seed, course.answers)


def _stored(path: Path) -> Iterator[Course]:
    if path.exists():
        for line in path.read_text(encoding="utf-8").splitlines():
            yield Course.from_json(line)


def _append(path: Path, course: Course) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", encoding="utf-8") as file:
        file.write(course.as_json() + "\n")


def _run(keys: Sequence[Key], workers: int) -> Iterable[Course]:
    if not keys:
        return
    context = multiprocessing.get_context("spawn")
    with context.Pool(workers, initializer=_quiet) as pool:
        yield from pool.imap_unordered(_take, keys)


def _quiet() -> None:
    """One thread a worker: on two cores more of them only wait for each other."""
    import torch

    torch.set_num_threads(1)
    os.nice(5)


def _take(one: Key) -> Course:
    from goodbot_training.backends.torch.trainer import TorchBackend

    from tests.learning.course import take

    arm, stream, like, seed, answers = one
    return take(TorchBackend(), arm=arm, stream=stream, like=like, seed=seed, answers=answers)


def _line(course: Course) -> str:
    end = course.live[-1]
    return (
        f"{course.stream:12} {course.arm:13} {course.like:9} seed {course.seed} "
        f"liked {course.before.liked:.3f} → {end.liked:.3f}  "
        f"facts {course.before.facts:.3f} → {end.facts:.3f}  "
        f"passed {sum(course.passed)}/{len(course.passed)}"
    )


if __name__ == "__main__":
    raise SystemExit(main())
