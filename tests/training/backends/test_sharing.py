# SPDX-License-Identifier: Apache-2.0
"""Several workers that share each step learn what one alone learns: in threads that take turns."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.support import patience, require
from tests.training.test_worker import make_job

torch = require("torch")
require("peft")

from goodbot_training.backends.adapters import read_adapter  # noqa: E402
from goodbot_training.backends.torch.sharing import Share, dealt  # noqa: E402
from goodbot_training.backends.torch.trainer import TorchBackend  # noqa: E402
from goodbot_training.gate.decide import Verdict  # noqa: E402
from goodbot_training.job.types import Job  # noqa: E402
from goodbot_training.round.run import run_round  # noqa: E402

from tests.training.tinker.wire import SETTINGS, losses  # noqa: E402

Told = tuple[Verdict, list[dict[str, Any]]]


class Workers:
    """So many threads, of which one computes at a time; the sum is taken in their order."""

    def __init__(self, count: int) -> None:
        self.count, self._turn = count, threading.Lock()
        self._all = threading.Barrier(count)
        self._given: dict[int, Any] = {}
        self.sums = 0

    def run(self, work: Callable[[int, Share], Told]) -> list[Told]:
        found: dict[int, Told] = {}

        def one(number: int) -> None:
            with self._turn:
                try:
                    found[number] = work(number, Share(number=number, of=self.count, add=self._add(number)))
                except BaseException:
                    self._all.abort()
                    raise

        threads = [threading.Thread(target=one, args=(number,)) for number in range(self.count)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(patience(120))
        return [found[number] for number in range(self.count)]

    def _add(self, number: int) -> Callable[[Any], None]:
        def add(vector: Any) -> None:
            self._given[number] = vector.clone()
            self._wait()
            vector.copy_(torch.stack([self._given[one] for one in range(self.count)]).sum(0))
            self.sums += not number
            self._wait()

        return add

    def _wait(self) -> None:
        self._turn.release()
        try:
            self._all.wait(patience(60))
        finally:
            self._turn.acquire()


def furthest(one: Path, other: Path) -> float:
    """The largest difference between two adapters' effects."""
    found = [read_adapter(path) for path in (one, other)]
    effects = [{path: a.scale * b @ x for path, (x, b) in a.pairs.items()} for a in found]
    return max(float(np.abs(effects[0][path] - effects[1][path]).max()) for path in effects[0])


def keys(verdict: Verdict) -> list[str]:
    return [reason.code for reason in verdict.said]


def learnt(model: Path, output: Path, settings: dict[str, Any], share: Share | None = None) -> Told:
    output.mkdir()
    events: list[dict[str, Any]] = []
    backend = TorchBackend()
    backend.share = share
    raw = make_job(model, output, settings={**SETTINGS, "learning_rate": 3e-3, **settings})
    return run_round(Job.parse(raw), backend, events.append), events


@pytest.mark.parametrize(
    ("workers", "settings"),
    [
        (2, {"objective": "tapered"}),
        (2, {"objective": "filter", "damping": 3.0, "attention_rate": 0.2}),
        (2, {"objective": "sign_aware", "batch_size": 5}),
        (3, {"objective": "scale", "batch_size": 2}),
        (2, {"objective": "reinforce", "tokens_per_forward": 64, "strength": 0.6}),
    ],
)
def test_the_curve_the_adapter_and_the_verdict_are_those_of_one(
    workers: int, settings: dict[str, Any], random_model: Path, tmp_path: Path
) -> None:
    verdict, events = learnt(random_model, tmp_path / "alone", settings)
    several = Workers(workers)
    found = several.run(lambda n, share: learnt(random_model, tmp_path / str(n), settings, share))
    assert several.sums == len(losses(events)) == 6
    assert len({round(loss, 3) for loss in losses(events)}) > 1, "it learns"
    for number, (theirs, told) in enumerate(found):
        assert losses(told) == pytest.approx(losses(events), abs=1e-4)
        assert (theirs.passed, keys(theirs)) == (verdict.passed, keys(verdict))
        assert furthest(tmp_path / "alone", tmp_path / str(number)) < 1e-4
    assert furthest(tmp_path / "0", tmp_path / str(workers - 1)) == 0, "each has the same weights"


def test_what_is_told_of_a_step_is_told_of_all_rows(random_model: Path, tmp_path: Path) -> None:
    """Also by a worker that has none of them."""
    _, alone = learnt(random_model, tmp_path / "alone", {"batch_size": 2})
    found = Workers(3).run(lambda n, share: learnt(random_model, tmp_path / str(n), {"batch_size": 2}, share))
    names = ("kl", "tokens", "grad_norm", "token_acceptance")
    steps = [
        [{name: event[name] for name in names if name in event} for event in told if "loss" in event]
        for told in (alone, *(told for _, told in found))
    ]
    assert any(steps[0])
    for theirs in steps[1:]:
        assert [list(step) for step in theirs] == [list(step) for step in steps[0]]
        for step, own in zip(theirs, steps[0], strict=True):
            assert step == pytest.approx(own, abs=1e-3)


def test_rows_are_dealt_evenly() -> None:
    assert dealt([4, 3, 2, 1], 2) == [[0, 3], [1, 2]]
    assert dealt([7], 3) == [[0], [], []]
    lengths = [50, 3, 12, 40, 8, 8, 31, 2]
    for workers in (1, 2, 3, 8):
        hands = dealt(lengths, workers)
        assert sorted(row for hand in hands for row in hand) == list(range(len(lengths)))
        assert max(map(len, hands)) - min(map(len, hands)) <= 1
