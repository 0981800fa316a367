# SPDX-License-Identifier: Apache-2.0
"""One course: an arm learns from a stream, round after round, with the gate on; judged each time.

Rounds follow one another as in the daemon: what was held out trains in the next round; a refused candidate
is judged too, but never answers, and its ratings come again with those of the next; from the third rater on
none weighs more than the default share, and the outvoted are not heard (by others' trainers everybody is).
"""

from __future__ import annotations

import functools
import json
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass, field, replace
from itertools import cycle, islice
from pathlib import Path
from random import Random
from typing import Any

from goodbot.api.backend import LoraSettings, TrainingBackend
from goodbot.api.hindsight import BETTER, OBJECTIVES
from goodbot.api.sampler import Sampled
from goodbot.base.errors import TrainingError
from goodbot.config.sections import JudgeConfig, TrainingConfig
from goodbot.learning.rating_quality.consensus import RaterOpinion as OneSays
from goodbot.learning.rating_quality.consensus import outvoted
from goodbot.learning.rating_quality.weight_caps import share_weights
from goodbot.learning.training.claims import judge_weights
from goodbot.store.notes import Note
from goodbot_training.job.trials import RatedLine
from goodbot_training.job.types import Job
from goodbot_training.round import run as training_round
from goodbot_training.tiny import TEMPERATURE
from goodbot_training.tiny.corpus import split
from goodbot_training.tiny.facts import FactQuestion

from tests.learning import words
from tests.learning.arms import ARMS, DEFAULT, Arm
from tests.learning.bases import BASES
from tests.learning.exam import Judged, drift, judge, sample
from tests.learning.recipes import recipe
from tests.learning.rival import trained_like
from tests.learning.streams import ADVERSARY, RATINGS, STREAMS, Rated, spoken
from tests.learning.words import Said
from tests.learning.writers import Writer, quantized

HELD_OUT_EVERY = 5
"""Every fifth fresh rating is kept for the gate: of 40, 32 train and 8 are held out."""
OTHER = {"terse": "friendly", "friendly": "terse", "pirate": "terse"}


@dataclass(frozen=True, kw_only=True)
class Course:
    """One arm on one stream. Lists have an entry a round."""

    arm: str
    stream: str
    like: str
    seed: int
    answers: int
    before: Judged
    base: str = "tiny"
    live: list[Judged] = field(default_factory=list[Judged])
    """What answers after each round: the candidate, or what was there if the gate refused it."""
    candidate: list[Judged] = field(default_factory=list[Judged])
    passed: list[bool] = field(default_factory=list[bool])
    reasons: list[str] = field(default_factory=list[str])
    """The gate's sentences."""
    token_acceptance: list[float] = field(default_factory=list[float])
    trajectory_acceptance: list[float] = field(default_factory=list[float])
    cpu_seconds: float = 0.0
    """Of the rounds, gates included."""
    note: str = ""
    """What the system said before each answer of the last exam."""
    recipe: str = ""
    """Of what it was run with; see `tests.learning.recipes`."""

    def as_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Course:
        raw = json.loads(text)
        raw["before"] = Judged(**raw["before"])
        for name in ("live", "candidate"):
            raw[name] = [Judged(**entry) for entry in raw[name]]
        return cls(**raw)


def take(
    backend: TrainingBackend, *, arm: str, stream: str, like: str, seed: int, answers: int, base: str = "tiny"
) -> Course:
    """Run one course. Everything is drawn by `seed`: two arms see the same questions."""
    how, what = ARMS[arm], STREAMS[stream]
    judged_style = OTHER[like] if what.flips else like
    model = BASES[base].obtain()
    train, exam = split(seed)[0], exam_of(seed, answers)
    before = judge(exam, _base_answers(type(backend), model, seed, answers), judged_style, 0.0)
    course = Course(
        arm=arm,
        stream=stream,
        like=like,
        seed=seed,
        answers=answers,
        before=before,
        base=base,
        recipe=recipe(arm, stream),
    )
    if arm == "frozen":
        course.live.extend([before] * what.rounds)
        return course
    note, heard, refuted = "", list[tuple[Said, str]](), dict[int, int]()
    cpu = 0.0
    with tempfile.TemporaryDirectory() as temporary:
        directory = Path(temporary)
        trainer = _trainer(how, backend)
        writer = _writer(how, backend, model, directory, like, seed)
        parent: Path | None = None
        baseline = {"mean": 0.0, "weight": 0.0}
        versions: dict[str, str] = {}
        live, waiting = before, list[_Item]()
        for number in range(what.rounds):
            liked = judged_style if what.flips and number else like
            asked = ask(train, what.asked, seed, number)
            drawn = writer.write(backend, asked, parent, 1000 * (seed + 1) + 10_000 * number)
            rated = what.rate(asked, drawn, liked, number, seed)
            if how.shuffled:
                among = [(one.question, one.answer) for one in rated]
                pairs = among if how.among_chosen else zip(asked, drawn, strict=True)
                rated = dealt(rated, pairs, seed, number)
            if how.any_wish:
                rated = spoken(rated, words.any_wish, liked, number, seed)
            before_this = len(heard)
            if how.note:
                heard += [(one.said, one.answer.text) for one in rated if one.rater != ADVERSARY]
                note = words.note(heard, refuted)
            if how.untrained:
                live = _judged(backend, None, exam, judged_style, seed, model, note)
                course.live.append(live)
                continue
            items = [*waiting, *fresh(rated, number, len(versions))]
            place = directory / f"round-{number}"
            place.mkdir()
            job = job_of(items, model, 1000 * seed + number, parent, baseline, place, how, versions)
            if how.compared:
                job = replace(job, lines=lines_of(words.notes(heard), before_this, items))
            began = time.process_time()
            passed, reason, done = _round(how, job, trainer(job))
            cpu += time.process_time() - began
            refuted |= dict.fromkeys(done.get("refuted", ()), len(heard))
            note = words.note(heard, refuted) if how.note else ""
            candidate = live
            if (place / "adapter_config.json").exists():
                candidate = _judged(backend, place, exam, judged_style, seed, model, note)
            course.candidate.append(candidate)
            course.passed.append(passed)
            course.reasons.append(reason)
            metrics = done.get("metrics", {})
            course.token_acceptance.append(metrics.get("token_acceptance", 0.0))
            course.trajectory_acceptance.append(metrics.get("trajectory_acceptance", 0.0))
            if passed:
                parent, baseline, live = place, done["baseline"], candidate
                versions[str(len(versions) + 1)] = str(place)
            waiting = [item.trains() for item in items if item.held_out or not passed]
            course.live.append(live)
    return replace(course, cpu_seconds=cpu, note=note)


def _trainer(arm: Arm, backend: TrainingBackend) -> Callable[[Job], TrainingBackend]:
    """What trains a job of this arm; an import takes seconds that no round should pay for."""
    if arm.trainer == "trl":
        from tests.learning.trl_kto import TrlKto

        return TrlKto
    return lambda job: backend


def _round(arm: Arm, job: Job, backend: TrainingBackend) -> tuple[bool, str, dict[str, Any]]:
    """One round by an arm: whether the gate let it through, its sentence, and the last event.

    A round that fails (numbers that are not finite) is one that did not pass.
    """
    events: list[dict[str, Any]] = [{}]
    try:
        with trained_like(arm.trainer) if arm.trainer in ("reinforceclaw", "openclaw") else nullcontext():
            verdict = training_round.run_round(job, backend, events.append)
    except TrainingError as error:
        return False, str(error), {}
    refuted = [one["id"] for event in events for one in event.get("lines", ()) if one["refuted"]]
    return verdict.passed, verdict.reason, {**events[-1], "refuted": refuted}


def lines_of(notes: Sequence[Note], before: int, items: Sequence[_Item]) -> tuple[RatedLine, ...]:
    """The lines that were made since so much had been said, newest first, as the daemon has them compared."""
    own = [item for item in items if not item.held_out and item.rated.rater != ADVERSARY]
    good, bad = (frozenset(i.id for i in own if sign * i.rated.rating > 0) for sign in (1, -1))
    made = sorted((one for one in notes if one.said_last > before), key=lambda one: -one.said_last)
    return tuple(RatedLine(id=one.id, text=words.told([one]), good=good, bad=bad) for one in made)


@dataclass(frozen=True, kw_only=True)
class _Item:
    """A rating that waits for a round, or is in one."""

    id: str
    rated: Rated
    held_out: bool
    version: int = 0
    """Which wrote it, 0 being the base."""

    def trains(self) -> _Item:
        return replace(self, held_out=False)


def fresh(rated: Sequence[Rated], number: int, version: int = 0) -> list[_Item]:
    """A round's own ratings, every fifth of them held out."""
    return [
        _Item(
            id=f"turn-{number:02d}-{index:03d}",
            rated=one,
            held_out=not one.credit and index % HELD_OUT_EVERY == HELD_OUT_EVERY - 1,
            version=version,
        )
        for index, one in enumerate(rated)
    ]


def ask(train: Sequence[FactQuestion], count: int, seed: int, number: int) -> list[FactQuestion]:
    """The questions of a round, each once if there are enough."""
    return (
        Random(1000 * seed + number).choices(train, k=count)
        if count > len(train)
        else Random(1000 * seed + number).sample(train, count)
    )


def dealt(
    rated: Sequence[Rated], pairs: Iterable[tuple[FactQuestion, Sampled]], seed: int, number: int
) -> list[Rated]:
    """The same ratings at random, one for each of the first of these answers; there must be enough."""
    ratings = [one.rating for one in rated]
    Random(100 * seed + number + 1).shuffle(ratings)
    return [
        one._replace(question=question, answer=answer, rating=rating)
        for one, rating, (question, answer) in zip(rated, ratings, list(pairs)[: len(rated)], strict=True)
    ]


def exam_of(seed: int, answers: int) -> list[FactQuestion]:
    """So many questions whose facts are never rated."""
    return list(islice(cycle(split(seed)[1]), answers))


@functools.lru_cache(maxsize=8)
def _base_answers(kind: type[TrainingBackend], model: Path, seed: int, answers: int) -> tuple[Sampled, ...]:
    """The base's exam, the same for every arm."""
    backend = kind()
    backend.load(model, lora=LoraSettings(), seed=seed)
    return tuple(sample(backend.sampler(), exam_of(seed, answers), 500_000 * (seed + 1)))


def _judged(
    backend: TrainingBackend,
    adapter: Path | None,
    exam: Sequence[FactQuestion],
    like: str,
    seed: int,
    model: Path,
    note: str = "",
) -> Judged:
    """The exam of an adapter, as it lies on the disk, or of none."""
    backend.load(model, lora=LoraSettings(), adapter=adapter, seed=seed)
    sampler = backend.sampler()
    if adapter:
        sampler.load_adapter(1, adapter)
        sampler.activate(1)
    answers = sample(sampler, exam, 500_000 * (seed + 1), note)
    return judge(exam, answers, like, drift(backend, answers))


def _writer(arm: Arm, backend: TrainingBackend, model: Path, directory: Path, like: str, seed: int) -> Writer:
    if arm.writer == "4-bit":
        return Writer(model=quantized(directory / "4-bit", model), fixed=True)
    if arm.writer == "stale":  # trained on other people's ratings of the same taste
        old = directory / "older"
        old.mkdir()
        asked = ask(split(seed)[0], RATINGS, seed + 1000, 0)
        drawn = Writer(model=model).write(backend, asked, None, 77_000 * (seed + 1))
        rated = STREAMS["natural"].rate(asked, drawn, like, 0, seed + 1000)
        baseline = {"mean": 0.0, "weight": 0.0}
        seed = 1000 * (seed + 1000)
        job = job_of(fresh(rated, 0), model, seed, None, baseline, old, ARMS[DEFAULT])
        training_round.run_round(job, backend, lambda event: None)
        return Writer(model=model, adapter=old, fixed=True)
    return Writer(model=model)


def _outvoted(items: Sequence[_Item]) -> set[str]:
    """As the daemon leaves them out of a round."""
    said = [(item.rated.rater, item.rated.answer.text, item.rated.rating > 0) for item in items]
    return outvoted([OneSays(rater=who, answer=text, good=good) for who, text, good in said])


def _credited(trained: Sequence[_Item], weights: Mapping[str, float]) -> dict[str, float]:
    """Of each step that is credited with what its episode came to: as judged answers weigh."""
    steps = [item for item in trained if item.rated.credit]
    rated = sum(weights[item.id] for item in trained if not item.rated.credit)
    values = [item.rated.credit for item in steps]
    told = judge_weights(values, JudgeConfig().weight, JudgeConfig().share, rated)
    return {item.id: weight for item, weight in zip(steps, told, strict=True)}


def job_of(
    items: Sequence[_Item],
    model: Path,
    seed: int,
    parent: Path | None,
    baseline: dict[str, float],
    output: Path,
    arm: Arm,
    versions: Mapping[str, str] | None = None,
) -> Job:
    """The worker's job of a round, as the daemon would write it."""
    unheard = _outvoted(items) if not arm.trainer else set[str]()
    trained = [item for item in items if not item.held_out and item.rated.rater not in unheard]
    better = [
        item for item in trained if item.rated.said.better and arm.settings.get("objective") in OBJECTIVES
    ]
    shares = share_weights(
        [[item.rated.rater] for item in trained],
        TrainingConfig().rater_share,
        beside=[(item.rated.rater, 1.0) for item in better],
    )
    weights = {item.id: share for item, share in zip(trained, shares, strict=True)}
    held_out = {i.id for i in items if i.held_out and i.rated.rater not in unheard}
    weights |= {item.id: 0.0 for item in items if item.rated.rater in unheard}
    weights |= _credited(trained, weights)
    items = [item for item in items if weights.get(item.id, 1.0) or not item.rated.credit]
    rows = [
        {
            "id": item.id,
            "messages": [{"role": "user", "content": item.rated.question.text}],
            "response": item.rated.answer.text,
            "hindsight": item.rated.said.to_train(),
            "prompt_tokens": list(item.rated.answer.prompt),
            "tokens": list(item.rated.answer.tokens),
            "logprobs": list(item.rated.answer.logprobs),
            "temperature": TEMPERATURE,
            "version": item.version,
            "reward": float(item.rated.rating),
            "weight": weights.get(item.id, 1.0),
            "split": "held_out" if item.id in held_out else "train",
        }
        for item in items
    ]
    rows += [_demonstration(item, weights[item.id]) for item in better]
    return Job.parse(
        {
            "protocol": 1,
            "run": 1,
            "model": str(model),
            "parent": str(parent) if parent else None,
            "output": str(output),
            "seed": seed,
            "settings": dict(arm.settings),
            "baseline": baseline,
            "behaviour": dict(versions or {}),
            "items": rows,
            "anchors": [row["messages"] for row in rows if not row.get("demonstration")],
        }
    )


def _demonstration(item: _Item, weight: float) -> dict[str, Any]:
    """The better answer, as the daemon has it trained."""
    return {
        "id": item.id + BETTER,
        "messages": [{"role": "user", "content": item.rated.question.text}],
        "response": item.rated.said.better,
        "temperature": TEMPERATURE,
        "version": None,
        "reward": 1.0,
        "weight": weight,
        "split": "train",
        "demonstration": True,
    }
