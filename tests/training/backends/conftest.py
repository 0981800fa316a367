# SPDX-License-Identifier: Apache-2.0
"""Samplers of random models, for a module that has a `backend`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.core.inference.servers import tiny


@pytest.fixture(scope="module")
def directories(random_model: Path, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    root = tmp_path_factory.mktemp("adapters")
    return [tiny.adapter(root / str(seed), seed, 2.0, of=random_model) for seed in (1, 2)]


@pytest.fixture
def sampler(backend: Any, directories: list[Path]) -> Any:
    """With versions 1 and 2 beside the base, which is active."""
    sampler = backend.sampler()
    for version, directory in enumerate(directories, start=1):
        sampler.load_adapter(version, directory)
    sampler.activate(0)
    return sampler
