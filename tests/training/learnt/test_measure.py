# SPDX-License-Identifier: Apache-2.0
"""Which questions are asked, whose answers are compared, and which are shown."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from goodbot.api.learnt import LENGTH, Learnt
from goodbot.api.sampler import Sampled, SampleRequest, TokenizedTurn
from goodbot_training.job.types import Job
from goodbot_training.learnt import measure

from tests.training.factories import raw_item, raw_job

LONG, SHORT = "A long answer that goes on and on.", "Short."
CANDIDATE, PARENT = Path("candidate"), Path("parent")


class Voices:
    """A backend whose versions answer as their directory says; the base speaks at length."""

    def __init__(self, **voices: str) -> None:
        self._voices, self._versions, self._now = voices, {0: "base"}, 0
        self.asked: list[tuple[str, SampleRequest]] = []

    def sampler(self) -> Any:
        return self

    def load_adapter(self, version: int, directory: Path) -> None:
        self._versions[version] = directory.name

    def activate(self, version: int) -> None:
        self._now = version

    def tokenize(self, messages: Any, response: str) -> TokenizedTurn:
        return TokenizedTurn(prompt=(1,), response=(2,))

    def sample_many(self, requests: list[SampleRequest]) -> list[Sampled]:
        name = self._versions[self._now]
        self.asked += [(name, request) for request in requests]
        text = self._voices[name]
        return [
            Sampled(prompt=(1,), tokens=(2,), logprobs=(-1.0,), text=f"{text} {n % 2}", finish="stop")
            for n, _ in enumerate(requests)
        ]


def question(number: int) -> list[dict[str, str]]:
    return [{"role": "user", "content": f"question {number}"}]


def job(held_out: int = 8, **changes: Any) -> Job:
    """40 ratings: short answers are good ones."""
    items = [
        raw_item(
            n,
            messages=question(n),
            response=SHORT if n % 2 else LONG,
            reward=1.0 if n % 2 else -1.0,
            split="held_out" if n < held_out else "train",
            tokens=[1] * (100 if n % 2 else 10),
            prompt_tokens=[1],
            logprobs=[-1.0] * (100 if n % 2 else 10),
        )
        for n in range(40)
    ]
    raw = raw_job(items=items, anchors=[item["messages"] for item in items], behaviour={})
    return Job.parse({**raw, **changes})


def measured(
    job: Job, before: Path | None, backend: Voices, tell: Callable[[int], None] = lambda _: None
) -> Learnt | None:
    return measure(job, before, backend, CANDIDATE, temperature=0.8, tell=tell)  # pyright: ignore[reportArgumentType]


def test_it_asks_what_was_not_trained_on_and_both_with_the_same_numbers() -> None:
    backend = Voices(base=LONG, candidate=SHORT)
    found = measured(job(), None, backend)
    assert found is not None
    assert (found.answers, found.questions, found.trained) == (64, 8, False)
    old, new = ([request for who, request in backend.asked if who == name] for name in ("base", "candidate"))
    assert old == new
    assert {request.messages[0]["content"] for request in old} == {f"question {n}" for n in range(8)}
    assert len({request.seed for request in old}) == 64
    assert {request.max_tokens for request in old} == {64}, (
        "no longer than the gate's, by which it is planned"
    )
    named = {
        f"{shift.feature} {shift.word}".strip(): shift.change < 0 for shift in found.shifts if shift.named
    }
    assert named == {LENGTH: True, "opens A": True, "opens Short": False}


def test_it_tells_how_far_it_is() -> None:
    told: list[int] = []
    measured(job(), None, Voices(base=LONG, candidate=SHORT), told.append)
    assert told == [64, 64]


def test_the_version_before_is_what_it_is_compared_with() -> None:
    backend = Voices(parent=LONG, candidate=SHORT)
    assert measured(job(), PARENT, backend) is not None
    assert {who for who, _ in backend.asked} == {"parent", "candidate"}


def test_with_too_few_questions_left_those_of_the_training_are_asked() -> None:
    found = measured(job(held_out=2), None, Voices(base=LONG, candidate=SHORT))
    assert found is not None
    assert (found.questions, found.trained) == (40, True)


def test_what_nobody_has_rated_is_asked_behind_the_questions_held_out() -> None:
    backend = Voices(base=LONG, candidate=SHORT)
    unrated = tuple(tuple(question(number)) for number in (39, 50, 51))  # the first was trained on, elsewhere
    before = tuple(tuple(question(number)) for number in range(60, 130))  # of earlier rounds
    one = job()
    found = measured(replace(one, unrated=unrated, anchors=(*one.anchors, *before)), None, backend)
    assert found is not None
    assert (found.answers, found.questions, found.trained) == (64, 64, False)
    asked = [str(request.messages[0]["content"]) for who, request in backend.asked if who == "base"]
    assert asked[:10] == [f"question {n}" for n in (*range(8), 50, 51)]
    assert {one.id for one in found.examples} <= {f"turn-{n}" for n in range(8)}, "of the round's own alone"


def test_a_handful_of_questions_says_nothing_of_others() -> None:
    one = job(items=[raw_item()], anchors=[question(0)])
    assert measured(one, None, Voices(base=LONG, candidate=SHORT)) is None


def test_the_questions_that_changed_most_are_shown_each_once_by_their_item() -> None:
    found = measured(job(), None, Voices(base=LONG + "x" * 900, candidate=SHORT))
    assert found is not None
    assert sorted(one.id for one in found.examples) == [f"turn-{n}" for n in range(8)]
    assert {len(one.before) for one in found.examples} == {400}
    assert {one.after[:-2] for one in found.examples} == {SHORT}
    assert found == measured(job(), None, Voices(base=LONG + "x" * 900, candidate=SHORT))
    assert json.loads(json.dumps(found.event()))["event"] == "learnt"


@pytest.mark.parametrize("mark", ["demonstration", "judged"])
def test_what_nobody_has_rated_asks_for_nothing(mark: str) -> None:
    told = job()
    marked = [
        raw_item(n, id=f"turn-{n}+better", messages=question(n), response=SHORT if n % 2 else LONG)
        | {"reward": 1.0 if n % 2 else -1.0, mark: True}
        for n in range(40)
    ]
    plain = [raw_item(n, messages=question(n), response=LONG, reward=-1.0) for n in range(40)]
    anchors = [list(one) for one in told.anchors]
    found = measured(job(items=[*plain, *marked], anchors=anchors), None, Voices(base=LONG, candidate=SHORT))
    assert found is not None
    assert not [shift for shift in found.shifts if shift.named]


def test_a_better_answer_does_not_hide_the_question_it_is_about() -> None:
    wanted = job()
    items = [
        raw_item(n, messages=question(n), response=SHORT if n % 2 else LONG, reward=1.0 if n % 2 else -1.0)
        for n in range(40)
    ]
    items += [
        raw_item(n, id=f"turn-{n}+better", messages=question(n), response=SHORT, demonstration=True)
        for n in range(40)
    ]
    anchors = [list(one) for one in wanted.anchors]
    found = measured(job(items=items, anchors=anchors), None, Voices(base=LONG, candidate=SHORT))
    assert found is not None
    assert found.examples
    assert not [one.id for one in found.examples if one.id.endswith("+better")]


@pytest.mark.parametrize("rewards", [1.0, -1.0])
def test_where_nothing_is_named_no_answer_is_shown(rewards: float) -> None:
    alike = job(items=[{**raw_item(n), "messages": question(n), "reward": rewards} for n in range(40)])
    found = measured(alike, None, Voices(base=LONG, candidate=SHORT))
    assert found is not None
    assert not found.examples
    assert not [shift for shift in found.shifts if shift.named]
