# SPDX-License-Identifier: Apache-2.0
"""Words as token advantages: by a reference of their own, in each namespace, on tiny models, in a round."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from goodbot.api.backend import LoraSettings, OptimizerSettings
from goodbot.api.hindsight import CHIPS, LONGEST, hindsight
from goodbot.base.errors import TrainingError
from goodbot.testing import ObjectiveContract
from goodbot_training.job.types import Baseline, Job, RatedSample, TrainingSettings
from goodbot_training.objectives import Objective, make_objective
from goodbot_training.objectives.advantages import to_learn
from goodbot_training.planning import run_plan
from goodbot_training.round import hindsight as teaching
from goodbot_training.round.batches import pad
from goodbot_training.round.resume_loop import make_lesson
from goodbot_training.round.rollouts import build_rollouts
from goodbot_training.round.run import run_round

from tests.support import require
from tests.training.factories import make_rollout, raw_item
from tests.training.factories import raw_job as a_job
from tests.training.oracle import arrays, batch
from tests.training.test_slices import FACTORIES, KilledError, adapter, backend, raw_job

N = 20.0
OBJECTIVES = ("hindsight", "hybrid")
SAID = "That was too long. <|im_end|>"


def words(dtype: Any = np.float64) -> Any:
    """Of `oracle.arrays`: for and against tokens of two answers, one good and one bad; padding is 0."""
    found = np.zeros((4, 6))
    found[1] = [0.0, 0.0, -2.0, 0.7, 0.0, 0.0]
    found[2] = [0.0, 0.0, 1.3, -0.4, 2.0, -0.1]
    return found.astype(dtype)


def reference(policy: Any, *, weight: float = 0.6, kl: float = 0.1) -> tuple[float, Any]:
    """Loss and its gradient by the formula, a token at a time, in plain floats: nothing of ours in it."""
    data, said = arrays(), words()
    loss, slope = 0.0, np.zeros_like(policy)
    for row, column in np.argwhere(data["mask"] > 0):
        now, wrote, base = (
            float(array[row, column])
            for array in (policy, data["sampling_logprobs"], data["reference_logprobs"])
        )
        a = float(data["advantages"][row])
        ratios = policy[row, : column + 1] - data["sampling_logprobs"][row, : column + 1]
        fades = math.exp(min(0.0, float(ratios.sum()))) * (1 - math.exp(base))
        word = float(said[row, column])
        push = a if a > 0 else a * fades
        push += weight * word * (min(1.28, max(0.8, math.exp(now - wrote))) if word > 0 else fades)
        away, held = base - now, kl if word > 0 or a > 0 else 0.0
        loss += (held * (math.exp(away) - away - 1) - push * now) / N
        slope[row, column] = (held * (1 - math.exp(away)) - push) / N
    return loss, slope


def made(name: str) -> Any:
    return _objective(name, TrainingSettings(hindsight_weight=0.6))


@pytest.mark.parametrize("name", OBJECTIVES)
def test_numpy_agrees_with_the_formula(name: str) -> None:
    data = arrays()
    loss, _ = made(name)(np, **data, normalizer=N, hindsight=words())
    assert float(loss) == pytest.approx(reference(data["policy_logprobs"])[0])


@pytest.mark.parametrize("name", OBJECTIVES)
def test_torch_agrees_with_the_formula_and_its_gradient(name: str) -> None:
    torch = require("torch")
    data = {key: torch.tensor(array) for key, array in arrays(np.float32).items()}
    data["policy_logprobs"].requires_grad_()
    loss, _ = made(name)(torch, **data, normalizer=N, hindsight=torch.tensor(words(np.float32)))
    loss.backward()
    expected, slope = reference(arrays()["policy_logprobs"])
    assert float(loss.detach()) == pytest.approx(expected, rel=1e-4, abs=1e-4)
    np.testing.assert_allclose(data["policy_logprobs"].grad.numpy(), slope, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("name", OBJECTIVES)
def test_mlx_agrees_with_the_formula_and_its_gradient(name: str) -> None:
    mx = require("mlx.core")
    data = {key: mx.array(array) for key, array in arrays(np.float32).items()}
    policy, said = data.pop("policy_logprobs"), mx.array(words(np.float32))

    def loss_of(policy: Any) -> Any:
        return made(name)(mx, policy_logprobs=policy, **data, normalizer=N, hindsight=said)[0]

    loss, gradient = mx.value_and_grad(loss_of)(policy)
    expected, slope = reference(arrays()["policy_logprobs"])
    assert float(loss) == pytest.approx(expected, rel=1e-4, abs=1e-4)
    np.testing.assert_allclose(np.array(gradient), slope, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("name", OBJECTIVES)
@pytest.mark.parametrize("far", [0.5, 0.1, 0.02, 1e-6])
def test_a_complaint_never_makes_likelier_what_it_complains_of(name: str, far: float) -> None:
    """However far below the base the policy is already, where a hold to the base would pull hardest."""
    torch = require("torch")
    one = torch.ones(1, 1)
    policy = (one * math.log(far)).requires_grad_()
    loss, _ = made(name)(
        torch,
        policy,
        policy.detach(),
        one * math.log(0.5),
        torch.tensor([-1.0]),
        one,
        1.0,
        hindsight=one * -0.5,
    )
    loss.backward()
    assert policy.grad is not None
    assert float(policy.grad) > 0, "down is the way"


@pytest.mark.parametrize("name", OBJECTIVES)
def test_without_words_a_thumb_keeps_its_bit(name: str) -> None:
    plain: Any = make_objective(TrainingSettings())(np, **arrays(), normalizer=N)[0]
    for nobody in (None, np.zeros((4, 6))):
        loss, _ = made(name)(np, **arrays(), normalizer=N, hindsight=nobody)
        assert float(loss) == float(plain)


@pytest.mark.parametrize("name", OBJECTIVES)
def test_a_ratio_beyond_all_numbers_stays_in_its_band(name: str) -> None:
    data = arrays()
    data["sampling_logprobs"] = data["sampling_logprobs"] - 2000.0 * data["mask"]
    data["advantages"] = np.zeros(4)
    with np.errstate(over="ignore"):  # of the whole answer's ratio, which nothing is made of here
        loss, _ = made(name)(np, **data, normalizer=N, hindsight=words())
    assert np.isfinite(loss)


def _objective(name: str, settings: TrainingSettings) -> Objective:
    return make_objective(replace(settings, objective=name))


class TestHindsight(ObjectiveContract):
    @pytest.fixture(params=OBJECTIVES)
    def factory(self, request: pytest.FixtureRequest) -> Any:
        return partial(_objective, request.param)


def test_the_first_tokens_say_nothing_and_none_says_more_than_the_bound() -> None:
    settings = TrainingSettings(hindsight_clip=1.5, hindsight_skip=1)
    student, teacher = np.zeros(4, np.float32), np.array([-9.0, -9.0, 0.5, 9.0], np.float32)

    def found(settings: TrainingSettings, temperature: float = 1.0) -> list[float]:
        return teaching.advantages(student, teacher, settings, temperature=temperature, reward=-1.0).tolist()

    assert found(settings) == [0.0, -1.5, 0.5, 1.5]
    assert found(TrainingSettings()) == [0.0, 0.0, 0.5, 2.0]
    assert found(TrainingSettings(), 0.5) == [0.0, 0.0, 0.25, 2.0], "cold log-probs lie further apart"


@pytest.mark.parametrize("reward", [-1.0, 0.5, 0.0])
@pytest.mark.parametrize("weight", [1.0, 4.0])
def test_words_are_no_more_than_the_rating_that_they_came_with(reward: float, weight: float) -> None:
    settings = TrainingSettings(hindsight_weight=weight, hindsight_skip=0)
    student, teacher = np.zeros(4, np.float32), np.array([-9.0, 9.0, -9.0, 1.0], np.float32)
    found = teaching.advantages(student, teacher, settings, temperature=1.0, reward=reward)
    assert weight * np.abs(found).mean() == pytest.approx(abs(reward))
    if reward:
        np.testing.assert_allclose(found / found[1], [-1.0, 1.0, -1.0, 0.5], rtol=1e-6)


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ({"hindsight_clip": 0}, "hindsight_clip must be above 0"),
        ({"hindsight_weight": -1}, "hindsight_weight must be"),
        ({"hindsight_skip": -1}, "hindsight_skip must be"),
    ],
)
def test_settings_out_of_range_are_told(wrong: dict[str, Any], why: str) -> None:
    with pytest.raises(TrainingError, match=why):
        TrainingSettings.from_mapping(wrong)


def test_words_stand_behind_the_last_question() -> None:
    asked = [
        {"role": "system", "content": "s"},
        {"role": "user", "content": "one"},
        {"role": "assistant", "content": "two"},
        {"role": "user", "content": "three"},
        {"role": "tool", "content": "four"},
    ]
    found = teaching.with_words(asked, "words")
    assert [message["content"] for message in found] == ["s", "one", "two", "three\n\nwords", "four"]
    assert asked[3]["content"] == "three"
    assert teaching.with_words(asked[:1], "words") == []


@pytest.mark.parametrize(
    "said",
    [
        3,
        "x" * (LONGEST + 1),
        ["x"],
        [{"text": "x"}],
        [{"text": 3, "weight": 1.0}],
        [{"text": "x", "weight": -1.0}],
        [{"text": "x", "weight": 1.0}] * 4,
    ],
)
def test_an_item_whose_words_are_none_is_refused(said: object) -> None:
    with pytest.raises(TrainingError, match="hindsight"):
        RatedSample.parse(raw_item(hindsight=said))
    [one] = RatedSample.parse(raw_item(hindsight="x" * LONGEST, weight=0.25)).hindsight
    assert one.weight == 0.25, "a text alone weighs as its item"
    assert (
        RatedSample.parse(raw_item()).hindsight == RatedSample.parse(raw_item(hindsight="")).hindsight == ()
    )


def test_the_text_of_what_was_said() -> None:
    text = hindsight(chips=["long", "long", "better", "none"], reasons=["too\x1b[2Jlong\n\u202ea  lot"])
    assert text == f"{CHIPS['long']}\ntoolong a lot"
    assert hindsight() == ""
    assert hindsight(chips=["better"], reasons=[" \x00 "]) == ""
    assert 900 < len(hindsight(chips=list(CHIPS), reasons=["x" * 9000] * 9)) <= LONGEST


def test_a_batch_carries_the_words_as_they_weigh() -> None:
    said = make_rollout(0, weight=0.25, hindsight=np.array([0.0, -0.5, 0.25], np.float32))
    bare = make_rollout(1, length=5)
    found = pad([said, bare], [0.0, 0.0], 1.0)
    assert found.hindsight is not None
    assert found.hindsight.tolist() == [[0.0, -0.5, 0.25, 0.0, 0.0], [0.0] * 5]
    assert found.teaches
    assert pad([bare], [0.0], 1.0).hindsight is None
    assert not pad([bare], [0.0], 1.0).teaches


def test_a_round_of_words_has_something_to_learn_where_its_ratings_say_nothing_new() -> None:
    bad, ones = [-1.0, -1.0], [1.0, 1.0]
    assert to_learn(Baseline(), bad, ones, [0.0, 0.0]) == 0
    assert to_learn(Baseline(), bad, ones, [0.0, 0.0], [0.0, 0.0]) == 0
    assert to_learn(Baseline(), bad, ones, [0.0, 0.0], [0.5, 0.0]) == 0.25
    assert to_learn(Baseline(), [1.0, -1.0], ones, [1.0, -1.0], [0.5, 0.5]) == 1


def lesson_of(objective: str, words: list[float]) -> Any:
    """Of bad answers of weight ½ and a good one, of which words say so much a unit of weight."""
    settings = TrainingSettings(objective=objective, hindsight_weight=0.5)
    rollouts = [
        make_rollout(
            n,
            length=2,
            reward=-1.0 if n else 1.0,
            weight=0.5,
            hindsight=np.array([word / 2, -word / 2], np.float32) if word else None,
        )
        for n, word in enumerate([0.0, *words])
    ]
    job = replace(Job.parse(a_job()), settings=settings, baseline=Baseline(mean=0.0, weight=1.0), items=())
    backend_: Any = SimpleNamespace(parameters=10**6)
    return make_lesson(job, backend_, make_objective(settings), rollouts, recompute=False)


def test_in_hindsight_words_take_as_much_of_a_rating_as_they_say() -> None:
    bits = lesson_of("tapered", [0.0, 0.0, 0.0])
    beside = lesson_of("hybrid", [0.1, 1.0, 8.0])
    instead = lesson_of("hindsight", [0.1, 1.0, 8.0])
    assert beside.advantages == bits.advantages
    shares = [1.0, 0.95, 0.5, 0.0]
    assert instead.advantages == pytest.approx([a * s for a, s in zip(bits.advantages, shares, strict=True)])
    assert instead.baseline == bits.baseline


def test_the_rate_counts_what_the_steps_see() -> None:
    """Words in the place of a rating are no more to learn than the rating was; beside it they are."""
    bits, beside, instead = (
        lesson_of(objective, [word] * 3).optimizer.learning_rate
        for objective, word in (("tapered", 0.0), ("hybrid", 0.5), ("hindsight", 0.5))
    )
    assert beside == pytest.approx(bits * (0.5 + 0.75 * 0.125) / 0.5)
    assert instead == pytest.approx(bits)


def worded(model: Path, folder: Path, *, said: dict[int, str], **changes: Any) -> dict[str, Any]:
    raw = raw_job(model, folder)
    settings = {**raw["settings"], "objective": "hybrid", **changes}
    items = [{**item, "hindsight": said.get(index, "")} for index, item in enumerate(raw["items"])]
    return {**raw, "settings": settings, "items": items}


def trained(raw: dict[str, Any], name: str) -> tuple[str, list[dict[str, Any]]]:
    events: list[dict[str, Any]] = []
    run_round(Job.parse(raw), backend(name)(), events.append)
    return adapter(raw), events


@pytest.mark.parametrize("name", FACTORIES)
def test_the_teacher_is_the_rounds_start_with_the_words_in_its_prompt(
    name: str, random_model: Path, tmp_path: Path
) -> None:
    """The same response tokens; no mark of the template comes out of the words."""
    raw = worded(random_model, tmp_path, said={0: SAID, 2: SAID, 6: SAID}, hindsight_clip=50.0)
    one = backend(name)()
    job = Job.parse(raw)
    one.load(random_model, lora=LoraSettings(rank=4, alpha=16.0), seed=job.seed)
    trained(raw, name)
    for parent in (None, Path(raw["output"])):
        job = replace(job, parent=parent)
        one.load_adapter(parent)
        rollouts, _ = build_rollouts(job, one)
        found = teaching.teach(job, one, rollouts)
        assert set(found) == {"turn-0", "turn-2"}, "what is held out is asked about, not taught"
        for row in (rollout for rollout in rollouts if rollout.id in found):
            item = job.items[int(row.id[-1])]
            asked = [{"role": "user", "content": f"{item.messages[0]['content']}\n\n{SAID}"}]
            prompt = one.tokenize(asked, item.response).prompt
            marks = [token for token in prompt if token < 3]
            assert len(marks) == len([token for token in row.turn.prompt if token < 3])
            heat = [row.temperature]
            (with_,) = one.logprobs(
                [type(row.turn)(prompt=prompt, response=row.turn.response)], temperature=heat, adapter=True
            )
            (without,) = one.logprobs([row.turn], temperature=heat, adapter=True)
            expected = row.temperature * (with_ - without)
            expected[:2] = 0
            np.testing.assert_allclose(found[row.id], expected, rtol=0, atol=1e-4)
            assert np.abs(found[row.id]).max() > 1e-2, "the words say something"


def test_words_of_token_ids_that_the_model_does_not_know_are_passed_over(
    random_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a tokenizer that is larger than the model: they would end every attempt at the round."""
    job = Job.parse(worded(random_model, tmp_path, said={0: SAID, 2: "That was wrong."}))
    one: Any = backend("torch")()
    one.load(random_model, lora=LoraSettings(rank=4, alpha=16.0), seed=job.seed)
    rollouts, _ = build_rollouts(job, one)
    tokenize = one.tokenize

    def strange(messages: Any, response: str, *thought: str) -> Any:
        turn = tokenize(messages, response, *thought)
        return replace(turn, prompt=(*turn.prompt, one.vocabulary)) if "wrong" in str(messages) else turn

    monkeypatch.setattr(one, "tokenize", strange)
    assert set(teaching.teach(job, one, rollouts)) == {"turn-0"}


@pytest.mark.parametrize("name", FACTORIES)
def test_a_round_without_a_word_is_the_one_that_never_had_it(
    name: str, random_model: Path, tmp_path: Path
) -> None:
    """To the digit: what undo comes to in the weights."""
    both = worded(random_model, tmp_path / "both", said={0: SAID, 2: "That was wrong."})
    undone = worded(random_model, tmp_path / "undone", said={0: SAID})
    never = worded(random_model, tmp_path / "never", said={0: SAID})
    never["items"] = [
        {key: value for key, value in item.items() if key != "hindsight" or value} for item in never["items"]
    ]
    first, events = trained(both, name)
    assert events[-1]["metrics"]["hindsight"] == 2
    second, events = trained(undone, name)
    assert events[-1]["metrics"]["hindsight"] == 1
    assert second == trained(never, name)[0]
    assert first != second
    bits = worded(random_model, tmp_path / "bits", said={}, objective="tapered")
    silent = worded(random_model, tmp_path / "silent", said={})
    assert trained(silent, name)[0] == trained(bits, name)[0], "hybrid without words is the default"
    deaf = worded(random_model, tmp_path / "deaf", said={0: SAID}, hindsight_weight=0.0)
    assert trained(deaf, name)[0] == adapter(bits), "a weight of 0 is none"


def test_a_better_answer_is_learnt_and_is_no_rating() -> None:
    """It weighs as a good rating of its weight would, whatever the others were, and moves no baseline."""
    rated = [make_rollout(n, reward=-1.0 if n else 1.0) for n in range(3)]
    better = make_rollout(9, weight=0.25, demonstration=True)
    settings = TrainingSettings(objective="hybrid")
    job = replace(Job.parse(a_job()), settings=settings, baseline=Baseline(mean=0.0, weight=1.0), items=())
    model: Any = SimpleNamespace(parameters=10**6)
    plain, more, alone = (
        make_lesson(job, model, make_objective(settings), rows, recompute=False)
        for rows in (rated, [rated[0], better, *rated[1:]], [better])
    )
    assert more.advantages == [*plain.advantages, 0.25]
    assert [row.id for row in more.rollouts] == [*(row.id for row in rated), better.id]
    assert more.baseline == plain.baseline
    assert alone.baseline == job.baseline
    assert alone.advantages == [0.25]
    assert alone.optimizer.learning_rate == pytest.approx(settings.bolder * settings.rate_for(10**6) * 0.25)


BETTER = "It is four."


def shown(raw: dict[str, Any], reward: float = 1.0) -> dict[str, Any]:
    """The job with a better answer to one of its questions."""
    extra = {
        "id": "turn-0+better",
        "messages": raw["items"][0]["messages"],
        "response": BETTER,
        "temperature": 0.8,
        "version": None,
        "reward": reward,
        "weight": 1.0,
        "split": "train",
        "demonstration": True,
    }
    return {**raw, "items": [raw["items"][0], extra, *raw["items"][1:]]}


@pytest.mark.parametrize("name", FACTORIES)
def test_a_round_makes_a_better_answer_likelier(name: str, random_model: Path, tmp_path: Path) -> None:
    found: list[float] = []
    raws = [worded(random_model, tmp_path / part, said={}) for part in ("without", "with")]
    for raw in (raws[0], shown(raws[1])):
        _, events = trained(raw, name)
        one = backend(name)()
        one.load(random_model, lora=LoraSettings(rank=4, alpha=16.0), adapter=Path(raw["output"]))
        turn = one.tokenize(raw["items"][0]["messages"], BETTER)
        (row,) = one.logprobs([turn], temperature=[0.8], adapter=True)
        found.append(float(row.mean()))
        assert events[-1]["metrics"]["demonstrations"] == len(raw["items"]) - 8
        assert events[-1]["metrics"]["reward"] == 0.0
    assert found[1] > found[0] + 0.02


def test_the_default_objective_reads_no_words(random_model: Path, tmp_path: Path) -> None:
    said = worded(random_model, tmp_path / "said", said={0: SAID}, objective="tapered")
    bits = worded(random_model, tmp_path / "bits", said={}, objective="tapered")
    assert trained(said, "torch")[0] == trained(bits, "torch")[0]


@pytest.mark.parametrize("name", FACTORIES)
def test_words_teach_where_every_rating_is_the_same(name: str, random_model: Path, tmp_path: Path) -> None:
    """Bad answers only: against their own mean they say nothing, and the round stalls; words go on."""
    steps: dict[str, list[bool]] = {}
    for objective in ("tapered", "hindsight"):
        raw = worded(random_model, tmp_path / objective, said={0: SAID, 1: SAID}, objective=objective)
        raw["items"] = [{**item, "reward": -1.0} for item in raw["items"]]
        _, events = trained(raw, name)
        done = events[-1]["metrics"]
        steps[objective] = [bool(done["steps"]), bool(done["skipped"])]
    assert steps["tapered"] == [False, True]
    assert steps["hindsight"][0]


def test_a_killed_round_goes_on_with_the_words_that_it_has_scored(
    random_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = {0: SAID, 2: SAID}
    whole, _ = trained(worded(random_model, tmp_path / "whole", said=said), "torch")
    raw = worded(random_model, tmp_path / "killed", said=said)

    def kill(event: dict[str, Any]) -> None:
        if event["event"] == "checkpoint" and event["step"]:
            raise KilledError

    with pytest.raises(KilledError):
        run_round(Job.parse(raw), backend("torch")(), kill)
    [kept] = Path(raw["checkpoints"]).glob("scores.json")
    assert set(json.loads(kept.read_text())["scores"]["hindsight"]) == {"turn-0", "turn-2"}
    assert "too long" not in kept.read_text()
    monkeypatch.setattr(teaching, "score", None)  # nothing is scored twice
    assert trained(raw, "torch")[0] == whole


def test_what_is_too_long_with_its_words_keeps_its_rating(random_model: Path, tmp_path: Path) -> None:
    raw = worded(random_model, tmp_path, said={0: "x " * 900}, max_sequence_tokens=200)
    _, events = trained(raw, "torch")
    assert events[-1]["metrics"]["hindsight"] == 0
    assert events[-1]["metrics"]["rollouts"] == 6


def test_both_frameworks_step_alike_by_words(random_model: Path) -> None:
    """Loss and gradient norm of whole models; a batch that is cut up comes to the same."""
    norms: list[tuple[float, float]] = []
    for name in FACTORIES:
        one = backend(name)()
        one.load(random_model, lora=LoraSettings(rank=4, alpha=8.0), seed=1)
        turns = [
            one.tokenize([{"role": "user", "content": "Hi"}], text)
            for text in ("Yes.", "Arr matey! It be Paris.", "Well, I am sorry.")
        ]
        base = one.logprobs(turns, temperature=[0.8] * 3, adapter=False)
        data = batch(turns, base, base)
        said = np.random.default_rng(5).normal(0, 1, data.mask.shape).astype(np.float32) * data.mask
        said[0] = 0
        data = replace(data, hindsight=said)
        for tokens in (8192, 40):
            settings = OptimizerSettings(tokens_per_forward=tokens)
            stats = one.examine(data, settings, made("hybrid"))
            norms.append((stats.loss, stats.grad_norm))
    for found in norms[1:]:
        assert found == pytest.approx(norms[0], rel=1e-4, abs=1e-6)


@pytest.mark.parametrize("objective", ["tapered", "hindsight"])
def test_a_plan_counts_the_steps_that_words_alone_bring(
    objective: str, random_model: Path, tmp_path: Path
) -> None:
    """Bad answers only: without words no step would change a weight, and none is timed."""
    raw = worded(random_model, tmp_path, said={0: SAID, 1: SAID}, objective=objective)
    raw["items"] = [{**item, "reward": -1.0} for item in raw["items"]]
    events: list[dict[str, Any]] = []
    run_plan(Job.parse(raw), backend("torch")(), events.append)
    spent = events[-1]["estimate"]["parts"]["train"]["cpu"]
    assert (spent > 0) is (objective == "hindsight")


def test_the_progress_counts_what_is_read_for_words(random_model: Path, tmp_path: Path) -> None:
    told: dict[str, list[tuple[int, int]]] = {}
    for name, said in (("silent", {}), ("said", {0: SAID, 2: SAID, 6: SAID})):
        _, events = trained(worded(random_model, tmp_path / name, said=said), "torch")
        told[name] = [(e["step"], e["steps"]) for e in events if e.get("phase") == "rollouts"]
    assert {steps for _, steps in told["silent"]} == {8}
    assert {steps for _, steps in told["said"]} == {10}, "one pass each, and none of what is held out"
    assert (10, 10) in told["said"][:-1], "it hears of each pass"
