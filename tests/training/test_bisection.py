# SPDX-License-Identifier: Apache-2.0
"""A turn whose numbers break a step is found by halving batches, and the round goes without it."""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from goodbot.api.backend import LoraSettings, StepStats, TrainingBackend
from goodbot.base.errors import TrainingError
from goodbot_training.job.types import Job
from goodbot_training.round.nan_search import EXPLODES, NOT_FINITE, absurd, guilty_rows
from goodbot_training.round.run import run_round

from tests.training.test_slices import adapter, factory, run, steps_of

__all__ = ["factory"]

RARE = 300
"""A token id that the guilty turn alone has."""


def stats(norm: float, *, loss: float = 1.0, skipped: bool = False) -> StepStats:
    return StepStats(
        loss=loss, kl=0.0, token_acceptance=1.0, trajectory_acceptance=1.0, grad_norm=norm, skipped=skipped
    )


# -- what is absurd


def test_too_few_steps_tell_only_the_worst() -> None:
    assert absurd([], 1.0) == absurd([stats(1.0)] * 3, 1.0) == 1e6


def test_ten_thousand_times_the_usual_norm_is_absurd() -> None:
    norms = [stats(n) for n in (3.0, 1.0, 2.0, 2.0, 1e9, 1e9, 1e9)]
    assert absurd(norms, 1.0) == 2e4, "the usual norm is not that of the accidents"
    assert absurd([*norms, stats(0.0, skipped=True)], 1.0) == 2e4, "skipped steps are none"


def test_where_hardly_anything_moves_a_usual_step_is_no_explosion() -> None:
    assert absurd([stats(1e-9)] * 8, 1.0) == 100.0


# -- halving


@pytest.mark.parametrize("guilty", [{0}, {7}, {3}, {2, 3}, {0, 5, 7}, set(range(8))])
def test_all_guilty_rows_are_found(guilty: set[int]) -> None:
    asked: list[Sequence[int]] = []

    def examine(rows: Sequence[int]) -> StepStats:
        asked.append(rows)
        return stats(math.nan if guilty & set(rows) else 1.0)

    assert guilty_rows(range(8), examine, math.inf) == dict.fromkeys(sorted(guilty), NOT_FINITE)
    assert len(asked) <= 2 * len(guilty) * math.log2(8) + 1


def test_nobody_is_to_blame_for_what_only_all_do_together() -> None:
    def examine(rows: Sequence[int]) -> StepStats:
        return stats(1e9 if len(rows) == 8 else 1.0)

    assert guilty_rows(range(8), examine, 1e4) == {}


def test_an_explosion_is_told_from_a_number_that_is_none() -> None:
    norms = {0: 1.0, 1: 1e6, 2: math.inf}

    def examine(rows: Sequence[int]) -> StepStats:
        return stats(max(norms[row] for row in rows))

    assert guilty_rows(range(3), examine, 1e4) == {1: EXPLODES, 2: NOT_FINITE}


# -- a real one: an adapter that goes wild on one token


def loud_model(model: Path, directory: Path, loudness: float) -> Path:
    """The model with a final norm so many times as large: so are its logits."""
    from safetensors.numpy import load_file, save_file

    shutil.copytree(model, directory)
    tensors = load_file(directory / "model.safetensors")
    tensors["model.norm.weight"] *= loudness
    save_file(tensors, directory / "model.safetensors", metadata={"format": "pt"})
    return directory


def wild_adapter(model: Path, backend: TrainingBackend, directory: Path) -> Path:
    """An adapter without any effect but on the rare token, where it turns attention upside down."""
    from goodbot_training.backends.adapters import AdapterWeights, read_adapter, write_adapter
    from safetensors.numpy import load_file

    backend.load(model, lora=LoraSettings(rank=4, alpha=4.0))
    backend.save_adapter(directory)
    weights = read_adapter(directory)
    pairs = {path: (a, np.zeros_like(b)) for path, (a, b) in weights.pairs.items()}
    embedding = load_file(model / "model.safetensors")["model.embed_tokens.weight"]
    seen = embedding / np.sqrt((embedding**2).mean(axis=1, keepdims=True) + 1e-6)
    usual = seen[:20].astype(np.float64)
    _, _, directions = np.linalg.svd(usual)
    free = directions[len(usual) :]  # what no usual token has a part in
    reader = free.T @ (free @ seen[RARE])
    a = np.zeros((4, 32), np.float32)
    a[0] = reader / (reader @ seen[RARE])
    path = next(name for name in pairs if name.endswith("layers.0.self_attn.v_proj"))
    rows = pairs[path][1].shape[0]
    b = np.zeros((rows, 4), np.float32)
    b[:, 0] = np.random.default_rng(1).standard_normal(rows) * 100
    pairs[path] = (a, b)
    write_adapter(directory, AdapterWeights(rank=4, alpha=4.0, scale=1.0, pairs=pairs))
    return directory


def planted(
    model: Path, backend: TrainingBackend, folder: Path, *, loudness: float, guilty: int = 5
) -> dict[str, Any]:
    """A round of eight turns from a wild parent; one of them has its token."""
    loud = loud_model(model, folder / "model", loudness)
    random = np.random.default_rng(0)
    items: list[dict[str, Any]] = []
    for index in range(8):
        tokens = [*random.integers(3, 20, 6).tolist(), 2]
        if index == guilty:
            tokens[0] = RARE
        items.append(
            {
                "id": f"turn-{index}",
                "messages": [{"role": "user", "content": "Hi"}],
                "response": "",
                "prompt_tokens": [3, 4, 5],
                "tokens": tokens,
                "logprobs": [-1.0] * len(tokens),
                "temperature": 1.0,
                "version": None,
                "reward": 1.0 if index % 2 else -1.0,
                "split": "train",
            }
        )
    output = folder / "output"
    output.mkdir(parents=True)
    return {
        "protocol": 1,
        "run": 1,
        "model": str(loud),
        "output": str(output),
        "parent": str(wild_adapter(loud, backend, folder / "parent")),
        "seed": 2,
        "checkpoints": str(folder / "checkpoints"),
        "items": items,
        "settings": {
            "objective": "reinforce",
            "steps": 8,
            "batch_size": 4,
            "slice_steps": 2,
            "learning_rate": 1e-6,
            "gate_anchors": 0,
            "gate_max_tokens": 4,
        },
    }


@pytest.mark.parametrize(("loudness", "why"), [(60.0, NOT_FINITE), (12.0, EXPLODES)])
def test_the_round_goes_without_the_guilty_turn(
    factory: Callable[[], TrainingBackend], random_model: Path, tmp_path: Path, loudness: float, why: str
) -> None:
    job = planted(random_model, factory(), tmp_path / "one", loudness=loudness)
    events = run(job, factory)
    [found] = [event for event in events if event["event"] == "quarantine"]
    assert found["turns"] == [{"id": "turn-5", "reason": why}]
    assert events[-1]["event"] == "done"
    assert events[-1]["metrics"]["left_out"] == 1
    assert events[-1]["metrics"]["rollouts"] == 7
    # The same round, had the turn never been there:
    other = {**job, "checkpoints": str(tmp_path / "two")}
    other["items"] = [item for item in job["items"] if item["id"] != "turn-5"]
    first = adapter(job)
    curve = steps_of(run(other, factory))
    assert curve == steps_of(events)[-len(curve) :]
    assert adapter(other) == first


@pytest.mark.parametrize("guilty", ["turn-5", "turn-5+better"])
def test_an_answer_and_the_better_one_go_together(
    factory: Callable[[], TrainingBackend], random_model: Path, tmp_path: Path, guilty: str
) -> None:
    job = planted(random_model, factory(), tmp_path / "one", loudness=60.0)
    answer = job["items"][5]
    usual = [3, *answer["tokens"][1:]]
    better = {**answer, "id": "turn-5+better", "reward": 1.0, "demonstration": True}
    (answer if guilty == "turn-5+better" else better)["tokens"] = usual
    events = run({**job, "items": [*job["items"], better]}, factory)
    [found] = [event for event in events if event["event"] == "quarantine"]
    assert found["turns"] == [{"id": "turn-5", "reason": NOT_FINITE}]
    assert events[-1]["metrics"]["demonstrations"] == 0
    assert events[-1]["metrics"]["rollouts"] == 7


def test_a_round_that_is_killed_after_it_found_the_turn_knows_it_still(
    factory: Callable[[], TrainingBackend], random_model: Path, tmp_path: Path
) -> None:
    job = planted(random_model, factory(), tmp_path / "one", loudness=60.0)
    whole = run({**job, "checkpoints": None}, factory)
    first = adapter(job)
    run(job, factory, kill_at=5)
    events = run(job, factory)
    assert [event["turns"][0]["id"] for event in events if event["event"] == "quarantine"] == ["turn-5"]
    assert [step for step, *_ in steps_of(events)] == [5, 6, 7, 8]
    assert steps_of(whole)[-4:] == steps_of(events)
    assert adapter(job) == first


def test_without_a_guilty_turn_there_is_no_candidate(
    factory: Callable[[], TrainingBackend], random_model: Path, tmp_path: Path
) -> None:
    """Every turn breaks it: the model or the settings are to blame."""
    job = planted(random_model, factory(), tmp_path / "one", loudness=60.0)
    for item in job["items"]:
        item["tokens"][0] = RARE
    events: list[dict[str, Any]] = []
    with pytest.raises(TrainingError, match="not a finite number") as caught:
        run_round(Job.parse(json.loads(json.dumps(job))), factory(), events.append)
    assert caught.value.kind == "nan"
    assert not list(Path(job["output"]).iterdir())
