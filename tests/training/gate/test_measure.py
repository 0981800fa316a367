# SPDX-License-Identifier: Apache-2.0
"""What the gate sees of an adapter's files and numbers, on a random model of real layers."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from goodbot.api.backend import LoraSettings
from goodbot.api.sampler import Sampled, TokenizedTurn
from goodbot_training.gate import Verdict, decide, measure
from goodbot_training.job.types import Job

from tests.support import require
from tests.training.factories import make_rollout, raw_item, raw_job

Gate = Callable[..., Verdict]


@pytest.fixture(scope="module")
def backend(random_model: Path) -> Any:
    require("torch")
    from goodbot_training.backends.torch.trainer import TorchBackend

    backend = TorchBackend()
    backend.load(random_model, lora=LoraSettings(rank=2))
    return backend


@pytest.fixture
def adapter(backend: Any, tmp_path: Path) -> Path:
    """A fresh one, which has no effect."""
    backend.load_adapter(None)
    backend.save_adapter(tmp_path / "adapter")
    return tmp_path / "adapter"


@pytest.fixture
def gate(backend: Any, random_model: Path) -> Gate:
    def judge(adapter: Path, **job: Any) -> Verdict:
        settings = {"gate_anchors": 16, "gate_max_tokens": 4}
        raw = raw_job(model=str(random_model), behaviour={}, items=[raw_item()], settings=settings)
        parsed = Job.parse(raw | job)
        metrics = measure(parsed, backend, adapter, held_out=[], parent_logprobs=[], temperature=0.8)
        return decide(metrics, parsed.settings)

    return judge


def changed(adapter: Path, change: Callable[[dict[str, Any]], None]) -> None:
    """Rewrite the weights."""
    from safetensors.numpy import load_file, save_file

    tensors = dict(load_file(adapter / "adapter_model.safetensors"))
    change(tensors)
    save_file(tensors, adapter / "adapter_model.safetensors", metadata={"format": "pt"})


def test_what_says_what_the_base_says_does_no_harm(gate: Gate, adapter: Path) -> None:
    verdict = gate(adapter)
    assert verdict.passed, verdict.reason
    assert verdict.metrics["drift"] == pytest.approx(0, abs=1e-5)
    assert verdict.metrics["retained"] == 1


def test_it_samples_no_more_than_it_needs(gate: Gate, adapter: Path) -> None:
    verdict = gate(adapter, settings={"gate_anchors": 256, "gate_max_tokens": 1})
    assert verdict.passed, verdict.reason
    assert verdict.metrics["anchors"] == 128
    assert verdict.metrics["foreign"] == verdict.metrics["foreign_before"]


@pytest.mark.parametrize("place", ["items", "anchors"])
def test_what_is_too_long_to_train_on_is_not_asked(gate: Gate, adapter: Path, place: str) -> None:
    talk = [{"role": "user", "content": "Hi there " * 300}]
    settings = {"gate_anchors": 4, "gate_max_tokens": 4, "max_sequence_tokens": 512}
    items = [raw_item(), raw_item(1, messages=talk)]
    anchors = [talk] if place == "anchors" else []
    verdict = gate(adapter, settings=settings, items=items, anchors=anchors)
    assert verdict.passed, verdict.reason
    assert verdict.metrics["anchors"] == 4


class Dice:
    """A base that says something rare in some answers, and a candidate that is its equal."""

    def __init__(self, seed: int, rare: float) -> None:
        self._random, self._rare = np.random.default_rng(seed), rare
        self._said: list[Any] = []

    def sampler(self) -> Any:
        return self

    def load_adapter(self, version: int, directory: Path) -> None: ...

    def activate(self, version: int) -> None: ...

    def tokenize(self, messages: Any, response: str) -> TokenizedTurn:
        return TokenizedTurn(prompt=(1,), response=(2,))

    def sample_many(self, requests: Any) -> list[Sampled]:
        return [self._answer() for _ in requests]

    def _answer(self) -> Sampled:
        rare = self._random.random() < self._rare
        logprob = self._random.uniform(-14, -6.3) if rare else -1.0
        self._said.append(logprob)
        return Sampled(
            prompt=(1,), tokens=(len(self._said) - 1,), logprobs=(logprob,), text="a", finish="stop"
        )

    def logprobs(self, batch: Any, *, temperature: Any, adapter: bool) -> list[Any]:
        return [np.array([self._said[turn.response[0]]], np.float32) for turn in batch]


@pytest.mark.parametrize("rare", [0.01, 0.02, 0.6])
def test_a_candidate_that_is_the_base_under_other_dice_is_seldom_blamed(
    adapter: Path, random_model: Path, rare: float
) -> None:
    job = Job.parse(raw_job(model=str(random_model)))
    refused = 0
    for seed in range(60):
        dice: Any = Dice(seed, rare)
        metrics = measure(job, dice, adapter, held_out=[], parent_logprobs=[], temperature=0.8)
        refused += not decide(metrics, job.settings).passed
    assert refused <= 8, "of 60"


def test_the_base_is_not_asked_twice_and_the_second_look_sees_the_same(
    adapter: Path, random_model: Path
) -> None:
    job = Job.parse(raw_job(model=str(random_model)))
    kept: list[Sampled] = []

    dice: Any = Dice(3, 0.6)  # so much is rare that all answers are needed

    def look() -> tuple[int, dict[str, float]]:
        before = len(dice._said)
        metrics = measure(
            job, dice, adapter, held_out=[], parent_logprobs=[], temperature=0.8, base_answers=kept
        )
        return len(dice._said) - before, metrics

    asked, first = look()
    before = list(kept)
    assert len(before) == first["anchors"] == asked / 2
    again, second = look()
    more = len(kept) - len(before)
    assert again == second["anchors"] + more, "the candidate's, and of the base's what was not asked yet"
    assert kept[: len(before)] == before


@pytest.mark.parametrize("number", [np.nan, np.inf, -np.inf])
def test_numbers_that_are_not_finite_are_refused(gate: Gate, adapter: Path, number: float) -> None:
    def spoil(tensors: dict[str, Any]) -> None:
        tensors[min(tensors)][0, 0] = number

    changed(adapter, spoil)
    verdict = gate(adapter)
    assert (verdict.passed, verdict.metrics) == (False, {"finite": 0.0})


def test_numbers_that_overflow_in_the_model_are_refused(gate: Gate, adapter: Path) -> None:
    def swell(tensors: dict[str, Any]) -> None:
        for name in tensors:
            tensors[name] = np.full_like(tensors[name], 1e30)

    changed(adapter, swell)
    verdict = gate(adapter)
    assert not verdict.passed
    assert verdict.metrics["speaks"] == 0
    assert "not finite" in verdict.reason


def test_an_adapter_of_other_shapes_is_of_another_model(gate: Gate, adapter: Path) -> None:
    def widen(tensors: dict[str, Any]) -> None:
        name = next(name for name in tensors if name.endswith("lora_A.weight"))
        tensors[name] = np.zeros((2, tensors[name].shape[1] + 1), np.float32)

    changed(adapter, widen)
    verdict = gate(adapter)
    assert not verdict.passed
    assert "another model" in verdict.reason


def sign(adapter: Path, name: str) -> None:
    path = adapter / "adapter_config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"base_model_name_or_path": name}))


def test_an_adapter_knows_its_base_by_the_weights_and_not_by_the_place(gate: Gate, adapter: Path) -> None:
    own = json.loads((adapter / "adapter_config.json").read_text())["base_model_name_or_path"]
    name, _, digits = own.rpartition("@")
    assert name, "the base is named"
    assert len(digits) == 8
    sign(adapter, f"renamed@{digits}")
    assert gate(adapter).passed
    sign(adapter, f"{name}@00000000")
    assert "another model" in gate(adapter).reason
    sign(adapter, "")  # of an earlier goodbot: then its answers must tell
    assert gate(adapter).passed


def test_a_parent_of_another_base_is_refused_too(gate: Gate, adapter: Path, tmp_path: Path) -> None:
    parent = shutil.copytree(adapter, tmp_path / "parent")
    sign(parent, "elsewhere@00000000")
    assert "another model" in gate(adapter, parent=str(parent)).reason


def test_held_out_ratings_of_earlier_rounds_count(backend: Any, random_model: Path, adapter: Path) -> None:
    earlier = {"n": 70, "xx": 70.0, "xy": 35.0, "yy": 20.0}
    raw = raw_job(model=str(random_model), behaviour={}, settings={"gate_anchors": 0}, judged=[earlier])
    job = Job.parse(raw)
    held_out = [make_rollout(n, reward=(-1.0) ** n) for n in range(6)]
    before = [np.full(3, -1.0, np.float32) for _ in held_out]
    metrics = measure(job, backend, adapter, held_out=held_out, parent_logprobs=before, temperature=0.8)
    assert (metrics["held_out"], metrics["told"], metrics["told_rounds"]) == (6, 76, 2)
    verdict = decide(metrics, job.settings)
    assert "better: +0.9" in verdict.reason, verdict.reason
