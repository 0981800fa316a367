# SPDX-License-Identifier: Apache-2.0
"""What a round would cost: the arithmetic by hand, and the real worker's estimate against its round."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from goodbot.api import estimate, model_shape
from goodbot.api.noted import FRAME
from goodbot.base.errors import TrainingError
from goodbot.base.machine.device import Device
from goodbot_training import planning
from goodbot_training.job.types import Job, TrainingSettings
from goodbot_training.planning import formula
from goodbot_training.planning.cost import Cost, LinearCost
from goodbot_training.planning.gate import portions
from goodbot_training.round.batches import planned_steps
from goodbot_training.round.hindsight import passes

from tests.support import require
from tests.training.factories import raw_item, raw_job
from tests.training.test_presets import DENSE
from tests.training.test_worker import FACTORIES, SECRET, make_job

LLAMA = {**DENSE, "model_type": "llama"}


def test_a_line_through_what_was_measured() -> None:
    def points(*found: tuple[float, float]) -> LinearCost:
        return LinearCost.through([(n, Cost(cpu=cpu, wall=2 * cpu)) for n, cpu in found])

    line = points((1, 3.0), (3, 7.0))
    assert (line.at(10).cpu, line.at(10).wall) == (pytest.approx(21.0), pytest.approx(42.0))
    assert points((2, 4.0), (2, 6.0)).at(4).cpu == pytest.approx(10.0), "of one size: through 0"
    assert points((1, 1.0), (3, 9.0)).at(2).cpu == pytest.approx(5.0), "never below 0 at the start"
    assert points((1, 4.0), (3, 2.0)).at(9).cpu == pytest.approx(3.0), "more never costs less"
    assert points().at(3) == Cost()


def test_the_gate_asks_for_a_portion_of_each_or_for_half_or_for_all() -> None:
    assert portions(TrainingSettings(gate_anchors=256)) == (2.0, 5.0, 10.0)
    assert portions(TrainingSettings(gate_anchors=256), rare=True) == (2.0, 6.0, 10.0)
    assert portions(TrainingSettings(gate_anchors=32)) == (1.0, 2.0, 2.0)
    assert portions(TrainingSettings(gate_anchors=64)) == (2.0, 4.0, 4.0)


def test_the_operations_by_hand() -> None:
    shape = model_shape.read(LLAMA)
    body = 2 * (2 * 64 * 64 + 2 * 32 * 64 + 3 * 128 * 64)
    assert shape.active_body == body
    lora = shape.lora(8)
    flops = formula.training_flops(100, 40, shape, lora)
    assert flops == 100 * (4 * body + 6 * lora) + 40 * 4 * 64 * 512
    again = formula.training_flops(100, 40, shape, lora, recompute=True)
    assert again - flops == 100 * 2 * body


def test_a_step_is_timed_by_its_operations(monkeypatch: pytest.MonkeyPatch) -> None:
    slow = Device(backend="torch", device="cpu", memory=1 << 34, flops=1e6, bandwidth=1e9, step=1e-3)
    monkeypatch.setattr(formula, "place", Mock(return_value=slow))
    shape = model_shape.read(LLAMA)
    item = raw_item(prompt_tokens=[1] * 60, tokens=[2] * 40, logprobs=[-1.0] * 40)
    job = Job.parse(raw_job(items=[item, {**item, "id": "other"}]))
    products = formula.training_flops(100, 40, shape, shape.lora(8)) / 1e6
    moved = 3 * 100 * estimate.between(shape, 4) / 1e9
    assert formula.step_seconds(job, shape, "torch") == pytest.approx(8 * (products + moved))


def test_what_lies_between_the_products_by_hand() -> None:
    shape = model_shape.read(LLAMA)
    outputs = 64 + 32 + 32 + 64 + 128 + 128 + 64
    layer = 20 * 64 + 8 * (64 + 32) + 5 * 128 + 5 * outputs
    assert estimate.between(shape, 4) == 2 * layer * 4


def test_answers_that_the_gate_samples_cost_their_products_and_the_templates_marks() -> None:
    """Many rows at once are bound by their products; what the template adds is read for each of them."""
    shape = model_shape.read(LLAMA)
    fast = Device(backend="torch", device="cpu", memory=1 << 34, flops=1.0, bandwidth=1e99, step=0.0)
    asked = raw_item(messages=[{"role": "user", "content": "x" * 40}])
    captured = raw_item(
        id="c",
        messages=[{"role": "user", "content": "x" * 40}],
        prompt_tokens=[1] * 30,
        tokens=[2] * 5,
        logprobs=[-1.0] * 5,
    )
    for items, prompt in (([asked], 10), ([asked, captured], 30)):
        job = Job.parse(raw_job(items=items, settings={"gate_max_tokens": 16}))
        marks = formula._marks(job)
        assert marks == prompt - 10
        seconds = formula._portion(job, shape, fast, 1.0, marks)
        assert seconds == pytest.approx(64 * 2 * (prompt + 16))
    assert formula._tokens(job.items[0], marks)[0] == 31


LINE = f'{FRAME}"Answer briefly, in fewer words."'


def spawn(mode: str, job: dict[str, Any], factory: str) -> tuple[list[dict[str, Any]], float]:
    """The events of a worker, and its CPU seconds as the system counts them."""
    with subprocess.Popen(
        [sys.executable, "-m", "goodbot_training.process.worker", mode, factory],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps(job) + "\n")
        process.stdin.close()
        text = process.stdout.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0
    assert SECRET not in text
    return [json.loads(line) for line in text.splitlines()], usage.ru_utime + usage.ru_stime


def told(estimate: dict[str, Any], took: float) -> bool:
    """Whether it tells of what a round took: the same work takes twice the time beside busy programs."""
    return estimate["least"]["cpu"] / 2.5 < took < 2.5 * estimate["most"]["cpu"]


@pytest.mark.parametrize("backend", FACTORIES)
def test_the_estimate_of_a_real_round(backend: str, random_model: Path, tmp_path: Path) -> None:
    """`tests/benchmarks/bench_estimate.py` tells how near."""
    require("torch" if backend == "torch" else "mlx_lm")
    one, two = tmp_path / "plan", tmp_path / "round"
    one.mkdir()
    two.mkdir()
    job = make_job(random_model, one)
    job["settings"] |= {"steps": 16, "gate_anchors": 64}
    [done], _ = spawn("plan", job, FACTORIES[backend])
    estimate = done["estimate"]
    assert done["event"] == "done"
    assert estimate["how"] == "measured"
    assert (estimate["train"], estimate["held_out"], estimate["too_long"]) == (6, 2, 0)
    steps = planned_steps(6, TrainingSettings.from_mapping(job["settings"]))
    assert (estimate["steps"], estimate["memory"]["recompute"]) == (steps, False)
    parts = sum(cost["cpu"] for cost in estimate["parts"].values())
    assert estimate["total"]["cpu"] == pytest.approx(parts, rel=0.01)
    assert estimate["least"]["cpu"] <= estimate["total"]["cpu"] <= estimate["most"]["cpu"]
    events, took = spawn("train", {**job, "output": str(two)}, FACTORIES[backend])
    assert events[-1]["event"] == "done"
    planned = [event for event in events if event.get("phase") == "train"]
    assert planned[-1]["steps"] == estimate["steps"]
    assert told(estimate, took)


class Unloaded:
    """A backend that has nothing but its name."""

    name = "torch"


def test_a_plan_of_nothing_says_so(random_model: Path, tmp_path: Path) -> None:
    job = make_job(random_model, tmp_path)
    for item in job["items"]:
        item["split"] = "held_out"
    with pytest.raises(TrainingError, match="no rated turn"):
        planning.run_plan(Job.parse(job), Unloaded(), _unheard)  # type: ignore[arg-type]


def _unheard(event: dict[str, Any]) -> None:
    raise AssertionError(event)


def test_a_slow_model_is_not_loaded(
    random_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = Device(backend="torch", device="cpu", memory=1 << 34, flops=1e7, bandwidth=1e9, step=1e-3)
    monkeypatch.setattr(formula, "place", Mock(return_value=slow))

    events: list[dict[str, Any]] = []
    job = Job.parse(make_job(random_model, tmp_path))
    estimate = planning.run_plan(job, Unloaded(), events.append)  # type: ignore[arg-type]
    assert estimate.how == "counted"
    assert (estimate.train, estimate.held_out, estimate.steps) == (6, 2, 4)
    assert estimate.parts["train"].wall > estimate.parts["rollouts"].wall > 0
    assert events == [{"event": "done", "estimate": events[0]["estimate"]}]
    assert events[0]["estimate"]["start_over"] is False
    json.dumps(events)


def test_a_plan_knows_when_the_round_would_start_from_the_base_again(
    random_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = Device(backend="torch", device="cpu", memory=1 << 34, flops=1e7, bandwidth=1e9, step=1e-3)
    monkeypatch.setattr(formula, "place", Mock(return_value=slow))
    job = make_job(random_model, tmp_path)
    job["parent"] = str(tmp_path / "v1")
    job["baseline"] = {"mean": 0.9, "weight": 1.0, "base_n": 40.0, "base_mean": 0.9}
    for item in job["items"]:
        item |= {"version": 1, "reward": -1.0}
    events: list[dict[str, Any]] = []
    planning.run_plan(Job.parse(job), Unloaded(), events.append)  # type: ignore[arg-type]
    assert events[0]["estimate"]["start_over"]


def test_a_plan_and_the_progress_count_what_is_read_for_words(
    random_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each rater's words are one more pass over the answer; a better answer is no rating."""
    slow = Device(backend="torch", device="cpu", memory=1 << 34, flops=1e7, bandwidth=1e9, step=1e-3)
    monkeypatch.setattr(formula, "place", Mock(return_value=slow))
    read: list[float] = []
    rates: list[float] = []
    for count in (0, 1, 2):
        job = make_job(random_model, tmp_path)
        said = [{"text": "That was too long.", "weight": 0.5}] * count
        job["settings"]["objective"] = "hybrid"
        for item in job["items"]:
            item["hindsight"] = said
        events: list[dict[str, Any]] = []
        estimate = planning.run_plan(Job.parse(job), Unloaded(), events.append)  # type: ignore[arg-type]
        read.append(estimate.parts["rollouts"].wall)
        rates.append(estimate.learning_rate)
        taught = [item for item in Job.parse(job).items if passes(Job.parse(job), item)]
        assert len(taught) == (6 if count else 0), "what is held out is not read for them"
    assert read[0] < read[1] < read[2]
    assert read[2] - read[1] == pytest.approx(read[1] - read[0], rel=0.2)
    assert len(set(rates)) == 1
    for item in job["items"]:
        item |= {"hindsight": [], "reward": 0.5}
    silent = planning.run_plan(Job.parse(job), Unloaded(), events.append)  # type: ignore[arg-type]
    job["items"].append({**job["items"][0], "id": "better", "reward": 1.0, "demonstration": True})
    shown = planning.run_plan(Job.parse(job), Unloaded(), events.append)  # type: ignore[arg-type]
    assert silent.learning_rate == 0
    assert (shown.train, shown.too_long) == (silent.train, 0), "no rated answer"
    weight = TrainingSettings().bolder * TrainingSettings().rate_for(1)
    assert 0 < shown.learning_rate <= weight


def test_a_plan_counts_the_answers_that_notes_teach(
    random_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are sampled, read, trained on, and have a place in the memory; notes that are tried cost more."""
    slow = Device(backend="torch", device="cpu", memory=1 << 34, flops=1e7, bandwidth=1e9, step=1e-3)
    monkeypatch.setattr(formula, "place", Mock(return_value=slow))

    def estimate(note: str, *, tried: int = 0, **changes: Any) -> Any:
        job = make_job(random_model, tmp_path)
        job["settings"] |= {"objective": "hybrid", "steps": 96, "gate_max_tokens": 200} | changes
        for item in job["items"]:
            item["note"] = note
        prompts = [{"messages": [{"role": "user", "content": "Why?"}], "with": note, "without": ""}] * 3
        job["notes"] = [{"id": n, "prompts": prompts} for n in range(tried)]
        return planning.run_plan(Job.parse(job), Unloaded(), lambda _: None)  # type: ignore[arg-type]

    plain, noted, tried = estimate(""), estimate(LINE), estimate(LINE, tried=2)
    assert noted.train == plain.train == 6, "they are no ratings"
    assert noted.steps == 2 * plain.steps
    assert noted.parts["rollouts"].wall > plain.parts["rollouts"].wall
    assert noted.parts["train"].wall > 2 * plain.parts["train"].wall, "200 tokens each"
    assert noted.memory.needed > plain.memory.needed
    assert noted.parts["gate"].wall == plain.parts["gate"].wall < tried.parts["gate"].wall
    for off in ({"note_weight": 0.0}, {"hindsight_weight": 0.0}, {"objective": "tapered"}):
        assert estimate(LINE, **off).parts["train"].wall == plain.parts["train"].wall


@pytest.mark.parametrize("backend", FACTORIES)
def test_a_plan_of_a_round_with_notes_is_as_near_as_any(
    backend: str, random_model: Path, tmp_path: Path
) -> None:
    require("torch" if backend == "torch" else "mlx_lm")
    one, two = tmp_path / "plan", tmp_path / "round"
    one.mkdir()
    two.mkdir()
    job = make_job(random_model, one)
    job["settings"] |= {"steps": 32, "gate_anchors": 64, "objective": "hybrid"}
    for item in job["items"]:
        item["note"] = LINE
    [done], _ = spawn("plan", job, FACTORIES[backend])
    events, took = spawn("train", {**job, "output": str(two)}, FACTORIES[backend])
    assert events[-1]["metrics"]["notes"] == 6
    planned = [event for event in events if event.get("phase") == "train"]
    assert planned[-1]["steps"] == done["estimate"]["steps"]
    assert told(done["estimate"], took)
    read = [event for event in events if event.get("phase") == "rollouts"]
    assert read[-1]["steps"] == 8 + 2 * 6, "each is sampled and read"
    assert len(read) > 3
