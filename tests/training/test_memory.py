# SPDX-License-Identifier: Apache-2.0
"""A round is cut to the memory that is there, or refused with a sentence that says what to do."""

from __future__ import annotations

import json
import resource
from pathlib import Path
from typing import Any

import pytest
from goodbot import BackendSpec
from goodbot.api import estimate, model_shape
from goodbot.base.errors import TrainingError
from goodbot.learning import worker_process
from goodbot_training.job.types import Job
from goodbot_training.memory import fit
from goodbot_training.memory.fit import Memory, MemoryPlan

from tests.training.factories import raw_item, raw_job

CONFIG = {
    "model_type": "llama",
    "hidden_size": 512,
    "num_hidden_layers": 8,
    "num_attention_heads": 8,
    "intermediate_size": 1536,
    "vocab_size": 32000,
    "tie_word_embeddings": True,
}
LENGTHS = [100, 300, 700]


def place(free: int, *, fixed: int = 10**9) -> Memory:
    return Memory(free=free, fixed=fixed, width=4, model=model_shape.read(CONFIG))


def job(**changes: Any) -> Job:
    return Job.parse(raw_job(**changes))


def plan(free: int, **changes: Any) -> MemoryPlan:
    return place(free).plan(LENGTHS, job(**changes))


def test_with_enough_memory_a_whole_batch_goes_through_at_once() -> None:
    found = plan(10**12)
    assert (found.tokens_per_forward, found.recompute) == (8 * 700, False)
    assert found.needed < found.free


def test_what_is_needed_is_weights_adapter_activations_and_one_chunk_of_logits() -> None:
    kept = 8 * (9 * 512 + 3 * 512 + 6 * 512 + 4 * 1536) * 4  # a token's, in all layers
    here = place(10**12)
    chunk = 12 * 32000 * (estimate.CHUNK // 32000)
    assert here.needed(5000, recompute=False) == 10**9 + 5000 * kept + chunk
    assert here.needed(100, recompute=False) == 10**9 + 100 * kept + 100 * 12 * 32000
    assert here.needed(5000, recompute=True) == 10**9 + 5000 * (8 * 512 * 4 + kept // 8) + chunk


def test_no_turn_is_longer_than_the_model_can_see() -> None:
    short = Memory(
        free=1, fixed=0, width=4, model=model_shape.read({**CONFIG, "max_position_embeddings": 512})
    )
    assert short.within(job()).settings.max_sequence_tokens == 512
    assert short.within(job(settings={"max_sequence_tokens": 64})).settings.max_sequence_tokens == 64
    unknown = Memory(free=1, fixed=0, width=4, model=None)
    assert unknown.within(job()) == job()


def test_with_less_memory_less_goes_through_down_to_the_longest_turn() -> None:
    need = place(0).needed
    found = [
        plan(int(need(tokens, recompute=False) / 0.9) + 1).tokens_per_forward
        for tokens in (5600, 2800, 1400, 700)
    ]
    assert found == [5600, 2800, 1400, 700]


def test_when_the_longest_turn_does_not_fit_activations_are_computed_again() -> None:
    need = place(0).needed
    found = plan(int(need(700, recompute=False) / 0.9) - 1)
    assert found.recompute
    assert found.tokens_per_forward > 700, "so that more fits again"


def test_when_not_even_that_fits_it_says_how_much_is_missing_and_what_to_do() -> None:
    with pytest.raises(TrainingError) as caught:
        plan(1_100_000_000)
    assert caught.value.kind == "memory"
    words = str(caught.value)
    assert "needs about 1.4 GB" in words
    assert "1.1 GB is free" in words
    assert "goodbot model" in words


def test_each_further_attempt_is_a_smaller_plan_and_the_last_the_smallest() -> None:
    plans = [plan(10**12, attempt=attempt) for attempt in range(3)]
    assert [(p.tokens_per_forward, p.recompute) for p in plans] == [(5600, False), (2800, False), (700, True)]


def test_without_a_shape_the_attempts_still_shrink(tmp_path: Path) -> None:
    unknown = Memory.of(job(model=str(tmp_path)), "torch")
    assert unknown.model is None
    plans = [unknown.plan(LENGTHS, job(attempt=attempt)) for attempt in range(3)]
    assert [p.tokens_per_forward for p in plans] == [5600, 2800, 700]


def test_a_model_that_does_not_fit_is_refused_before_it_is_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "config.json").write_text(json.dumps(CONFIG))
    monkeypatch.setattr(fit, "_left_of_limit", lambda: 500_000_000)
    with pytest.raises(TrainingError, match="Close other programs") as caught:
        Memory.of(job(model=str(tmp_path)), "torch")
    assert caught.value.kind == "memory"


def test_the_limit_of_the_process_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    soft = 50 << 40
    monkeypatch.setattr(resource, "getrlimit", lambda which: (soft, soft))
    assert 0 < fit._left_of_limit() < soft


async def test_a_real_child_that_runs_out_of_memory_gets_through_with_the_smallest_plan(
    tmp_path: Path,
) -> None:
    """800 tokens at once are 800 MB, of which there are 256; 400 are too many, too; 100 fit."""
    spec = BackendSpec(
        name="greedy",
        factory="tests.training.greedy:Greedy",
        requires=(),
        extra="",
        settings=object,
        priority=0,
        worker="tests.training.greedy",
    )
    output = tmp_path / "output"
    output.mkdir()
    asked = raw_job(
        model=str(tmp_path),
        output=str(output),
        settings={"gate_anchors": 0},
        behaviour={},
        items=[raw_item(n, reward=1.0 if n % 2 else -1.0) for n in range(8)],
    )
    plans: list[int] = []

    async def on_event(event: Any) -> None:
        if event["event"] == "plan":
            plans.append(event["tokens_per_forward"])

    for attempt in range(2):
        with pytest.raises(TrainingError) as caught:
            await worker_process.train(spec, {**asked, "attempt": attempt}, on_event)
        assert caught.value.kind == "oom"
    done = await worker_process.train(spec, {**asked, "attempt": 2}, on_event)
    assert done["event"] == "done"
    assert plans == [800, 400, 100]
