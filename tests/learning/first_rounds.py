# SPDX-License-Identifier: Apache-2.0
"""Does the gate let honest first rounds through, whatever was asked?

    python -m tests.learning.first_rounds              all of it: a quarter of an hour of one core
    python -m tests.learning.first_rounds --quick      one seed, one base
    python -m tests.learning.first_rounds --ratings 12      rounds of 12 ratings
    python -m tests.learning.first_rounds --kept --write    the page anew from the kept rounds

Each round is a first one of 40 ratings (or `--ratings`) of one style, without a wrong press (with one in ten
on the demo's mix), trained as installed. Its adapter, and a weaker one if the gate refuses it, answer what
the gate asks, 256 prompts from the round itself, and held-out questions. Rounds that are done lie in `--runs`
and are not run again; after a change of code, take another file.
"""

from __future__ import annotations

import argparse
import gzip
import json
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from math import ceil
from pathlib import Path
from random import Random
from typing import NamedTuple

from goodbot.api.backend import LoraSettings, TrainingBackend
from goodbot_training.backends.adapters import weaken
from goodbot_training.gate.measure import make_requests
from goodbot_training.job.settings import TrainingSettings
from goodbot_training.job.types import Job
from goodbot_training.round import run as training_round
from goodbot_training.tiny import TEMPERATURE
from goodbot_training.tiny.corpus import split
from goodbot_training.tiny.facts import FactQuestion
from goodbot_training.tiny.judge import SimulatedRater

from tests.learning.arms import ARMS, DEFAULT
from tests.learning.bases import BASES
from tests.learning.course import HELD_OUT_EVERY, exam_of, fresh, job_of
from tests.learning.exam import sample
from tests.learning.rare import Seen, alike, judged, seen
from tests.learning.shipped import refuse_mixture
from tests.learning.streams import RATINGS, Rated

RESULTS = Path(__file__).parent / "results"


def kept_rounds(ratings: int = RATINGS) -> Path:
    """Where rounds of so many ratings are kept."""
    return RESULTS / f"first_rounds{'' if ratings == RATINGS else f'_{ratings}'}.jsonl.gz"


def page_of(ratings: int = RATINGS) -> Path:
    """The page about them."""
    return kept_rounds(ratings).with_suffix("").with_suffix(".md")


KEPT, PAGE = kept_rounds(), page_of()
BEFORE = RESULTS / "first_rounds_before.jsonl.gz"
"""Rounds that went all of the way: seeds 300 to 302, with `strength` 1."""
SEEDS = (302, 304, 305)
"""The gate was set on 200 to 205, and once more with 300 and 301 in view."""
LIKES = ("friendly", "terse")
STRENGTHS = (1.0, 0.5)
"""Shares of what was learnt, in the order in which the gate tries them."""
PROMPTS = TrainingSettings().gate_anchors
EXAM = 240

Draw = Callable[[Random, Sequence[FactQuestion], int], list[FactQuestion]]


def _of(*kinds: str, several: int = 1) -> Draw:
    """Questions of these kinds (all, if none is named); each comes `several` times, the last as it fits."""

    def draw(random: Random, train: Sequence[FactQuestion], count: int) -> list[FactQuestion]:
        chosen = [one for one in train if not kinds or one.kind in kinds]
        wanted = ceil(count / several)
        enough = len(chosen) >= wanted
        drawn = random.sample(chosen, wanted) if enough else random.choices(chosen, k=wanted)
        asked = (drawn * several)[:count]
        if several > 1:
            random.shuffle(asked)
        return asked

    return draw


def _two_thirds_sums(random: Random, train: Sequence[FactQuestion], count: int) -> list[FactQuestion]:
    sums = round(2 / 3 * count)
    asked = _of("sum")(random, train, sums)
    asked += _of("capital", "opposite")(random, train, count - sums)
    random.shuffle(asked)
    return asked


MIXES: dict[str, Draw] = {
    "demo": _of(),
    "two thirds sums": _two_thirds_sums,
    "only sums": _of("sum"),
    "only capitals": _of("capital"),
    "8 questions × 5": _of(several=5),
    "8 sums × 5": _of("sum", several=5),
}


class Key(NamedTuple):
    """One round."""

    base: str
    ratings: str
    """One of `MIXES`."""
    like: str
    seed: int
    size: int = RATINGS
    """Of its ratings; every fifth is held out."""


def rounds(seeds: Sequence[int], bases: Iterable[str], size: int = RATINGS) -> list[Key]:
    """One of each mix and taste."""
    return [
        Key(base, mix, like, seed, size)
        for seed in seeds
        for base in bases
        for mix in MIXES
        for like in LIKES
    ]


@dataclass(frozen=True, kw_only=True)
class Found:
    """What was seen of a round: the base, and the candidate at each strength until it passes."""

    key: Key
    before: Seen
    at: dict[str, Seen]

    def as_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Found:
        raw = json.loads(text)
        at = {strength: Seen(**entry) for strength, entry in raw["at"].items()}
        return cls(key=Key(*raw["key"]), before=Seen(**raw["before"]), at=at)


def questions_of(one: Key) -> list[FactQuestion]:
    """What is asked in an honest round."""
    return MIXES[one.ratings](Random(1000 * one.seed + 7), split(one.seed)[0], one.size)


def job_for(backend: TrainingBackend, one: Key, output: Path, settings: Mapping[str, float]) -> Job:
    """Let the base answer, rate what it says, and make a job of it."""
    model, asked = BASES[one.base].obtain(), questions_of(one)
    backend.load(model, lora=LoraSettings(), seed=0)
    answers = sample(backend.sampler(), asked, 1000 * (one.seed + 1))
    rater = SimulatedRater(one.like, 0.1 if one.ratings == "demo" else 0.0, 100 * one.seed)
    rated = [
        Rated(question, answer, rater.rate(question.text, answer.text))
        for question, answer in zip(asked, answers, strict=True)
    ]
    arm = replace(ARMS[DEFAULT], settings={**ARMS[DEFAULT].settings, **settings})
    baseline = {"mean": 0.0, "weight": 0.0}
    return job_of(fresh(rated, 0), model, 1000 * one.seed, None, baseline, output, arm)


def take(
    backend: TrainingBackend,
    one: Key,
    exam_size: int = EXAM,
    strengths: Sequence[float] = STRENGTHS,
    **settings: float,
) -> Found:
    """Train an honest round, and ask its adapter what the gate asks, and the exam, at each strength until it
    passes."""
    seed, like = one.seed, one.like
    asked = questions_of(one)
    prompts = [asked[index % len(asked)] for index in range(PROMPTS)]
    exam, exam_seed = exam_of(seed, exam_size), 500_000 * (seed + 1)
    with tempfile.TemporaryDirectory() as temporary:
        whole = Path(temporary) / "round"
        whole.mkdir()
        own = {"gate_anchors": 0, **settings}  # the gate's questions are asked here
        job = job_for(backend, one, whole, own)
        training_round.run_round(job, backend, lambda event: None)
        requests = make_requests(job, backend, TEMPERATURE, PROMPTS)
        sampler = backend.sampler()
        sampler.activate(0)
        by_base = sampler.sample_many(requests)
        base = judged(prompts, by_base, like)
        before = seen(base, base, judged(exam, sample(sampler, exam, exam_seed), like))
        at: dict[str, Seen] = {}
        for strength in strengths:
            place = whole
            if strength < 1:
                place = Path(temporary) / f"{strength}"
                shutil.copytree(whole, place)
                weaken(place, None, strength)
            sampler.load_adapter(1, place)
            sampler.activate(1)
            said = sampler.sample_many(requests)
            own = judged(prompts, said, like, backend)
            held_out = judged(exam, sample(sampler, exam, exam_seed), like, backend)
            at[str(strength)] = seen(base, own, held_out, alike(by_base, said, backend))
            if at[str(strength)].passed:
                break
    return Found(key=one, before=before, at=at)


def main(argv: Sequence[str] | None = None) -> int:
    arguments = _arguments(argv)
    seeds = SEEDS[:1] if arguments.quick else SEEDS
    bases = ["tiny"] if arguments.quick else arguments.base
    wanted = rounds(seeds, bases, arguments.ratings)
    done = {one.key: one for one in stored(kept_rounds(arguments.ratings))} if arguments.kept else {}
    done |= {one.key: one for one in stored(arguments.runs)}
    missing = [one for one in wanted if one not in done]
    if arguments.kept and missing:
        refuse_mixture(page_of(arguments.ratings))
    for found in _run(missing):
        arguments.runs.parent.mkdir(parents=True, exist_ok=True)
        with arguments.runs.open("a", encoding="utf-8") as file:
            file.write(found.as_json() + "\n")
        done[found.key] = found
        passed = ", ".join(f"{how}: {'yes' if now.passed else 'no'}" for how, now in found.at.items())
        print(*found.key, "passes at", passed, file=sys.stderr, flush=True)
    from tests.learning import first_rounds_page

    known = [done[one] for one in wanted]
    print(first_rounds_page.text(known))
    if arguments.write:
        lines = "".join(f"{one.as_json()}\n" for one in known)
        kept_rounds(arguments.ratings).write_bytes(gzip.compress(lines.encode(), mtime=0))
        first_rounds_page.write(arguments.ratings, fresh=not arguments.kept)
    return 0


def _run(missing: Sequence[Key]) -> Iterator[Found]:
    if not missing:
        return
    import torch
    from goodbot_training.backends.torch.trainer import TorchBackend

    torch.set_num_threads(1)
    for one in missing:
        yield take(TorchBackend(), one)


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.learning.first_rounds", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one seed of the shipped model")
    parser.add_argument("--base", nargs="*", default=list(BASES), choices=list(BASES))
    parser.add_argument("--ratings", type=int, default=RATINGS, metavar="N", help="in each round")
    parser.add_argument("--runs", type=Path, default=Path("build/first_rounds.jsonl"))
    parser.add_argument("--kept", action="store_true", help="what lies in results/ is done")
    parser.add_argument("--write", action="store_true", help="renew the page in results/")
    arguments = parser.parse_args(argv)
    if arguments.ratings < HELD_OUT_EVERY:
        parser.error(f"a round takes {HELD_OUT_EVERY} ratings: of fewer none is held out")
    if arguments.write and (arguments.quick or set(arguments.base) != set(BASES)):
        parser.error("the page holds all of it: --write goes without --quick and --base")
    return arguments


def stored(path: Path) -> Iterator[Found]:
    """What is done. A line that a kill cut off is dropped, and its round run again."""
    if path.suffix == ".gz":
        text = gzip.decompress(path.read_bytes()).decode() if path.exists() else ""
    else:
        text = path.read_text(encoding="utf-8") if path.exists() else ""
        whole = text[: text.rfind("\n") + 1]
        if whole != text:
            path.write_text(whole, encoding="utf-8")
            text = whole
    yield from map(Found.from_json, text.splitlines())


if __name__ == "__main__":
    raise SystemExit(main())
