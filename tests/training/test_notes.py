# SPDX-License-Identifier: Apache-2.0
"""Notes taught to the weights, and a candidate that is tried without them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from goodbot.api.backend import LoraSettings
from goodbot.api.noted import FRAME, with_line
from goodbot.api.sampler import TokenizedTurn
from goodbot.base.errors import TrainingError
from goodbot_training.job.rated import Said
from goodbot_training.job.types import Job
from goodbot_training.round import retiring
from goodbot_training.round.notes import distil
from goodbot_training.round.retiring import Rates
from goodbot_training.round.rollouts import build_rollouts
from goodbot_training.round.run import run_round

from tests.training.factories import raw_job as a_job
from tests.training.test_slices import FACTORIES, adapter, backend, raw_job

NOTE = f'{FRAME}"Answer briefly, in fewer words."'
BEFORE = f'Be kind.\n\n{FRAME}"Say it in French."'


def noted(model: Path, folder: Path, *, of: tuple[int, ...] = (), **changes: Any) -> dict[str, Any]:
    """A job with this note on these of its items; the first answer was given with another one."""
    raw = raw_job(model, folder)
    settings = {**raw["settings"], "objective": "hybrid", "hindsight_clip": 50.0, **changes}
    items = [{**item, "note": NOTE if index in of else ""} for index, item in enumerate(raw["items"])]
    items[0]["messages"] = [{"role": "system", "content": BEFORE}, *items[0]["messages"]]
    return {**raw, "settings": settings, "items": items}


def trained(raw: dict[str, Any], name: str) -> tuple[str, list[dict[str, Any]]]:
    events: list[dict[str, Any]] = []
    run_round(Job.parse(raw), backend(name)(), events.append)
    return adapter(raw), events


def test_a_line_is_put_into_a_prompt_in_the_place_of_the_one_before() -> None:
    asked = {"role": "user", "content": f"Why?\n\n{NOTE}"}
    bare = [{"role": "system", "content": "Be kind."}, asked]
    assert with_line([{"role": "system", "content": BEFORE}, asked], "") == bare
    assert with_line(bare, NOTE) == [{"role": "system", "content": f"Be kind.\n\n{NOTE}"}, asked]
    assert with_line([asked], NOTE) == [{"role": "system", "content": NOTE}, asked]
    assert with_line([{"role": "system", "content": NOTE}, asked], "") == [asked]
    assert with_line([asked], "") == [asked], "what somebody writes is no note"


@pytest.mark.parametrize("name", FACTORIES)
def test_the_teacher_answers_with_the_notes_and_the_student_has_none(
    name: str, random_model: Path, tmp_path: Path
) -> None:
    raw = noted(random_model, tmp_path, of=(0, 2, 6), hindsight_weight=0.1)
    one = backend(name)()
    job = Job.parse(raw)
    one.load(random_model, lora=LoraSettings(rank=4, alpha=16.0), seed=job.seed)
    trained(raw, name)
    for parent in (None, Path(raw["output"])):
        job = replace(job, parent=parent)
        one.load_adapter(parent)
        rollouts, _ = build_rollouts(job, one)
        found = distil(job, one, rollouts)
        assert [row.id for row in found] == ["turn-0", "turn-2"], "what is held out is not taught"
        again = distil(job, one, rollouts)
        for row, same in zip(found, again, strict=True):
            item = job.items[int(row.id[-1])]
            plain = with_line(item.messages, "")
            assert row.turn.prompt == one.tokenize(plain, "").prompt
            teacher = one.tokenize(with_line(plain, NOTE), "").prompt
            heat = [row.temperature]
            turns = [row.turn, TokenizedTurn(prompt=teacher, response=row.turn.response)]
            (own,), (with_,) = (one.logprobs([t], temperature=heat, adapter=True) for t in turns)
            (base,) = one.logprobs([row.turn], temperature=heat, adapter=False)
            assert row.hindsight is not None
            said = row.temperature * (with_ - own)
            np.testing.assert_allclose(row.hindsight, said, rtol=0, atol=1e-4)
            np.testing.assert_allclose(row.sampling_logprobs, own, rtol=0, atol=1e-4)
            np.testing.assert_allclose(row.reference_logprobs, base, rtol=0, atol=1e-4)
            assert np.abs(row.hindsight).max() > 1e-2, "the note says something"
            assert (row.rated, row.reward, row.weight) == (False, 0.0, item.weight)
            assert row.turn == same.turn, "an interrupted round goes on with the same answers"


def test_an_answer_that_notes_teach_weighs_what_its_notes_do_and_no_more_than_a_rating(
    random_model: Path, tmp_path: Path
) -> None:
    """At twice the temperature log-probs lie half as far apart, which says no less."""
    raw = noted(random_model, tmp_path, of=(0,), hindsight_weight=0.1)
    job = Job.parse(raw)
    one = backend("torch")()
    one.load(random_model, lora=LoraSettings(rank=4, alpha=16.0), seed=job.seed)

    def taught(**changes: Any) -> Any:
        item = replace(job.items[0], **changes)
        changed = replace(job, items=(item, *job.items[1:]), settings=settings)
        rollouts, _ = build_rollouts(changed, one)
        [row] = distil(changed, one, rollouts)
        return row

    settings = job.settings
    whole = taught()
    np.testing.assert_allclose(taught(note=Said(text=NOTE, weight=0.25)).hindsight, whole.hindsight / 4)
    hot = taught(temperature=2.0)
    teacher = one.tokenize(with_line(job.items[0].messages, NOTE), "").prompt
    turns = [hot.turn, TokenizedTurn(prompt=teacher, response=hot.turn.response)]
    own, with_ = (one.logprobs([turn], temperature=[2.0], adapter=True)[0] for turn in turns)
    np.testing.assert_allclose(hot.hindsight, 2 * (with_ - own), rtol=0, atol=1e-4)
    settings = replace(job.settings, hindsight_weight=10 / whole.said)
    assert settings.hindsight_weight * taught().said == pytest.approx(1.0, rel=1e-5)


def test_a_round_without_notes_is_the_round_that_it_was(random_model: Path, tmp_path: Path) -> None:
    """To the bit, for each objective; and the default teaches none."""
    for objective in ("tapered", "hybrid"):
        plain, _ = trained(noted(random_model, tmp_path / f"{objective}-1", objective=objective), "torch")
        raw = noted(random_model, tmp_path / f"{objective}-2", of=(0, 2), objective=objective)
        noted_, events = trained(raw, "torch")
        off, _ = trained(
            noted(random_model, tmp_path / f"{objective}-3", of=(0, 2), objective=objective, note_weight=0.0),
            "torch",
        )
        assert off == plain
        assert (noted_ == plain) == (objective == "tapered")
        assert events[-1]["metrics"]["notes"] == (0 if objective == "tapered" else 2)
        assert events[-1]["metrics"]["rollouts"] == 6


def test_what_nobody_rated_changes_no_rating(random_model: Path, tmp_path: Path) -> None:
    """Neither the baseline that the next round starts from, nor what is told of the rewards."""
    _, plain = trained(noted(random_model, tmp_path / "1"), "torch")
    _, more = trained(noted(random_model, tmp_path / "2", of=(0, 2)), "torch")
    assert more[-1]["baseline"] == plain[-1]["baseline"]
    assert more[-1]["metrics"]["reward"] == plain[-1]["metrics"]["reward"]


BAD: list[tuple[dict[str, Any], str]] = [
    ({"id": "1", "prompts": []}, "notes: id is not a whole number"),
    ({"id": 1, "prompts": [{"messages": [], "with": "", "without": ""}]}, "there is no message"),
    (
        {"id": 1, "prompts": [{"messages": [{"role": "user", "content": "x"}], "with": 1, "without": ""}]},
        "must be text",
    ),
]


@pytest.mark.parametrize(("entry", "why"), BAD)
def test_a_trial_that_is_none_is_a_fault_of_the_job(entry: dict[str, Any], why: str) -> None:
    with pytest.raises(TrainingError, match=why):
        Job.parse(a_job(notes=[entry]))


def test_the_trial_is_no_part_of_what_a_checkpoint_is_compared_by(random_model: Path, tmp_path: Path) -> None:
    from goodbot_training.round.checkpoints import fingerprint

    raw = noted(random_model, tmp_path)
    more = {**raw, "notes": [{"id": 1, "prompts": [prompt("Why?")]}]}
    assert fingerprint(Job.parse(raw)) == fingerprint(Job.parse(more))


def prompt(question: str) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": question}], "with": NOTE, "without": ""}


@pytest.mark.parametrize(
    ("rates", "works", "retires"),
    [
        (Rates(48, 0.95, 0.2, 0.95, 0.95), True, True),
        (Rates(48, 0.95, 0.2, 1.0, 0.6), True, False),
        (Rates(48, 0.95, 0.2, 0.95, 0.87), True, False),  # as good as kept: chance may have a part in it
        (Rates(48, 0.95, 0.2, 0.3, 0.3), True, False),  # it does not heed the note any more
        (Rates(48, 0.6, 0.5, 0.9, 0.9), False, False),  # the note does nothing
        (Rates(4, 1.0, 0.0, 1.0, 1.0), True, False),  # four answers are no certainty
    ],
)
def test_a_note_retires_where_it_is_kept_beyond_chance(rates: Rates, works: bool, retires: bool) -> None:
    assert (rates.works, rates.retires) == (works, retires)


class Speaker:
    """A model that answers by the note in the prompt, or as its version has learnt: `s` or `l`."""

    def __init__(self, learnt: bool, deaf: bool = False) -> None:
        self.learnt, self.deaf = learnt, deaf
        self.version = 0
        self.asked = 0

    def sampler(self) -> Speaker:
        return self

    def load_adapter(self, version: int, directory: Path) -> None:
        pass

    def activate(self, version: int) -> None:
        self.version = version

    def tokenize(self, messages: Any, response: str) -> TokenizedTurn:
        return TokenizedTurn(prompt=(1 if NOTE in str(messages) else 2, 3), response=())

    def sample_many(self, requests: Any) -> list[Any]:
        from types import SimpleNamespace

        self.asked += len(requests)
        found: list[Any] = []
        for request in requests:
            prompt_ = self.tokenize(request.messages, "").prompt
            follows = (prompt_[0] == 1 and not self.deaf) or (self.version == 1 and self.learnt)
            turn = TokenizedTurn(prompt=prompt_, response=(7 if follows else 8,))
            found.append(SimpleNamespace(prompt=prompt_, turn=turn))
        return found

    def logprobs(self, batch: Any, *, temperature: Any, adapter: bool) -> list[Any]:
        assert not adapter, "the base reads"
        likely = [(turn.prompt[0] == 1 and not self.deaf) == (turn.response == (7,)) for turn in batch]
        return [np.array([-0.1 if one else -3.0], np.float32) for one in likely]


@pytest.mark.parametrize(
    ("speaker", "retires", "asked"),
    [(Speaker(True), True, 4), (Speaker(False), False, 4), (Speaker(True, deaf=True), False, 2)],
)
def test_a_candidate_is_tried_with_and_without(speaker: Any, retires: bool, asked: int) -> None:
    """Where the note does nothing to the base the candidate is not asked."""
    prompts = [prompt(f"Why {n}?") for n in range(3)]
    job = Job.parse(a_job(notes=[{"id": 5, "prompts": prompts}], settings={"note_answers": 24}))
    events: list[dict[str, Any]] = []
    retiring.try_without(job, speaker, Path("v1"), events.append)
    assert events[-1]["event"] == "notes"
    assert [(one["id"], one["retired"]) for one in events[-1]["notes"]] == [(5, retires)]
    assert speaker.asked == 24 * asked
    done = [event for event in events if event["event"] == "progress"]
    assert done[-1]["step"] == done[-1]["steps"] == 96


def test_too_few_questions_tell_nothing() -> None:
    job = Job.parse(a_job(notes=[{"id": 5, "prompts": [prompt("Why?")] * 2}]))
    events: list[dict[str, Any]] = []
    speaker: Any = Speaker(True)
    retiring.try_without(job, speaker, Path("v1"), events.append)
    assert (events, speaker.asked) == ([], 0)


def test_a_round_tells_its_trial_before_its_gate(random_model: Path, tmp_path: Path) -> None:
    raw = noted(
        random_model, tmp_path, of=(0, 2), gate_max_foreign=1.0, gate_min_retained=0.0, note_answers=4
    )
    raw["notes"] = [{"id": 5, "prompts": [prompt(f"Why {n}?") for n in range(3)]}]
    _, events = trained(raw, "torch")
    names = [event["event"] for event in events]
    (gate,) = [event for event in events if event["event"] == "gate"]
    assert gate["passed"]
    assert names.index("notes") < names.index("gate")
