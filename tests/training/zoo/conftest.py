# SPDX-License-Identifier: Apache-2.0
"""The zoo's models: each is made once a session."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support import require
from tests.training.zoo import making


@pytest.fixture(scope="session")
def zoo(tmp_path_factory: pytest.TempPathFactory) -> making.Zoo:
    """Of each row a directory, and its model once it is asked for."""
    require("transformers")
    return making.Zoo(tmp_path_factory.mktemp("zoo"))


@pytest.fixture
def files(row: str, zoo: making.Zoo) -> Path:
    """The row's directory without weights."""
    return zoo.files(row)
