"""The MLX backend keeps the contract."""

from __future__ import annotations

from typing import Any

import pytest
from goodbot.testing.backend import BackendContract

from tests.support import require


class TestMlxBackend(BackendContract):
    @pytest.fixture(scope="class")
    @classmethod
    def backend_factory(cls) -> Any:
        require("mlx.core")
        require("mlx_lm")
        from goodbot_training.backends.mlx.trainer import MlxBackend

        return MlxBackend

    @pytest.fixture(scope="class")
    @classmethod
    def model_dir(cls, request: pytest.FixtureRequest) -> Any:
        return request.getfixturevalue("random_model")
