# SPDX-License-Identifier: Apache-2.0
"""The learning benchmark: every arm on every stream and base, over seeds, beside its controls.

    python -m tests.learning.study            the whole of it (`make bench-learning`)
    python -m tests.learning.study --quick    one base, two seeds, few answers (`... -quick`)

Courses that are done lie in `--runs` (JSON lines) and are not run again: stop and go on as you
like. A course of other settings is another course; after a change of code, take another file. `--write`
renews the report, the curves and the courses themselves in `results/`; with `--kept` those count as
done, so that after a change of one arm only that one is run.

The rule by which a default is chosen, stated before the table was made: among the variants of
MIS-PO, the one whose worst stream is best (liked gain, gate on, mean over styles and seeds, over
all bases), of those that lose at most 3 points of facts on every stream. Bad-only is left out of
the gain, for there all of them stand still by design, but not of the facts.

What it costs: 2970 courses with 3190 rounds took 11 000 CPU seconds, 2.3 a round and 7.6 by TRL, gates
included; each round's exam is about 1 more. Two hours on two cores. The frozen base costs
nothing; the untrained model's answers are sampled once for all arms.
"""

from __future__ import annotations

import argparse
import gzip
import multiprocessing
import os
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from tests.learning.bases import BASES
from tests.learning.course import Course
from tests.learning.plan import FULL, QUICK, WORDS, Key, Part, keys
from tests.learning.shipped import refuse_mixture
from tests.learning.streams import STREAMS

RESULTS = Path(__file__).parent / "results"
KEPT = RESULTS / "study.jsonl.gz"
SEEDS = 5
ANSWERS = 240
WORKERS = 2


def main(argv: Sequence[str] | None = None) -> int:
    arguments = _arguments(argv)
    seeds, answers = (2, 120) if arguments.quick else (arguments.seeds, arguments.answers)
    plan = WORDS if arguments.words else QUICK if arguments.quick else FULL
    parts = list(_only(plan, arguments))
    wanted = list(keys(parts, seeds, answers))
    name = "words" if arguments.words else "study"
    kept = stored(RESULTS / f"{name}.jsonl.gz") if arguments.kept else ()
    done = {key(course): course for course in (*kept, *stored(arguments.runs))}
    missing = [one for one in wanted if one not in done]
    if arguments.kept and missing:
        refuse_mixture(RESULTS / f"{name}.md")
    began = time.perf_counter()
    for number, course in enumerate(_run(missing, arguments.workers), start=1):
        _append(arguments.runs, course)
        done[key(course)] = course
        left = (time.perf_counter() - began) / number * (len(missing) - number)
        _say(f"{number}/{len(missing)}  {_line(course)}  {left / 60:.0f} min left")
    from tests.learning import goals, report

    courses = [done[one] for one in wanted]
    print(report.text(courses))
    if arguments.write:
        RESULTS.mkdir(exist_ok=True)
        report.write(courses, RESULTS, name, fresh=not arguments.kept)
        lines = "".join(f"{course.as_json()}\n" for course in courses)
        (RESULTS / f"{name}.jsonl.gz").write_bytes(gzip.compress(lines.encode(), mtime=0))
    return 0 if goals.musts_hold(courses) else 1


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.learning.study", description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--words", action="store_true", help="the streams of words")
    parser.add_argument("--base", nargs="*", default=list(BASES), choices=list(BASES))
    parser.add_argument("--arms", nargs="*", default=[], help="these only")
    parser.add_argument("--streams", nargs="*", default=list(STREAMS), choices=list(STREAMS))
    parser.add_argument("--like", nargs="*", default=[], help="these styles only")
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--answers", type=int, default=ANSWERS, help="judged answers a policy")
    parser.add_argument("--workers", type=int, default=WORKERS)
    parser.add_argument("--runs", type=Path, default=Path("build/learning.jsonl"))
    parser.add_argument("--kept", action="store_true", help="what lies in results/ is done")
    parser.add_argument("--write", action="store_true", help="renew results/study.md and curves")
    return parser.parse_args(argv)


def _only(parts: Iterable[Part], arguments: argparse.Namespace) -> Iterator[Part]:
    """The plan, cut down to what the command line names."""
    for part in parts:
        if part.base in arguments.base:
            yield replace(
                part,
                streams=tuple(name for name in part.streams if name in arguments.streams),
                arms=tuple(arm for arm in part.arms if arm in (arguments.arms or part.arms)),
                likes=tuple(one for one in part.likes if one in (arguments.like or part.likes)),
            )


def key(course: Course) -> Key:
    """Under which a finished course is found again."""
    return Key(
        base=course.base,
        seed=course.seed,
        stream=course.stream,
        like=course.like,
        arm=course.arm,
        answers=course.answers,
        recipe=course.recipe,
    )


def stored(path: Path) -> Iterator[Course]:
    """What is done. A line that a kill cut off is dropped, and its course run again."""
    if path.suffix == ".gz":
        yield from map(Course.from_json, gzip.decompress(path.read_bytes()).decode().splitlines())
    elif path.exists():
        text = path.read_text(encoding="utf-8")
        whole = text[: text.rfind("\n") + 1]
        if whole != text:
            path.write_text(whole, encoding="utf-8")
        yield from map(Course.from_json, whole.splitlines())


def _append(path: Path, course: Course) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", encoding="utf-8") as file:
        file.write(course.as_json() + "\n")


def _run(keys: Sequence[Key], workers: int) -> Iterable[Course]:
    if not keys:
        return
    context = multiprocessing.get_context("spawn")
    with context.Pool(workers, initializer=_quiet) as pool:
        pool.map(_obtain, sorted({one.base for one in keys}), chunksize=1)
        yield from pool.imap_unordered(_take, keys)
        pool.close()
        pool.join()


def _quiet() -> None:
    """One thread a worker: on two cores more of them only wait for each other."""
    import torch

    torch.set_num_threads(1)
    os.nice(5)


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def _obtain(base: str) -> None:
    BASES[base].obtain(_say)


def _take(one: Key) -> Course:
    parent = multiprocessing.parent_process()
    if parent is not None and not parent.is_alive():
        raise SystemExit("the study was killed")  # its workers hold tasks for hours
    from goodbot_training.backends.torch.trainer import TorchBackend

    from tests.learning.course import take

    return take(
        TorchBackend(),
        arm=one.arm,
        stream=one.stream,
        like=one.like,
        seed=one.seed,
        answers=one.answers,
        base=one.base,
    )


def _line(course: Course) -> str:
    end = course.live[-1]
    return (
        f"{course.base:9} {course.stream:14} {course.arm:13} {course.like:8} seed {course.seed} "
        f"liked {course.before.liked:.3f} → {end.liked:.3f}  "
        f"facts {course.before.facts:.3f} → {end.facts:.3f}  "
        f"passed {sum(course.passed)}/{len(course.passed)}  {course.cpu_seconds:.1f} CPU s"
    )


if __name__ == "__main__":
    raise SystemExit(main())
