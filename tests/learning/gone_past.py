# SPDX-License-Identifier: Apache-2.0
"""The study's harmful candidates on the Llama, trained again: does the gate let one through?

    python -m tests.learning.gone_past             those of all arms, 20 minutes of one core
    python -m tests.learning.gone_past --write     and keeps them beside the page about first rounds

All are other objectives' (KTO, BCO, TRL's KTOTrainer). The study itself is older than the gate. Courses that
are done lie in `--runs` and are not run again; after a change of code, take another file.
"""

from __future__ import annotations

import argparse
import gzip
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from tests.learning.course import Course, take
from tests.learning.goals import HARM
from tests.learning.study import KEPT, RESULTS, key, stored

AGAIN = RESULTS / "gone_past.jsonl.gz"


def harmful(course: Course) -> Iterator[int]:
    """The rounds whose candidate lost that much against what it would have replaced."""
    for index, judged in enumerate(course.candidate):
        now = course.live[index - 1] if index else course.before
        if now.facts - judged.facts >= HARM or judged.malformed - now.malformed >= HARM:
            yield index


def counted(courses: Iterable[Course]) -> tuple[int, int]:
    """How many candidates are harmful, and how many of those passed."""
    found = [course.passed[index] for course in courses for index in harmful(course)]
    return len(found), sum(found)


def known() -> list[Course]:
    """The study's courses with such a candidate; first those in which it passed."""
    found = [one for one in stored(KEPT) if one.base == "llama" and any(True for _ in harmful(one))]
    return sorted(found, key=lambda one: (not counted([one])[1], len(one.candidate)))


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.learning.gone_past", description=__doc__)
    parser.add_argument("--runs", type=Path, default=Path("build/gone_past.jsonl"))
    parser.add_argument("--write", action="store_true", help="keep them, and renew the page")
    arguments = parser.parse_args(argv)
    wanted = known()
    done = {key(course): course for course in stored(arguments.runs)}
    for one in wanted:
        if key(one) not in done:
            done[key(one)] = _again(one)
            arguments.runs.parent.mkdir(parents=True, exist_ok=True)
            with arguments.runs.open("a", encoding="utf-8") as file:
                file.write(done[key(one)].as_json() + "\n")
    courses = [done[key(one)] for one in wanted]
    count, passed = counted(courses)
    print(f"{passed} of {count} harmful candidates pass", file=sys.stderr)
    if arguments.write:
        from tests.learning import first_rounds_page

        lines = "".join(f"{course.as_json()}\n" for course in courses)
        AGAIN.write_bytes(gzip.compress(lines.encode(), mtime=0))
        first_rounds_page.write()
    return 0


def _again(one: Course) -> Course:
    import torch
    from goodbot_training.backends.torch.trainer import TorchBackend

    torch.set_num_threads(1)
    course = take(
        TorchBackend(),
        arm=one.arm,
        stream=one.stream,
        like=one.like,
        seed=one.seed,
        answers=one.answers,
        base=one.base,
    )
    print(one.arm, one.stream, one.like, one.seed, course.passed, file=sys.stderr, flush=True)
    return replace(course, recipe=one.recipe)


if __name__ == "__main__":
    raise SystemExit(main())
