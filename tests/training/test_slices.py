# SPDX-License-Identifier: Apache-2.0
"""A round that is killed goes on from its last checkpoint, and comes to the same bits."""

from __future__ import annotations

import hashlib
import json
import random
import signal
import subprocess
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from goodbot.api.backend import TrainingBackend
from goodbot.base.errors import TrainingError
from goodbot_training.job.types import Job
from goodbot_training.round.checkpoints import Checkpoints, fingerprint
from goodbot_training.round.run import run_round

from tests.support import require

FACTORIES = {
    "torch": "goodbot_training.backends.torch.trainer:TorchBackend",
    "mlx": "goodbot_training.backends.mlx.trainer:MlxBackend",
}
SECRET = "nobody may read this"
WORKER = """
import sys
from goodbot_training.process import worker
worker.main(["train", sys.argv[1]])
"""
STEPS = 6
SLICE = 2


class KilledError(Exception):
    """Stands for a kill between two steps."""


@pytest.fixture(params=FACTORIES)
def factory(request: pytest.FixtureRequest) -> Callable[[], TrainingBackend]:
    return backend(request.param)


def backend(name: str) -> Callable[[], TrainingBackend]:
    """The class of a backend whose framework is here."""
    require("torch" if name == "torch" else "mlx_lm")
    module, _, attribute = FACTORIES[name].partition(":")
    return getattr(import_module(module), attribute)


def raw_job(model: Path, folder: Path, **changes: Any) -> dict[str, Any]:
    """Six ratings to train on and two held out; a checkpoint every second step."""
    output, checkpoints = folder / "output", folder / "checkpoints"
    output.mkdir(parents=True, exist_ok=True)
    items = [
        {
            "id": f"turn-{index}",
            "messages": [{"role": "user", "content": f"{SECRET} {index}"}],
            "response": "Yes." if index % 2 else "Well, that is quite a long story.",
            "temperature": 0.8,
            "version": 0,
            "reward": 1.0 if index % 2 else -1.0,
            "split": "train" if index < 6 else "held_out",
        }
        for index in range(8)
    ]
    settings = {
        "steps": STEPS,
        "batch_size": 2,
        "rank": 4,
        "warmup": 3,
        "slice_steps": SLICE,
        "gate_anchors": 0,
        "gate_max_tokens": 4,
    }
    return {
        "protocol": 1,
        "run": 7,
        "model": str(model),
        "parent": None,
        "output": str(output),
        "checkpoints": str(checkpoints),
        "settings": settings,
        "items": items,
        "seed": 4,
        **changes,
    }


def steps_of(events: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    """What every step was told to be, without its time."""
    return [
        tuple(event.get(name) for name in ("step", "loss", "kl", "token_acceptance"))
        for event in events
        if event.get("phase") == "train"
    ]


def adapter(job: dict[str, Any]) -> str:
    content = (Path(job["output"]) / "adapter_model.safetensors").read_bytes()
    return hashlib.sha256(content).hexdigest()


def run(
    job: dict[str, Any], factory: Callable[[], TrainingBackend], *, kill_at: int = 0
) -> list[dict[str, Any]]:
    """The events of a round, killed right after a step if one is given."""
    events: list[dict[str, Any]] = []

    def emit(event: dict[str, Any]) -> None:
        events.append(event)
        if event.get("phase") == "train" and event["step"] == kill_at:
            raise KilledError

    try:
        run_round(Job.parse(job), factory(), emit)
    except KilledError:
        assert kill_at
    return events


def test_killed_after_any_step_the_curve_and_the_adapter_are_the_same(
    factory: Callable[[], TrainingBackend], random_model: Path, tmp_path: Path
) -> None:
    whole = raw_job(random_model, tmp_path / "whole", checkpoints=None)
    curve = steps_of(run(whole, factory))
    assert [step for step, *_ in curve] == list(range(1, STEPS + 1))
    for kill_at in range(1, STEPS + 1):
        job = raw_job(random_model, tmp_path / str(kill_at))
        before = steps_of(run(job, factory, kill_at=kill_at))
        after = steps_of(run(job, factory))
        lost = kill_at - (STEPS - len(after))
        assert 0 < lost <= SLICE
        assert before[: kill_at - lost] + after == curve
        assert adapter(job) == adapter(whole)


def test_a_round_that_was_killed_in_its_gate_does_not_train_again(
    factory: Callable[[], TrainingBackend], random_model: Path, tmp_path: Path
) -> None:
    job = raw_job(random_model, tmp_path / "one")
    run(job, factory)
    first = adapter(job)
    again = run(job, factory)
    assert steps_of(again) == []
    assert again[-1]["event"] == "done"
    assert again[-1]["metrics"]["steps"] == STEPS, "it speaks of the whole round"
    assert adapter(job) == first


def test_a_smaller_memory_plan_goes_on_from_the_same_checkpoint(
    factory: Callable[[], TrainingBackend], random_model: Path, tmp_path: Path
) -> None:
    job = raw_job(random_model, tmp_path)
    run(job, factory, kill_at=5)
    events = run({**job, "attempt": 2}, factory)
    assert [step for step, *_ in steps_of(events)] == [5, 6]
    plan = next(event for event in events if event["event"] == "plan")
    assert plan["recompute"]


def test_what_is_kept_holds_no_text_and_is_for_its_owner_alone(
    factory: Callable[[], TrainingBackend], random_model: Path, tmp_path: Path
) -> None:
    job = raw_job(random_model, tmp_path)
    run(job, factory, kill_at=5)
    folder = Path(job["checkpoints"])
    assert folder.stat().st_mode & 0o777 == 0o700
    kept = sorted(path.relative_to(folder) for path in folder.rglob("*") if path.is_file())
    assert [str(path) for path in kept] == [
        "scores.json",
        "step-000004/round.json",
        "step-000004/trainer.safetensors",
    ]
    for path in kept:
        content = (folder / path).read_bytes()
        assert SECRET.encode() not in content
        assert b"long story" not in content


# -- which job a checkpoint belongs to


def other_jobs(job: dict[str, Any], tmp_path: Path) -> dict[str, dict[str, Any]]:
    items = job["items"]
    return {
        "seed": {**job, "seed": 5},
        "settings": {**job, "settings": {**job["settings"], "kl": 0.2}},
        "a reward": {**job, "items": [{**items[0], "reward": 0.5}, *items[1:]]},
        "a weight": {**job, "items": [{**items[0], "weight": 0.5}, *items[1:]]},
        "one item less": {**job, "items": items[1:]},
        "the order": {**job, "items": items[::-1]},
        "the run": {**job, "run": 8},
        "the baseline": {**job, "baseline": {"mean": 0.5, "weight": 1.0}},
        "the parent": {**job, "parent": str(tmp_path / "elsewhere")},
        "the model": {**job, "model": str(tmp_path)},
    }


@pytest.mark.parametrize("name", other_jobs({"items": [{}], "settings": {}}, Path()))
def test_no_other_job_goes_on_from_it(name: str, random_model: Path, tmp_path: Path) -> None:
    job = raw_job(random_model, tmp_path)
    other = other_jobs(job, tmp_path)[name]
    assert fingerprint(Job.parse(job)) != fingerprint(Job.parse(other))


def test_another_job_begins_anew(
    factory: Callable[[], TrainingBackend], random_model: Path, tmp_path: Path
) -> None:
    job = raw_job(random_model, tmp_path)
    run(job, factory, kill_at=5)
    events = run({**job, "seed": 5}, factory)
    assert [step for step, *_ in steps_of(events)] == list(range(1, STEPS + 1))


def test_the_memory_plan_and_the_slices_are_no_part_of_the_job(random_model: Path, tmp_path: Path) -> None:
    job = raw_job(random_model, tmp_path)
    smaller = {**job["settings"], "tokens_per_forward": 64, "slice_steps": 1, "slice_seconds": 1.0}
    other = {**job, "settings": smaller, "attempt": 1}
    assert fingerprint(Job.parse(job)) == fingerprint(Job.parse(other))


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"job": 1}', b"\xff"])
def test_what_is_torn_is_not_there(content: bytes, random_model: Path, tmp_path: Path) -> None:
    parsed = Job.parse(raw_job(random_model, tmp_path))
    kept = Checkpoints(parsed.checkpoints, parsed)
    assert parsed.checkpoints
    torn = parsed.checkpoints / "step-000004"
    torn.mkdir()
    (torn / "round.json").write_bytes(content)
    (parsed.checkpoints / "scores.json").write_bytes(content)
    assert kept.newest().steps == ()
    assert kept.scores() is None


# -- a real kill


def test_killed_at_random_moments_it_comes_to_the_same_bits(random_model: Path, tmp_path: Path) -> None:
    """Processes of their own, SIGKILL, wherever they are at that moment."""
    chance = random.Random(11)
    settings = raw_job(random_model, tmp_path / "x")["settings"] | {"steps": 24, "slice_steps": 3}
    factory = backend("torch")
    whole = raw_job(random_model, tmp_path / "whole", settings=settings)
    curve = steps_of(run(whole, factory))
    job = raw_job(random_model, tmp_path / "killed", settings=settings)
    furthest = safe = 0
    for _ in range(2):
        events = child(job, kill_after=chance.randint(2, 9))
        told = steps_of(events)
        assert told == curve[safe : safe + len(told)], "it goes on where it was safe"
        furthest = max(furthest, safe + len(told))
        safe = max(event["step"] for event in events if event["event"] == "checkpoint")
        assert furthest - safe <= 3
    assert 0 < safe < 24, "it was killed in the middle"
    assert steps_of(run(job, factory)) == curve[safe:]
    assert adapter(job) == adapter(whole)


def child(job: dict[str, Any], *, kill_after: int = 0) -> list[dict[str, Any]]:
    """The events of a worker process, which is killed somewhere after so many of its steps."""
    events: list[dict[str, Any]] = []
    with subprocess.Popen(
        [sys.executable, "-c", WORKER, FACTORIES["torch"]],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin
        assert process.stdout
        process.stdin.write(json.dumps(job) + "\n")
        process.stdin.flush()
        steps = 0
        for line in process.stdout:
            events.append(json.loads(line))
            steps += events[-1].get("phase") == "train"
            if kill_after and steps == kill_after:
                process.send_signal(signal.SIGKILL)
                kill_after = 0
    return events


def test_a_checkpoint_needs_a_training(factory: Callable[[], TrainingBackend], tmp_path: Path) -> None:
    with pytest.raises(TrainingError, match="no training under way"):
        factory().save_checkpoint(tmp_path)
