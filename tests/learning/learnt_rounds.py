# SPDX-License-Identifier: Apache-2.0
"""Does a round say what it has learnt, and nothing where ratings say nothing?

    python -m tests.learning.learnt_rounds             20 planted and 20 shuffled rounds: 4 minutes
    python -m tests.learning.learnt_rounds --rounds 60 --write    more of them, and the page

Each round is a first one of the shipped model: 40 ratings, one press in ten wrong, trained as installed. In a
planted round one habit is liked; in its shuffled twin the same answers have the same ratings, dealt out at
random. What a round names is checked by 240 answers to other questions, which it never saw. Rounds that are
done lie in `--runs` and are not run again; after a change of code, take another file.
"""

from __future__ import annotations

import argparse
import gzip
import json
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from random import Random
from statistics import median
from typing import Any, NamedTuple
from unittest.mock import patch

from goodbot.api.backend import LoraSettings, TrainingBackend
from goodbot.api.learnt import LENGTH
from goodbot.api.sampler import Sampled
from goodbot.base.intervals import wilson
from goodbot_training.learnt import measure
from goodbot_training.learnt.features import OPENS, features, table
from goodbot_training.round.run import run_round
from goodbot_training.tiny import model_path
from goodbot_training.tiny.corpus import split
from goodbot_training.tiny.judge import SimulatedRater
from goodbot_training.tiny.styles import FIRST_WORDS

from tests.learning.arms import ARMS, DEFAULT
from tests.learning.course import exam_of, fresh, job_of
from tests.learning.exam import sample
from tests.learning.shipped import headed, refuse_mixture
from tests.learning.streams import RATINGS, Rated

RESULTS = Path(__file__).parent / "results"
KEPT, PAGE = RESULTS / "learnt_rounds.jsonl.gz", RESULTS / "learnt_rounds.md"
SHORT = "short"
PLANTED: dict[str, tuple[str, str, int]] = {
    SHORT: (LENGTH, "", -1),
    "terse": (LENGTH, "", -1),
    **{like: (OPENS, word, 1) for like, word in zip(("friendly", "pirate"), FIRST_WORDS, strict=True)},
}
"""What is liked, and what has to be named of it: feature, word and direction."""
UNRATED = 32
"""Questions whose answers nobody has rated, beside the 40 that are: people rate fewer than half of all."""
ROUNDS = 20
EXAM = 240
ERROR = 0.1
_SURE = 0.02


class Key(NamedTuple):
    """One round. `shuffled`: its ratings are dealt out at random."""

    like: str
    seed: int
    shuffled: bool


@dataclass(frozen=True, kw_only=True)
class Found:
    """What a round named, `feature word` → its change, and what the exam says of the same."""

    key: Key
    passed: bool
    named: dict[str, float]
    exam: dict[str, float]
    answers: int
    questions: int
    cpu: float
    cpu_learnt: float

    @property
    def right(self) -> bool:
        """Whether what was planted is named."""
        feature, word, sign = PLANTED[self.key.like]
        return self.named.get(f"{feature} {word}".strip(), 0.0) * sign > 0

    @property
    def wrong(self) -> list[str]:
        """What is named, and is not so on other questions."""
        return [
            name for name, change in self.named.items() if change * self.exam[name] <= _SURE * abs(change)
        ]

    def as_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Found:
        raw = json.loads(text)
        return cls(key=Key(*raw.pop("key")), **raw)


def keys(rounds: int, first: int = 700) -> Iterator[Key]:
    """So many planted ones, the habits in turn, and as many shuffled."""
    for number in range(rounds):
        like = [*PLANTED][number % len(PLANTED)]
        yield from (Key(like, first + number, shuffled) for shuffled in (False, True))


def take(backend: TrainingBackend, one: Key) -> Found:
    """Train one round, and look at what it says of itself."""
    model, random = model_path(), Random(1000 * one.seed + 7)
    asked = random.sample(split(one.seed)[0], RATINGS + UNRATED)
    asked, unrated = asked[:RATINGS], asked[RATINGS:]
    backend.load(model, lora=LoraSettings(), seed=0)
    answers = sample(backend.sampler(), asked, 1000 * (one.seed + 1))
    ratings = _ratings(one, [question.text for question in asked], answers)
    rated = [Rated(*row) for row in zip(asked, answers, ratings, strict=True)]
    events: list[dict[str, Any]] = []
    spent = [0.0]

    def timed(*given: Any, **named: Any) -> Any:
        began = time.process_time()
        found = measure(*given, **named)
        spent[0] = time.process_time() - began
        return found

    with tempfile.TemporaryDirectory() as temporary:
        output = Path(temporary)
        job = job_of(
            fresh(rated, 0), model, 1000 * one.seed, None, {"mean": 0.0, "weight": 0.0}, output, ARMS[DEFAULT]
        )
        job = replace(job, unrated=tuple(({"role": "user", "content": one.text},) for one in unrated))
        began = time.process_time()
        with patch("goodbot_training.learnt.measure", timed):
            verdict = run_round(job, backend, events.append)
        cpu = time.process_time() - began
        told = next((event for event in events if event["event"] == "learnt"), None)
        shifts: list[dict[str, Any]] = told["shifts"] if told else []
        named = {_name(s): s["change"] for s in shifts if s["named"]}
        truth = _truth(backend, one, output, [row.answer.text for row in rated]) if named else {}
    return Found(
        key=one,
        passed=verdict.passed,
        named=named,
        exam={name: truth[name] for name in named},
        answers=told["answers"] if told else 0,
        questions=told["questions"] if told else 0,
        cpu=round(cpu, 2),
        cpu_learnt=round(spent[0], 2),
    )


def _ratings(one: Key, asked: Sequence[str], answers: Sequence[Sampled]) -> list[int]:
    if one.like == SHORT:
        random, usual = Random(100 * one.seed), median(len(answer.text) for answer in answers)
        signs = [1 if len(answer.text) < usual else -1 for answer in answers]
        ratings = [-sign if random.random() < ERROR else sign for sign in signs]
    else:
        rater = SimulatedRater(one.like, ERROR, 100 * one.seed)
        ratings = [rater.rate(text, answer.text) for text, answer in zip(asked, answers, strict=True)]
    if one.shuffled:
        Random(one.seed).shuffle(ratings)
    return ratings


def _truth(backend: TrainingBackend, one: Key, adapter: Path, rated: Sequence[str]) -> dict[str, float]:
    """The change of each feature over an exam that the round never saw."""
    exam, seed = exam_of(one.seed, EXAM), 500_000 * (one.seed + 1)
    sampler, chosen = backend.sampler(), features(rated)
    sampler.load_adapter(1, adapter)

    def means(version: int) -> list[float]:
        sampler.activate(version)
        found = table(chosen, [said.text for said in sample(sampler, exam, seed)])
        return [float(value) for value in found.mean(axis=0)]

    before, after = means(0), means(1)
    return {
        f"{feature.name} {feature.word}".strip(): round(
            after[n] / before[n] - 1 if feature.name == LENGTH else after[n] - before[n], 4
        )
        for n, feature in enumerate(chosen)
    }


def _name(shift: dict[str, Any]) -> str:
    return f"{shift['feature']} {shift['word']}".strip()


def text(found: Sequence[Found]) -> str:
    """The page."""
    planted = [one for one in found if not one.key.shuffled]
    dealt = [one for one in found if one.key.shuffled]
    rows = [
        f"| {like} | {name} | {_of([one.right for one in rounds])} | {sum(len(o.wrong) for o in rounds)} of "
        f"{sum(len(one.named) for one in rounds)} | {_of([one.passed for one in rounds])} |"
        for like, (feature, word, _) in PLANTED.items()
        for name in [f"{feature} {word}".strip()]
        for rounds in [[one for one in planted if one.key.like == like]]
        if rounds
    ]
    quiet = [not one.named for one in dealt]
    low, _ = wilson(sum(quiet), len(quiet))
    cpu, own = (sum(getattr(one, name) for one in found) / len(found) for name in ("cpu", "cpu_learnt"))
    return f"""\
# What a round says that it has learnt

Made by `python -m tests.learning.learnt_rounds --write`. {len(planted)} first rounds of the shipped model
in which one habit is liked, and {len(dealt)} with the same answers whose ratings are dealt out at random; one
press in ten is wrong, trained as installed. Beside the {RATINGS} rated questions {UNRATED} more were
asked, whose answers nobody has rated. *Wrong* is what is named and does not hold in {EXAM} answers to
other questions. A round takes {cpu:.1f} CPU-seconds, of which {own:.1f} are for this: {_answers(found)}.

| liked | to be named | named right | named wrong | passed the gate |
|---|---|---|---|---|
{chr(10).join(rows)}
| all | | {_of([one.right for one in planted])} | | {_of([one.passed for one in planted])} |

Of the shuffled rounds {_of(quiet)} name nothing (95 % interval of such rounds: {low:.0%} at least);
{_of([one.passed for one in dealt])} passed the gate, and one that does not says nothing in any case.
"""


def _answers(found: Sequence[Found]) -> str:
    told = next((one for one in found if one.answers), None)
    return (
        f"{told.answers} answers of each version to {told.questions} held-out questions" if told else "none"
    )


def _of(said: Sequence[bool]) -> str:
    return f"{sum(said)} of {len(said)}"


def stored(path: Path) -> Iterator[Found]:
    """What is done; a line that a kill cut off is not."""
    if path.exists():
        raw = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        yield from (Found.from_json(line) for line in raw.decode().split("\n")[:-1])


def main(argv: Sequence[str] | None = None) -> int:
    arguments = _arguments(argv)
    wanted = list(keys(arguments.rounds))
    done = {one.key: one for one in stored(KEPT)} if arguments.kept else {}
    done |= {one.key: one for one in stored(arguments.runs)}
    missing = [one for one in wanted if one not in done]
    if arguments.kept and missing:
        refuse_mixture(PAGE)
    for one in missing:
        done[one] = found = _taken(one)
        arguments.runs.parent.mkdir(parents=True, exist_ok=True)
        with arguments.runs.open("a", encoding="utf-8") as file:
            file.write(found.as_json() + "\n")
        print(*one, found.named, "right" if found.right else "", *found.wrong, file=sys.stderr, flush=True)
    known = [done[one] for one in wanted]
    print(text(known))
    if arguments.write:
        lines = "".join(f"{one.as_json()}\n" for one in known)
        KEPT.write_bytes(gzip.compress(lines.encode(), mtime=0))
        PAGE.write_text(headed(text(known), PAGE if arguments.kept else None), encoding="utf-8")
    return 0


def _taken(one: Key) -> Found:
    import torch
    from goodbot_training.backends.torch.trainer import TorchBackend

    torch.set_num_threads(1)
    return take(TorchBackend(), one)


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.learning.learnt_rounds", description=__doc__)
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="planted ones, and as many shuffled")
    parser.add_argument("--runs", type=Path, default=Path("build/learnt_rounds.jsonl"))
    parser.add_argument("--kept", action="store_true", help="what lies in results/ is done")
    parser.add_argument("--write", action="store_true", help="renew results/learnt_rounds.md")
    return parser.parse_args(argv)


if __name__ == "__main__":
    raise SystemExit(main())
