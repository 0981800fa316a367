# SPDX-License-Identifier: Apache-2.0
"""What goes wrong with a server is a sentence; nothing is done twice, and a round goes on where it was."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from goodbot.base.errors import AdapterError, TrainingError
from goodbot_fakes.tinker import FakeTinker

from tests.support import require

require("torch")
require("peft")

from goodbot_training.backends.adapters import read_adapter  # noqa: E402

from tests.training.tinker.engine import PeftEngine  # noqa: E402
from tests.training.tinker.wire import HOST, backend, job, losses, remote, train  # noqa: E402


@pytest.fixture
def engine(random_model: Path) -> PeftEngine:
    return PeftEngine(random_model)


async def test_results_that_are_not_there_yet_are_waited_for(
    engine: PeftEngine, random_model: Path, tmp_path: Path
) -> None:
    async with FakeTinker(engine) as server:
        server.faults.pending = 3
        slept: list[float] = []
        far = remote(server)
        _, events = await train(far, job(random_model, tmp_path), backend(far, slept))
        assert len(losses(events)) == 6
        assert max(slept) > min(slept), "it looks less and less often"


async def test_one_that_never_comes_to_a_result(
    engine: PeftEngine, random_model: Path, tmp_path: Path
) -> None:
    async with FakeTinker(engine) as server:
        server.faults.never = "optim_step"
        far = remote(server)
        with pytest.raises(TrainingError, match=f"{HOST} has not come to a result of optim_step") as caught:
            await train(far, job(random_model, tmp_path), backend(far, patience=0.0))
        assert caught.value.kind == "died"


async def test_one_that_is_busy_is_asked_again_when_it_says(
    engine: PeftEngine, random_model: Path, tmp_path: Path
) -> None:
    async with FakeTinker(engine) as server:
        server.faults.busy, server.faults.retry_after = 3, "7"
        slept: list[float] = []
        far = remote(server)
        _, events = await train(far, job(random_model, tmp_path), backend(far, slept))
        assert len(losses(events)) == 6
        assert slept.count(7.0) == 3
        server.faults.busy, server.faults.retry_after = 1, "86400"
        with pytest.raises(TrainingError, match="is busy, and asks to come back in 1440 minutes"):
            await train(far, job(random_model, tmp_path / "later"))


async def test_what_reads_is_asked_again_and_what_changes_is_not(
    engine: PeftEngine, random_model: Path, tmp_path: Path
) -> None:
    async with FakeTinker(engine) as server:
        far = remote(server)
        server.faults.fails = {"forward": 2}
        _, events = await train(far, job(random_model, tmp_path / "reads"))
        assert len(losses(events)) == 6
        server.asked.clear()
        server.faults.fails = {"forward_backward": 1}
        with pytest.raises(TrainingError, match="has lost the training: status 500: CUDA error") as caught:
            await train(far, job(random_model, tmp_path / "changes"))
        assert caught.value.kind == "died"
        assert [what for what, _ in server.asked].count("forward_backward") == 1


async def test_a_step_whose_answer_is_lost_is_not_taken_twice(
    engine: PeftEngine, random_model: Path, tmp_path: Path
) -> None:
    async with FakeTinker(engine) as server:
        server.faults.hangs_up = "optim_step"
        with pytest.raises(TrainingError, match="hung up in the middle of an answer") as caught:
            await train(remote(server), job(random_model, tmp_path))
        assert caught.value.kind == "died"
        assert server.steps == 1


async def test_a_node_that_dies_costs_a_step_and_no_more(random_model: Path, tmp_path: Path) -> None:
    async with FakeTinker(PeftEngine(random_model)) as server:
        _, whole = await train(remote(server), job(random_model, tmp_path / "whole"))
    async with FakeTinker(PeftEngine(random_model)) as server:
        server.faults.dies_after = 3
        raw = job(random_model, tmp_path / "killed", checkpoints=str(tmp_path / "checkpoints"))
        with pytest.raises(TrainingError, match="has lost the training: status 404") as caught:
            await train(remote(server), raw)
        assert caught.value.kind == "died", "then goodbot starts another child"
        steps = [path.name for path in (tmp_path / "checkpoints").glob("step-*")]
        assert steps == ["step-000002"]
        _, rest = await train(remote(server), raw)
        assert losses(rest) == pytest.approx(losses(whole)[2:], abs=1e-5)
        assert server.steps == 3 + 4
    pairs = [read_adapter(tmp_path / name).pairs for name in ("whole", "killed")]
    for path, (a, b) in pairs[0].items():
        assert pairs[1][path][0] == pytest.approx(a, abs=1e-5)
        assert pairs[1][path][1] == pytest.approx(b, abs=1e-5)


async def test_numbers_that_are_none(engine: PeftEngine, random_model: Path, tmp_path: Path) -> None:
    async with FakeTinker(engine) as server:
        server.faults.nan = True
        with pytest.raises(TrainingError, match=f"The loss on {HOST} is not a finite number") as caught:
            await train(remote(server), job(random_model, tmp_path))
        assert caught.value.kind == "nan"
        assert server.steps == 0, "no such step is taken"


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ("rank", f"{HOST} gave an adapter of rank 1, not 4"),
        ("lies", "has another rank than it says"),
        ("shape", "self_attn|mlp"),
        ("head", "lm_head"),
        ("nan", "numbers that are not finite"),
        ("other", f"{HOST} gave another adapter than the one that it has trained"),
        ("cut", "The server's archive cannot be read"),
        ("missing", "it lacks adapter_model.safetensors"),
    ],
)
async def test_an_adapter_that_is_not_what_was_trained(
    wrong: str, said: str, engine: PeftEngine, random_model: Path, tmp_path: Path
) -> None:
    async with FakeTinker(engine) as server:
        server.faults.adapter = wrong
        with pytest.raises(AdapterError, match=said):
            await train(remote(server), job(random_model, tmp_path))
        assert os.listdir(tmp_path) == [], "nothing of it is kept"


@pytest.mark.parametrize(
    ("changes", "faults", "said"),
    [
        ({"key": "wrong"}, {}, f"{HOST} refuses the key: put yours into GOODBOT_TRAINING_KEY"),
        ({"model": "another"}, {}, "refuses with status 400: Unknown base model"),
        ({}, {"slots": 0}, "refuses with status 400: Maximum number of LoRA adapters reached"),
        ({}, {"elsewhere": "https://files.example/a"}, f"{HOST} has put the adapter on files.example"),
    ],
)
async def test_what_it_refuses_is_told_in_its_words(
    changes: dict[str, Any],
    faults: dict[str, Any],
    said: str,
    engine: PeftEngine,
    random_model: Path,
    tmp_path: Path,
) -> None:
    async with FakeTinker(engine, key="tml-for-tests-only") as server:
        for name, value in faults.items():
            setattr(server.faults, name, value)
        with pytest.raises(TrainingError, match=said) as caught:
            await train(remote(server, **changes), job(random_model, tmp_path))
        assert caught.value.kind == "error", "another try would not help"


async def test_another_base_than_ours_is_noticed_before_a_step(random_model: Path, tmp_path: Path) -> None:
    class Other(PeftEngine):
        def logprobs(self, model: Any, data: list[dict[str, Any]]) -> list[list[float]]:
            return [[one - 0.5 for one in row] for row in super().logprobs(model, data)]

    async with FakeTinker(Other(random_model)) as server:
        with pytest.raises(TrainingError, match="computes another model than the one here"):
            await train(remote(server), job(random_model, tmp_path))
        assert server.steps == 0
