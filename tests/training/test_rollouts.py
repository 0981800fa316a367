# SPDX-License-Identifier: Apache-2.0
"""Items → rollouts: captured log-probs are kept, others are scored under who wrote them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from goodbot.api.sampler import TokenizedTurn
from goodbot.base.errors import TrainingError
from goodbot_training.backends.scoring import score, split_by_budget
from goodbot_training.job.types import Job
from goodbot_training.round.rollouts import build_rollouts
from hypothesis import given
from hypothesis import strategies as st

from tests.training.factories import raw_item, raw_job


class FakeBackend:
    """Log-probs name their author: -1 for the base, -10 - version for an adapter."""

    def __init__(self) -> None:
        self.adapter: Path | None = None
        self.calls: list[tuple[str, int]] = []

    def load_adapter(self, directory: Path | None) -> None:
        self.adapter = directory

    def tokenize(self, messages: Any, response: str) -> TokenizedTurn:
        return TokenizedTurn(prompt=(1, 2), response=(*response.encode(), 0))

    def logprobs(
        self, batch: Sequence[TokenizedTurn], *, temperature: Sequence[float], adapter: bool
    ) -> list[Any]:
        assert all(one > 0 for one in temperature)
        who = -10.0 - int(self.adapter.name[1:]) if adapter and self.adapter else -1.0
        self.calls.append((f"{who:g}", len(batch)))
        return [np.full(len(turn.response), who, np.float32) for turn in batch]


def build(*items: dict[str, Any], **changes: Any) -> tuple[list[Any], int, FakeBackend]:
    job = Job.parse(raw_job(items=list(items), behaviour={"3": "v3", "4": "v4"}, **changes))
    backend = FakeBackend()
    backend.adapter = job.parent
    rollouts, too_long = build_rollouts(job, backend)  # pyright: ignore[reportArgumentType]
    return rollouts, too_long, backend


def test_who_wrote_the_answer() -> None:
    captured = {"prompt_tokens": [7], "tokens": [8, 9], "logprobs": [-0.5, -0.25], "version": 9}
    rollouts, _, backend = build(
        raw_item(0, version=0),
        raw_item(1, version=3),
        raw_item(2, version=4),
        raw_item(3, version=None),
        raw_item(4, version=99),
        raw_item(5, **captured),
        parent="v4",
    )
    assert [rollout.id for rollout in rollouts] == [f"turn-{n}" for n in range(6)]
    assert [float(rollout.sampling_logprobs[0]) for rollout in rollouts] == [
        *(-1.0, -13.0, -14.0, -1.0, -1.0, -0.5)
    ]
    assert {float(rollout.reference_logprobs[0]) for rollout in rollouts} == {-1.0}
    assert [rollout.off_policy for rollout in rollouts] == [False] * 3 + [True] * 2 + [False]
    assert rollouts[5].turn == TokenizedTurn(prompt=(7,), response=(8, 9))
    assert backend.adapter == Path("v4"), "the parent is back in place"
    assert backend.calls == [("-1", 6), ("-13", 1), ("-14", 1)], "each log-prob once"


def test_a_few_answers_of_odd_temperatures_rule_no_round() -> None:
    """A program may say any of its answers: the gate samples as most were, and cold ones weigh less."""
    usual = [raw_item(n, temperature=0.8) for n in range(8)]
    odd = [raw_item(8, temperature=100.0), raw_item(9, temperature=0.02), raw_item(10, temperature=0.4)]
    rollouts, _, _ = build(*usual, *odd)
    weights = [one.weight for one in rollouts]
    assert weights[:9] == [1.0] * 9
    assert weights[9:] == pytest.approx([0.05, 1.0])
    assert Job.parse(raw_job(items=[*usual, *odd])).usual == 0.8
    assert Job.parse(raw_job(items=[*usual, raw_item(8, temperature=100.0)])).usual == 0.8


def test_a_greedy_answer_is_scored_at_temperature_one() -> None:
    rollouts, _, _ = build(raw_item(temperature=0))
    assert rollouts[0].temperature == 1.0


def test_turns_that_are_too_long_are_left_out_and_counted() -> None:
    settings = {"max_sequence_tokens": 20}
    rollouts, too_long, _ = build(raw_item(0), raw_item(1, response="x" * 50), raw_item(2), settings=settings)
    assert [rollout.id for rollout in rollouts] == ["turn-0", "turn-2"]
    assert too_long == 1
    with pytest.raises(TrainingError, match="no rated turn"):
        build(raw_item(0, response="x" * 50), settings=settings)


@given(st.lists(st.integers(1, 50), max_size=40), st.integers(1, 200))
def test_groups_hold_everything_once_and_fit(lengths: list[int], budget: int) -> None:
    groups = split_by_budget(lengths, budget)
    assert sorted(index for group in groups for index in group) == list(range(len(lengths)))
    for group in groups:
        assert len(group) == 1 or len(group) * max(lengths[i] for i in group) <= budget


def test_like_lengths_go_together_so_that_little_is_padding() -> None:
    random = np.random.default_rng(0)
    lengths = [int(n) for n in random.lognormal(5.3, 0.45, 32)]
    groups = split_by_budget(lengths, 8192)
    padded = sum(len(group) * max(lengths[i] for i in group) for group in groups)
    assert padded < 1.05 * sum(lengths)
    assert len(groups) < 32, "and no pass for each"
    assert len(split_by_budget(lengths, 8192, overhead=8192)) == 2, "where passes cost, few are made"


def test_a_backend_whose_passes_are_dear_scores_in_few() -> None:
    class Slow(FakeBackend):
        overhead = 8192

    turns = [TokenizedTurn(prompt=(1,), response=(2,) * n) for n in (400, 300, 200, 100, 50, 20)]
    for backend, passes in ((FakeBackend(), 6), (Slow(), 1)):
        score(backend, turns, [1.0] * 6, adapter=False, budget=8192)  # pyright: ignore[reportArgumentType]
        assert len(backend.calls) == passes
