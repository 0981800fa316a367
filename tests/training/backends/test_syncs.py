# SPDX-License-Identifier: Apache-2.0
"""A step waits once for its numbers; what it computes is handed over without waiting."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from goodbot.api.backend import OptimizerSettings
from goodbot.api.sampler import TokenizedTurn

from tests.support import require
from tests.training.backends.test_logprobs import load, rated
from tests.training.oracle import batch, objective

PARTS = {"tokens_per_forward": 60}
"""The batch in three parts."""


def steps(backend: Any, **settings: Any) -> Any:
    optimizer = OptimizerSettings(learning_rate=1e-3, **settings)
    return backend.train(iter([rated(backend)] * 3), optimizer, objective("scale"))


def test_torch_waits_once_a_step(random_model: Path) -> None:
    """Counted on a processor: whatever takes a number out of a tensor, and what waits on a way to a GPU."""
    torch = require("torch")
    from torch.overrides import TorchFunctionMode
    from torch.utils._python_dispatch import TorchDispatchMode

    backend, waits = load("torch", random_model), Counter[str]()
    taken = steps(backend, **PARTS)
    next(taken)
    # AdamW's counts of steps are always the host's.
    counts = {state["step"].data_ptr() for state in backend._optimizer.state.values()}

    class Operations(TorchDispatchMode):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            name = func.overloadpacket.__name__
            if name in {"_local_scalar_dense", "nonzero", "equal", "_unique2", "masked_select"}:
                waits[name] += args[0].data_ptr() not in counts
            return func(*args, **(kwargs or {}))

    class Calls(TorchFunctionMode):
        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            kwargs = kwargs or {}
            if func.__name__ in {"tolist", "numpy", "cpu"}:
                waits[func.__name__] += 1
            if func in (torch.tensor, torch.as_tensor) and "device" in kwargs:
                waits["upload"] += 1
            return func(*args, **kwargs)

    with Operations(), Calls():
        next(taken)
    assert +waits == {"tolist": 1}


def test_mlx_waits_once_a_step(random_model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mx = require("mlx.core")
    backend, waits = load("mlx", random_model), Counter[str]()
    taken = steps(backend, **PARTS)
    next(taken)

    def counted(name: str, real: Any) -> Any:
        def call(*given: Any) -> Any:
            waits[name] += 1
            return real(*given)

        return call

    for owner, names in (
        (mx, ("eval", "synchronize")),
        (mx.array, ("tolist", "item", "__bool__", "__int__", "__float__")),
    ):
        for name in names:
            monkeypatch.setattr(owner, name, counted(name, getattr(owner, name)))
    next(taken)
    assert waits == {"tolist": 1}


def test_mlx_learns_the_same_to_the_bit_when_it_waits_for_every_part(
    random_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mx = require("mlx.core")
    found: list[Any] = []
    for wait in (False, True):
        if wait:
            monkeypatch.setattr(mx, "async_eval", mx.eval)
        backend = load("mlx", random_model)
        numbers = list(steps(backend, **PARTS))
        found.append((numbers, backend._model.extract().pairs))
    (numbers, pairs), (others, theirs) = found
    assert numbers == others
    for path, halves in pairs.items():
        for one, other in zip(halves, theirs[path], strict=True):
            np.testing.assert_array_equal(one, other)


def test_mlx_holds_one_part_at_a_time(random_model: Path) -> None:
    """Though it does not wait for one part before it begins the next."""
    mx = require("mlx.core")
    backend = load("mlx", random_model)
    turns = [TokenizedTurn(prompt=(5,) * 150, response=(6,) * 150)] * 4
    base = backend.logprobs(turns, temperature=[1.0] * 4, adapter=False)
    data, peaks = batch(turns, base, base), list[int]()
    for budget in (300, 1200):
        optimizer = OptimizerSettings(learning_rate=1e-3, tokens_per_forward=budget)
        mx.clear_cache()
        mx.reset_peak_memory()
        before = mx.get_active_memory()
        list(backend.train(iter([data]), optimizer, objective("scale")))
        peaks.append(mx.get_peak_memory() - before)
    assert peaks[0] < 0.5 * peaks[1]
