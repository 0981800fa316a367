# SPDX-License-Identifier: Apache-2.0
"""Does it pay to choose which answers ask for a rating? Gain a rating, against asking at random.

    python -m tests.learning.asking              all of it: half an hour of one core
    python -m tests.learning.asking --write      the page anew from the kept courses

A course has four rounds of 20 ratings of one style, one press in ten wrong. Its policy answers questions
until 20 of them have asked for a rating, one of five at most; the ways to ask differ in the score by which
those are chosen. `every` asks at each answer. Courses that are done lie in
`--runs` and are not run again; after a change of code, take another file.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise, product
from pathlib import Path
from random import Random
from statistics import fmean, median, stdev
from typing import NamedTuple

from goodbot.api.backend import LoraSettings, TrainingBackend
from goodbot.api.sampler import Sampled
from goodbot.learning.rating_quality.near_duplicates import words
from goodbot_training.round import run as training_round
from goodbot_training.tiny.corpus import split
from goodbot_training.tiny.facts import FactQuestion
from goodbot_training.tiny.judge import SimulatedRater

from tests.learning.arms import ARMS, DEFAULT, Arm
from tests.learning.bases import BASES
from tests.learning.course import ask, exam_of, fresh, job_of
from tests.learning.exam import judge, sample
from tests.learning.shipped import headed
from tests.learning.streams import Rated as Row
from tests.learning.writers import Writer

RESULTS = Path(__file__).parent / "results"
KEPT = RESULTS / "asking.jsonl"
PAGE = RESULTS / "asking.md"
LIKES = ("friendly", "terse")
SEEDS = (900, 901, 902, 903, 904)
ROUNDS, RATINGS = 4, 20
EVERY, PATIENCE = 5, 8
"""One of five answers asks at most, and one after eight that have not."""
FREQUENT = 4
"""A word of fewer letters tells no topic."""
POOL = (PATIENCE + 1) * RATINGS
"""Answers of a round: there are always enough."""
EXAM = 240
ERROR = 0.1


class Rated(NamedTuple):
    """An answer that was rated."""

    question: str
    answer: str
    good: bool


class Request(NamedTuple):
    """Of an answer: how much was to be learnt of it, and whether it has asked."""

    score: float
    asked: bool


def asks(score: float, before: Sequence[Request]) -> bool:
    """Whether an answer of this score asks for a rating, after those `before` (newest first).

    One of `EVERY` does at most: where the last four have not, one that is in the better half of those before;
    the first one, and one after `PATIENCE` that have not, whatever its score.
    """
    since = next((n for n, one in enumerate(before) if one.asked), len(before))
    if not before or since >= PATIENCE:
        return True
    return since >= EVERY - 1 and score >= median(one.score for one in before[:PATIENCE])


class Known:
    """What rated answers tell of others, by their words."""

    def __init__(self, rated: Sequence[Rated]) -> None:
        self._good = Counter(w for one in rated if one.good for w in _features(one.answer))
        self._bad = Counter(w for one in rated if not one.good for w in _features(one.answer))
        self._goods = sum(one.good for one in rated)
        self._bads = len(rated) - self._goods
        self._topics = Counter(w for one in rated for w in _topic(one.question))

    def novelty(self, question: str) -> float:
        """How few ratings there are of its topic, in [0, 1]: the mean over its words of 1 / (1 + ratings)."""
        topic = _topic(question)
        return fmean(1 / (1 + self._topics[w]) for w in topic) if topic else 0.0

    def liked(self, answer: str) -> float:
        """How much likelier an answer is among the liked than among the disliked: a share in (0, 1).

        Naive Bayes over its words and pairs of words, each counted once an answer, with an answer more in
        each half that has the word and one that has it not. Both halves weigh the same.
        """
        margin = sum(
            math.log((self._good[w] + 1) / (self._goods + 2))
            - math.log((self._bad[w] + 1) / (self._bads + 2))
            for w in _features(answer)
        )
        return 1 / (1 + math.exp(-max(-30.0, min(30.0, margin))))

    def doubt(self, answer: str) -> float:
        """How little the liked half and the disliked half differ on an answer: bits of entropy, in [0, 1]."""
        p = self.liked(answer)
        return -sum(q * math.log2(q) for q in (p, 1 - p))

    def rarer(self, answer: str) -> float:
        """How likely it is to be rated as fewer answers have been, in (0, 1)."""
        p = self.liked(answer)
        return p if self._goods < self._bads else 1 - p


def _topic(question: str) -> set[str]:
    return {w for w in words(question) if len(w) >= FREQUENT}


def _features(answer: str) -> set[str]:
    said = words(answer)
    return {*said, *map(" ".join, pairwise(said))}


Score = Callable[[Known, str, Sampled, Random], float]
"""`(what is known, question, answer, random)` → how much is to be learnt"""
WAYS: dict[str, Score | None] = {
    "every": None,
    "random": lambda known, question, answer, random: random.random(),
    "novelty": lambda known, question, answer, random: known.novelty(question),
    "doubt": lambda known, question, answer, random: known.doubt(answer.text),
    "both": lambda known, question, answer, random: known.doubt(answer.text) + known.novelty(question),
    "likely": lambda known, question, answer, random: fmean(answer.logprobs),
    "rarer": lambda known, question, answer, random: known.rarer(answer.text),
}
"""`both` is doubt and novelty; `likely` the answer that the model itself finds likeliest."""


class Key(NamedTuple):
    """One course."""

    way: str
    like: str
    seed: int


class Course(NamedTuple):
    """What came of it; lists have an entry a round, the first is before all."""

    key: Key
    liked: list[float]
    facts: list[float]
    good: list[float]
    """The share of the ratings that were 👍."""
    answers: list[int]
    """How many there were until enough had asked."""


def chosen(
    way: str, pairs: Sequence[tuple[FactQuestion, Sampled]], history: list[Rated], like: str, seed: int
) -> tuple[list[Row], int]:
    """The ratings of a round, and how many answers it took; `history` goes on with them."""
    score, random, rater = WAYS[way], Random(seed), SimulatedRater(like, ERROR, seed)
    rows: list[Row] = []
    before: list[Request] = []
    known = Known(history)
    for number, (question, answer) in enumerate(pairs, 1):
        worth = score(known, question.text, answer, random) if score else 0.0
        asked = score is None or asks(worth, before)
        before.insert(0, Request(worth, asked))
        if asked:
            rating = rater.rate(question.text, answer.text)
            rows.append(Row(question, answer, rating))
            history.append(Rated(question.text, answer.text, rating > 0))
            known = Known(history)
        if len(rows) == RATINGS:
            return rows, number
    raise AssertionError("too few answers")


def take(backend: TrainingBackend, one: Key) -> Course:
    """Run one course."""
    model = BASES["tiny"].obtain()
    arm = ARMS[DEFAULT]
    arm = Arm(name=arm.name, about=arm.about, settings={**arm.settings, "gate_anchors": 0})
    train, exam, exam_seed = split(one.seed)[0], exam_of(one.seed, EXAM), 500_000 * (one.seed + 1)
    backend.load(model, lora=LoraSettings(), seed=0)
    before = judge(exam, sample(backend.sampler(), exam, exam_seed), one.like, 0.0)
    course = Course(one, [before.liked], [before.facts], [], [])
    history: list[Rated] = []
    parent: Path | None = None
    baseline = {"mean": 0.0, "weight": 0.0}
    versions: dict[str, str] = {}
    with tempfile.TemporaryDirectory() as temporary:
        for number in range(ROUNDS):
            asked = ask(train, POOL, one.seed, number)
            drawn = Writer(model=model).write(backend, asked, parent, 1000 * (one.seed + 1) + 10_000 * number)
            pairs = list(zip(asked, drawn, strict=True))
            rows, answers = chosen(one.way, pairs, history, one.like, 100 * one.seed + number)
            place = Path(temporary) / f"round-{number}"
            place.mkdir()
            items = [item.trains() for item in fresh(rows, number, len(versions))]
            job = job_of(items, model, 1000 * one.seed + number, parent, baseline, place, arm, versions)
            done: list[dict[str, dict[str, float]]] = []
            training_round.run_round(job, backend, done.append)
            baseline, parent = done[-1]["baseline"], place
            versions[str(number + 1)] = str(place)
            after = judge(exam, Writer(model=model).write(backend, exam, place, exam_seed), one.like, 0.0)
            course.liked.append(after.liked)
            course.facts.append(after.facts)
            course.good.append(fmean(row.rating > 0 for row in rows))
            course.answers.append(answers)
    return course


def stored(path: Path) -> dict[Key, Course]:
    """The courses that are done."""
    rows = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    courses = [Course(Key(*found[0]), *found[1:]) for found in map(json.loads, rows)]
    return {course.key: course for course in courses}


class Gain(NamedTuple):
    """Of one way: means over styles and seeds."""

    courses: int
    liked: list[float]
    """After each round; the first is before all."""
    facts: float
    good: float
    answers: float
    a_rating: float
    """Points of liked that one rating has gained, over all rounds of all courses."""
    more: float
    """By how many points the mean over the rounds is above that of `random`, course by course."""
    within: float
    """Two standard errors, over the courses."""


def area(course: Course) -> float:
    """The mean over the rounds of what is liked after each."""
    return fmean(course.liked[1:])


def gain(done: dict[Key, Course], way: str) -> Gain:
    """Of the courses of a way that `random` has done, too."""
    courses = [one for one in done.values() if one.key.way == way]
    pairs = [(one, done.get(one.key._replace(way="random"))) for one in courses]
    more = [100 * (area(one) - area(other)) for one, other in pairs if other]
    ratings = ROUNDS * RATINGS
    return Gain(
        courses=len(courses),
        liked=[fmean(of) for of in zip(*(one.liked for one in courses), strict=True)],
        facts=fmean(one.facts[-1] for one in courses),
        good=fmean(fmean(one.good) for one in courses),
        answers=fmean(sum(one.answers) / ratings for one in courses),
        a_rating=fmean(100 * (one.liked[-1] - one.liked[0]) / ratings for one in courses),
        more=fmean(more),
        within=2 * stdev(more) / len(more) ** 0.5 if len(more) > 1 else math.inf,
    )


def page(done: dict[Key, Course]) -> Iterator[str]:
    """The page, line by line."""
    yield "# Which answers ask for a rating"
    yield ""
    yield (
        f"Written by `python -m tests.learning.asking --write` from `{KEPT.name}`: courses of {ROUNDS} "
        f"rounds of {RATINGS} ratings each, one press in ten wrong. *Liked*: "
        f"shares of {EXAM} held-out questions. *Ahead of random*: of the mean over the rounds, in points, on "
        "the same questions, ± two standard errors over the courses that both have taken."
    )
    yield ""
    rounds = [f"after {RATINGS * number}" for number in range(1, ROUNDS + 1)]
    head = [
        "asks",
        "liked before",
        *rounds,
        "facts",
        "👍",
        "answers a rating",
        "points a rating",
        "ahead of random",
    ]
    yield f"| {' | '.join(head)} |"
    yield "|---" * len(head) + "|"
    for way in [way for way in WAYS if any(key.way == way for key in done)]:
        found = gain(done, way)
        known = way != "random" and math.isfinite(found.within)
        ahead = f"{found.more:+.1f} ± {found.within:.1f}" if known else ""
        cells = [
            way,
            found.courses,
            *(f"{one:.3f}" for one in found.liked),
            f"{found.facts:.3f}",
            f"{found.good:.2f}",
        ]
        yield f"| {' | '.join([*map(str, cells), f'{found.answers:.1f}', f'{found.a_rating:.2f}', ahead])} |"


def main(argv: Sequence[str] | None = None) -> int:
    """Run what is missing, and print the page."""
    parser = argparse.ArgumentParser(prog="python -m tests.learning.asking")
    parser.add_argument("--runs", type=Path, default=Path("build/asking.jsonl"))
    parser.add_argument("--seed", type=int, nargs="+", default=list(SEEDS))
    parser.add_argument("--way", nargs="+", choices=WAYS, default=list(WAYS))
    parser.add_argument("--write", action="store_true", help="the page from the kept courses; nothing is run")
    options = parser.parse_args(argv)
    if options.write:
        PAGE.write_text(headed("\n".join(page(stored(KEPT))) + "\n", PAGE), encoding="utf-8")
        return 0
    done = stored(options.runs)
    wanted = [Key(way, like, seed) for seed, like, way in product(options.seed, LIKES, options.way)]
    options.runs.parent.mkdir(parents=True, exist_ok=True)
    for course in _run([one for one in wanted if one not in done]):
        done[course.key] = course
        with options.runs.open("a", encoding="utf-8") as file:
            file.write(json.dumps(course) + "\n")
    print("\n".join(page(done)))
    return 0


def _run(missing: Iterable[Key]) -> Iterator[Course]:
    import torch
    from goodbot_training.backends.torch.trainer import TorchBackend

    torch.set_num_threads(1)
    for one in missing:
        course = take(TorchBackend(), one)
        print(*one, [round(liked, 3) for liked in course.liked], file=sys.stderr, flush=True)
        yield course


if __name__ == "__main__":
    raise SystemExit(main())
