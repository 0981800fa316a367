# SPDX-License-Identifier: Apache-2.0
"""Answers out of less than the whole distribution: what is drawn, and what their tokens are said to weigh."""

from __future__ import annotations

import importlib
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from goodbot.api.backend import LoraSettings, OptimizerSettings
from goodbot.api.sampler import SampleRequest, TokenizedTurn
from goodbot.base.sampling import Filters
from goodbot_training.backends.filtering import Cuts, keep, penalize, pick
from goodbot_training.job.settings import TrainingSettings
from goodbot_training.job.types import Job
from goodbot_training.objectives import make_objective
from goodbot_training.objectives.mispo import VARIANTS, MisPo
from goodbot_training.round.batches import pad
from goodbot_training.round.rollouts import build_rollouts

from tests.support import require
from tests.training.factories import raw_item, raw_job

CLASSES = {"torch": "TorchBackend", "mlx": "MlxBackend"}
SETTINGS = (
    Filters(top_k=3),
    Filters(top_p=0.6),
    Filters(top_k=40, top_p=0.9),
    Filters(min_p=0.3),
    Filters(repetition_penalty=1.7),
    Filters(top_k=20, top_p=0.8, min_p=0.05, repetition_penalty=0.8),
)
NONE = Filters()


def namespaces() -> list[Any]:
    return ["numpy", "torch", "mlx.core"]


@pytest.fixture(params=namespaces())
def xp(request: pytest.FixtureRequest) -> Any:
    require(request.param)
    return importlib.import_module(request.param)


@pytest.fixture(scope="module", params=CLASSES)
def backend(request: pytest.FixtureRequest, random_model: Path) -> Any:
    require({"torch": "peft", "mlx": "mlx_lm"}[request.param])
    module = importlib.import_module(f"goodbot_training.backends.{request.param}.trainer")
    loaded = getattr(module, CLASSES[request.param])()
    loaded.load(random_model, lora=LoraSettings(rank=4, alpha=8.0), seed=1)
    return loaded


def array(xp: Any, values: Any) -> Any:
    return xp.asarray(values) if xp is np else getattr(xp, "tensor", getattr(xp, "array", None))(values)


CHANCES = [0.4, 0.25, 0.15, 0.1, 0.06, 0.04]


@pytest.mark.parametrize(
    ("filters", "kept"),
    [
        (NONE, 6),
        (Filters(top_k=2), 2),
        (Filters(top_k=100), 6),
        (Filters(top_p=0.39), 1),
        (Filters(top_p=0.6), 2),
        (Filters(top_p=0.7), 3),
        (Filters(min_p=0.3), 3),
        # of what top_k leaves, .8 together, .4 is a half and .65 is .81
        (Filters(top_k=3, top_p=0.6), 2),
        (Filters(top_k=3, top_p=0.82), 3),
        (Filters(top_p=0.95, min_p=0.2), 4),
    ],
)
def test_what_is_kept_and_what_a_token_weighs_then_by_hand(xp: Any, filters: Filters, kept: int) -> None:
    top = array(xp, np.log(np.asarray([CHANCES], np.float32)))
    cuts = Cuts.of([filters], len(CHANCES))
    found = keep(xp, top, array(xp, cuts.top_k), array(xp, cuts.top_p), array(xp, cuts.low))
    assert np.asarray(found.tolist()).tolist() == [[n < kept for n in range(6)]]
    mass = sum(CHANCES[:kept])
    reached = 0.0
    for place, chance in enumerate(CHANCES[:kept]):
        middle = (reached + chance / 2) / mass
        at, logprob = pick(xp, top, found, array(xp, np.asarray([[middle]], np.float32)))
        assert at.tolist() == [[place]]
        assert logprob.tolist()[0][0] == pytest.approx(math.log(chance / mass), abs=1e-5)
        reached += chance
    last, _ = pick(xp, top, found, array(xp, np.asarray([[1.0]], np.float32)))
    assert last.tolist() == [[kept - 1]], "what was taken out is never drawn"


def test_a_penalty_takes_a_token_farther_down_whatever_its_sign(xp: Any) -> None:
    found = penalize(xp, array(xp, np.asarray([3.0, -3.0, 0.0], np.float32)), 1.5)
    assert found.tolist() == [2.0, -4.5, 0.0]


def expected(
    backend: Any, prefix: tuple[int, ...], temperature: float, filters: Filters
) -> tuple[dict[int, float], dict[int, float]]:
    """By token, log q and log π of what comes next, by plain Python from all that the model says."""
    tokens, told = backend._model.decoder().likeliest(np.asarray([prefix], np.int64), 1 << 30)
    # Up to a constant these are the logits; what a penalty does depends on where 0 is.
    logits = dict(zip(tokens, told, strict=True))
    if filters.repetition_penalty != 1:
        logits = whole_logits(backend, prefix)
    own = normal({token: logit / temperature for token, logit in logits.items()})
    factor = filters.repetition_penalty
    for token in set(prefix):
        logit = logits[token]
        logits[token] = logit / factor if logit > 0 else logit * factor
    left = normal({token: logit / temperature for token, logit in logits.items()})
    ranked = sorted(left.items(), key=lambda pair: -pair[1])
    ranked = ranked[: filters.top_k or None]
    mass = sum(math.exp(logprob) for _, logprob in ranked)
    kept: dict[int, float] = {}
    reached = 0.0
    for token, logprob in ranked:
        if reached < filters.top_p * mass:
            kept[token] = logprob
        reached += math.exp(logprob)
    best = max(kept.values())
    low = best + math.log(filters.min_p) if filters.min_p else -math.inf
    return normal({token: n for token, n in kept.items() if n >= low}), own


def normal(logits: dict[int, float]) -> dict[int, float]:
    best = max(logits.values())
    total = best + math.log(sum(math.exp(logit - best) for logit in logits.values()))
    return {token: logit - total for token, logit in logits.items()}


def whole_logits(backend: Any, prefix: tuple[int, ...]) -> dict[int, float]:
    if backend.name == "torch":
        import torch

        with torch.no_grad():
            found = backend._model._causal(torch.tensor([prefix])).logits[0, -1].float().tolist()
    else:
        import mlx.core as mx

        found = backend._model.causal(mx.array([prefix]))[0, -1].tolist()
    return dict(enumerate(found))


def ask(index: int, filters: Filters, **changes: Any) -> SampleRequest:
    messages = [{"role": "user", "content": "word " * (1 + 3 * index)}]
    request = SampleRequest(
        messages=messages, max_tokens=6 + 2 * index, seed=index, temperature=1.3, filters=filters
    )
    return replace(request, **changes)


def check(backend: Any, answer: Any, request: SampleRequest) -> None:
    """Each token with its own two numbers."""
    prefix = answer.prompt
    for token, logprob, own in zip(answer.tokens, answer.logprobs, answer.own_logprobs, strict=True):
        q, pi = expected(backend, prefix, request.temperature, request.filters)
        assert q[token] == pytest.approx(logprob, abs=2e-3)
        assert pi[token] == pytest.approx(own, abs=2e-3)
        prefix = (*prefix, token)


@pytest.mark.parametrize("filters", SETTINGS)
def test_log_probs_are_those_of_what_was_left(backend: Any, filters: Filters) -> None:
    sampler = backend.sampler()
    sampler.activate(0)
    request = ask(2, filters)
    answer = sampler.sample(request)
    check(backend, answer, request)
    assert any(lift != 0 for lift in answer.lifts)
    turn = TokenizedTurn(prompt=answer.prompt, response=answer.tokens)
    [row] = backend.logprobs([turn], temperature=[request.temperature], adapter=False)
    np.testing.assert_allclose(row, answer.own_logprobs, atol=2e-3)


def test_rows_of_one_batch_have_filters_of_their_own(backend: Any) -> None:
    """Also those without any, which are what they were before there were filters; two of them greedy."""
    sampler = backend.sampler()
    sampler.activate(0)
    asked = [ask(index, one) for index, one in enumerate((*SETTINGS, NONE, NONE))]
    asked += [ask(3, Filters(top_p=0.5), temperature=0.0), ask(1, NONE, temperature=0.0)]
    alone = [sampler.sample(one) for one in asked]
    many = sampler.sample_many(asked)
    for key, one in enumerate(asked):
        sampler.start(key, one, 0)
        if key == 3:
            sampler.step()
    come_and_go: dict[Any, Any] = {}
    while sampler.writes():
        come_and_go.update(sampler.step())
    for key, (one, request) in enumerate(zip(alone, asked, strict=True)):
        for other in (many[key], come_and_go[key]):
            assert other.tokens == one.tokens, request
            np.testing.assert_allclose(other.logprobs, one.logprobs, atol=1e-3)
            np.testing.assert_allclose(other.lifts, one.lifts, atol=1e-3)
        assert bool(one.lifts) == bool(request.filters)
    check(backend, come_and_go[5], asked[5])
    assert alone[-2].tokens[0] == sampler.sample(ask(3, NONE, temperature=0.0)).tokens[0]


def test_only_what_is_likely_is_drawn(backend: Any) -> None:
    sampler = backend.sampler()
    sampler.activate(0)
    for seed in range(10):
        answer = sampler.sample(ask(1, Filters(top_k=1), seed=seed))
        assert answer.tokens == sampler.sample(ask(1, NONE, temperature=0.0)).tokens
        np.testing.assert_allclose(answer.logprobs, 0, atol=1e-6)


@pytest.mark.parametrize("filters", [Filters(top_p=0.7, top_k=30), SETTINGS[-1]])
@pytest.mark.parametrize("told", [True, False])
def test_a_round_begins_at_a_ratio_of_one(backend: Any, filters: Filters, told: bool) -> None:
    """At the policy that wrote them, whatever took part: with the lifts, and where nobody tells them."""
    sampler = backend.sampler()
    sampler.activate(0)
    answers = sampler.sample_many([ask(index % 4, filters, seed=index) for index in range(6)])
    raw = [
        raw_item(
            id=f"t{number}",
            prompt_tokens=list(answer.prompt),
            tokens=list(answer.tokens),
            logprobs=list(answer.logprobs),
            lifts=list(answer.lifts) if told else [],
            temperature=1.3,
            filters=filters.told(),
            version=0,
            reward=(-1) ** number,
        )
        for number, answer in enumerate(answers)
    ]
    rollouts, _ = build_rollouts(Job.parse(raw_job(items=raw, behaviour={})), backend)
    settings = TrainingSettings(objective="filter", kl=0.1)
    batch = pad(rollouts, [one.reward for one in rollouts], 10.0)
    logprobs = backend.logprobs(batch.sequences, temperature=batch.temperature, adapter=True)
    for now, rollout in zip(logprobs, rollouts, strict=True):
        np.testing.assert_allclose(now - rollout.sampling_logprobs, 0, atol=2e-3)
    step = backend.examine(batch, OptimizerSettings(), make_objective(settings).loss)
    assert step.token_acceptance == 1.0
    assert step.trajectory_acceptance == pytest.approx(1.0)
    assert step.kl == pytest.approx(0, abs=1e-4)


@pytest.mark.parametrize("variant", [name for name in VARIANTS if name != "tapered"])
# (which weighs a token by what the base itself gives it: by no ratio)
def test_the_loss_is_that_of_the_filtered_distribution_with_its_lift_held(xp: Any, variant: str) -> None:
    """By hand, over a vocabulary of six: q_θ is π_θ over the kept mass of the policy that drew."""
    old, new = np.asarray(CHANCES), np.asarray([0.3, 0.2, 0.2, 0.2, 0.05, 0.05])
    base = np.asarray([0.2, 0.2, 0.2, 0.2, 0.1, 0.1])
    drawn = [0, 2, 1]
    mass = old[:3].sum()  # top_k 3
    lift = -math.log(mass)
    objective = MisPo(
        variant=variant, token_low=0.7, token_high=1.4, trajectory_low=0.5, trajectory_high=2.0, kl=0.1
    )
    found: list[Any] = []
    for added in (lift, 0.0):
        rows = [np.log(chances[drawn])[None] + added for chances in (new, old, base)]
        policy, sampling, reference = (array(xp, row.astype(np.float32)) for row in rows)
        advantages = array(xp, np.asarray([-1.0], np.float32))
        mask = array(xp, np.ones((1, 3), np.float32))
        ratio = policy - sampling
        np.testing.assert_allclose(np.exp(ratio.tolist())[0], (new / old)[drawn], rtol=1e-5)
        coefficients, _ = objective.coefficients(xp, ratio, reference, advantages, mask)
        _, told = objective(xp, policy, sampling, reference, advantages, mask, 3.0)
        found.append([*coefficients.tolist()[0], *(float(told[name]) for name in sorted(told))])
    np.testing.assert_allclose(*found, rtol=1e-5)
    assert found[0][-3] == pytest.approx(
        sum(base[n] / new[n] - math.log(base[n] / new[n]) - 1 for n in drawn), rel=1e-4
    )
