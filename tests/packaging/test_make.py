# SPDX-License-Identifier: Apache-2.0
"""What `make` fetches: the backend that goodbot itself would take, and nothing large unasked."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from goodbot.api.backend import BackendSpec
from goodbot.api.registry import automatic_backend
from goodbot.cli.setup.extras import MOST_UNASKED, amount
from goodbot_training.backends import mlx, torch

from tests.architecture.source import ROOT

MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
LARGE = ("check", "bench-learning", "bench-learning-quick", "bench-words")


def backends(monkeypatch: pytest.MonkeyPatch, *, wheels: bool) -> dict[str, BackendSpec]:
    """On a machine with nothing installed, for which there is an MLX or is none; a Linux on x86-64."""
    monkeypatch.setattr(mlx, "_has_wheels", lambda: wheels)
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setattr("platform.machine", lambda: "x86_64")
    found = (mlx.register_backend(), torch.register_backend())
    return {one.name: replace(one, requires=("no_such_module",)) for one in found}


def test_it_installs_the_backend_that_goodbot_takes_where_none_is(monkeypatch: pytest.MonkeyPatch) -> None:
    [default] = re.findall(r"^BACKEND \?= (\S+)$", MAKEFILE, flags=re.M)
    taken = automatic_backend(backends(monkeypatch, wheels=True))
    assert taken.name == default
    assert taken.download is not None
    assert taken.download <= MOST_UNASKED
    assert f"({default}: about {amount(taken.download)})" in MAKEFILE


def test_where_only_a_large_one_is_left_it_tells_its_size_and_the_words(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    left = automatic_backend(backends(monkeypatch, wheels=False))
    assert left.download is not None
    assert left.download > MOST_UNASKED
    [told] = re.findall(r"could not be installed, see above.*?exit 1", MAKEFILE, flags=re.S)
    assert f"make BACKEND={left.name} demo" in told
    assert f"on Linux about {amount(left.download)}" in told
