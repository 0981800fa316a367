"""The study's candidates on the Llama that had lost 15 points of facts or form and passed, looked at anew.

They are other objectives' (KTO, BCO, TRL's KTOTrainer). The course is run again as it was, and what the gate
asks is asked once more of the candidate that it lets through.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

from goodbot.backend import TrainingBackend
from goodbot_training import round as training_round
from goodbot_training.gate.decide import decide
from goodbot_training.gate.measure import make_requests
from goodbot_training.tiny import TEMPERATURE
from goodbot_training.tiny.facts import questions
from goodbot_training.types import Job

from tests.learning.course import Course, exam_of, take
from tests.learning.exam import sample
from tests.learning.first_rounds import EXAM, PROMPTS, Found, Key
from tests.learning.rare import Seen, judged, seen
from tests.learning.study import KEPT, stored

LOST = 0.15
"""Of the facts or of the well-formed answers: harmful."""
AS_PASSED = "as passed"


def gone_past() -> list[Course]:
    """Of the kept courses those of one round that lost so much."""
    return [
        course
        for course in stored(KEPT)
        if course.base == "llama" and course.passed == [True] and _lost(course) >= LOST
    ]


def _lost(course: Course) -> float:
    now, before = course.candidate[0], course.before
    return max(before.facts - now.facts, now.malformed - before.malformed)


def again(course: Course) -> Iterator[Found]:
    """What is seen of its candidate now; nothing where this machine's passes no more, or does no harm."""
    from goodbot_training.backends.torch.trainer import TorchBackend

    known = {question.text: question for question in questions()}
    exam, looks = exam_of(course.seed, EXAM), list[tuple[Seen, Seen]]()
    real = training_round.measure

    def measured(
        job: Job, backend: TrainingBackend, candidate: Path, **how: Any
    ) -> dict[str, float]:
        metrics = real(job, backend, candidate, **how)
        if not decide(metrics, job.settings).passed:
            return metrics
        sampler = backend.sampler()
        sampler.load_adapter(1, candidate)
        requests = make_requests(job, backend, TEMPERATURE, PROMPTS)
        asked = [known[str(request.messages[-1]["content"])] for request in requests]
        exam_seed = 500_000 * (course.seed + 1)
        sampler.activate(0)
        base = judged(asked, sampler.sample_many(requests), course.like)
        before = seen(base, base, judged(exam, sample(sampler, exam, exam_seed), course.like))
        sampler.activate(1)
        own = judged(asked, sampler.sample_many(requests), course.like, backend)
        held_out = judged(exam, sample(sampler, exam, exam_seed), course.like, backend)
        looks.append((before, seen(base, own, held_out)))
        return metrics

    with patch.object(training_round, "measure", measured):
        now = take(
            TorchBackend(), arm=course.arm, stream=course.stream, like=course.like,
            seed=course.seed, answers=EXAM, base=course.base,
        )  # fmt: skip
    if now.passed == [True] and _lost(now) >= LOST:
        before, after = looks[-1]
        key = Key(course.base, f"{course.arm}, {course.stream}", course.like, course.seed)
        yield Found(key=key, before=before, at={AS_PASSED: after})
