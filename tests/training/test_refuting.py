# SPDX-License-Identifier: Apache-2.0
"""A line that somebody asked for, compared with how they rated."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from goodbot.api.backend import LoraSettings
from goodbot.api.noted import FRAME, with_line
from goodbot.api.sampler import TokenizedTurn
from goodbot.base.errors import TrainingError
from goodbot_training.job.types import Job
from goodbot_training.round import refuting
from goodbot_training.round.checkpoints import fingerprint
from goodbot_training.round.refuting import Borne, compare
from goodbot_training.round.rollouts import build_rollouts
from goodbot_training.round.run import run_round

from tests.training.factories import make_rollout, raw_item
from tests.training.factories import raw_job as a_job
from tests.training.test_slices import FACTORIES, backend, raw_job

BRIEF = f'{FRAME}"Answer briefly, in fewer words."'


@pytest.mark.parametrize(
    ("good", "bad", "refuted"),
    [
        ([-2.0] * 8, [1.0] * 8, True),
        ([1.0] * 8, [-2.0] * 8, False),
        ([0.0] * 8, [0.0] * 8, False),
        ([-2.0] * 3, [1.0] * 30, False),  # three good ones tell nothing
        ([-2.0] * 5 + [2.0] * 4, [-1.0] * 5 + [1.0] * 6, False),  # chance does as much
        ([-2.0] * 7 + [500.0], [1.0] * 8, True),  # one that the line makes sure counts no more than others
    ],
)
def test_a_line_is_refuted_where_bad_answers_follow_it_more_than_good_ones_beyond_chance(
    good: list[float], bad: list[float], refuted: bool
) -> None:
    assert Borne.of(good, bad).refuted is refuted


def test_a_line_that_says_little_for_bad_answers_is_not_refuted_however_sure_that_is() -> None:
    assert not Borne.of([0.0, -0.1] * 50, [0.5, 0.4] * 50).refuted
    assert Borne.of([0.0, -0.1] * 50, [1.0, 0.9] * 50).refuted


def test_by_chance_a_line_is_refuted_one_time_in_ten_at_most() -> None:
    chance = np.random.default_rng(0)
    drawn = [Borne.of(*(chance.normal(0, 2, n).tolist() for n in (10, 20))) for _ in range(2000)]
    assert 0.07 < sum(one.refuted for one in drawn) / len(drawn) < 0.13


BAD: list[tuple[dict[str, Any], str]] = [
    ({"id": "1", "text": BRIEF}, "lines: id is not a whole number"),
    ({"id": 1, "text": ""}, "lines: text must be text"),
    ({"id": 1, "text": BRIEF, "good": "turn-1"}, "lines: good"),
]


@pytest.mark.parametrize(("entry", "why"), BAD)
def test_a_line_that_is_none_is_a_fault_of_the_job(entry: dict[str, Any], why: str) -> None:
    with pytest.raises(TrainingError, match=why):
        Job.parse(a_job(lines=[entry]))


class Reader:
    """A model to which a short answer is likelier with a line in the prompt, and a long one less likely."""

    def __init__(self) -> None:
        self.read = 0

    def tokenize(self, messages: Any, response: str) -> TokenizedTurn:
        return TokenizedTurn(prompt=(1 if BRIEF in str(messages) else 2, 3), response=())

    def logprobs(self, batch: Any, *, temperature: Any, adapter: bool) -> list[Any]:
        assert not adapter, "the base reads"
        self.read += len(batch)
        return [self.said(turn.prompt[0] == 1, len(turn.response)) for turn in batch]

    @staticmethod
    def said(noted: bool, length: int) -> Any:
        return np.full(length, -(1.0 if not noted else 0.5 if length == 2 else 1.5), np.float32)


def told(good: int, bad: int, reader: Any, **changes: Any) -> list[dict[str, Any]]:
    """What is told of a line for brief answers by somebody who liked answers of so many tokens."""
    rollouts = [
        make_rollout(
            n,
            length=length,
            turn=TokenizedTurn(prompt=(2, 3), response=tuple(range(length))),
            reference_logprobs=Reader.said(False, length),
            **changes,
        )
        for n, length in enumerate([good] * 5 + [bad] * 5)
    ]
    ids = [row.id for row in rollouts]
    line = {"id": 5, "text": BRIEF, "good": ids[:5], "bad": ids[5:]}
    job = Job.parse(a_job(items=[raw_item(n) for n in range(10)], lines=[line]))
    events: list[dict[str, Any]] = []
    compare(job, reader, rollouts, events.append)
    return [one for event in events for one in event.get("lines", ())]


@pytest.mark.parametrize(("good", "bad", "refuted"), [(6, 2, True), (2, 6, False)])
def test_who_likes_long_answers_refutes_a_line_for_brief_ones(good: int, bad: int, refuted: bool) -> None:
    reader: Any = Reader()
    [found] = told(good, bad, reader)
    assert (found["id"], found["refuted"], found["good"], found["bad"]) == (5, refuted, 5, 5)
    assert found["ahead"] == (-4.0 if refuted else 4.0), "1 nat more of the short ones, 3 less of the others"
    assert reader.read == 10, "what the base says without it is known"


def test_better_answers_that_people_wrote_are_no_ratings() -> None:
    assert told(6, 2, Reader(), demonstration=True) == []


@pytest.mark.parametrize("name", FACTORIES)
def test_the_base_reads_each_answer_with_the_line_and_without(
    name: str, random_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    raw = raw_job(random_model, tmp_path)
    line = {"id": 5, "text": BRIEF, "good": ["turn-1", "turn-3"], "bad": ["turn-0", "turn-7", "turn-2"]}
    job = Job.parse({**raw, "lines": [line]})
    assert fingerprint(job) == fingerprint(Job.parse(raw)), "a killed round goes on, whatever is compared"
    one = backend(name)()
    one.load(random_model, lora=LoraSettings(rank=4, alpha=16.0), seed=job.seed)
    monkeypatch.setattr(refuting, "_FEWEST", 2)
    train = [row for row in build_rollouts(job, one)[0] if row.split == "train"]
    seen: dict[str, list[float]] = {}

    def of(good: list[float], bad: list[float]) -> Borne:
        seen.update(good=good, bad=bad)
        return Borne(2, 2, 0.5, 1.0)

    monkeypatch.setattr(refuting.Borne, "of", of)
    compare(job, one, train, lambda event: None)
    rows = {row.id: row for row in train}
    for kind, ids in (("good", ("turn-1", "turn-3")), ("bad", ("turn-0", "turn-2"))):
        for id_, found in zip(ids, seen[kind], strict=True):
            row, item = rows[id_], next(item for item in job.items if item.id == id_)
            prompt = one.tokenize(with_line(item.messages, BRIEF), item.response).prompt
            turn = TokenizedTurn(prompt=prompt, response=row.turn.response)
            with_, without = (
                one.logprobs([t], temperature=[row.temperature], adapter=False)[0].sum()
                for t in (turn, row.turn)
            )
            assert found == pytest.approx(float(with_ - without), abs=1e-3)


def test_a_round_tells_it_before_its_gate_and_trains_as_without(random_model: Path, tmp_path: Path) -> None:
    """Only of a candidate that has passed: what answers goes without the line."""
    ids = [f"turn-{n}" for n in range(6)]
    line = {"id": 5, "text": BRIEF, "good": ids[1::2], "bad": ids[::2]}
    found: list[list[dict[str, Any]]] = []
    for lines in ([], [line]):
        raw = raw_job(random_model, tmp_path / str(len(lines)), lines=lines)
        events: list[dict[str, Any]] = []
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(refuting, "_FEWEST", 3)
            run_round(Job.parse(raw), backend("torch")(), events.append)
        found.append(events)
    kinds = [event["event"] for event in found[1]]
    assert kinds.index("lines") < kinds.index("gate")
    assert "lines" not in [event["event"] for event in found[0]]
    losses = [[event.get("loss") for event in events if event.get("phase") == "train"] for events in found]
    assert losses[0] == losses[1]
