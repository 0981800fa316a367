"""The torch backend keeps the contract."""

from __future__ import annotations

from typing import Any

import pytest
from goodbot.testing.backend import BackendContract

from tests.support import require


class TestTorchBackend(BackendContract):
    @pytest.fixture(scope="class")
    @classmethod
    def backend_factory(cls) -> Any:
        require("torch")
        require("peft")
        from goodbot_training.backends.torch.trainer import TorchBackend

        return TorchBackend

    @pytest.fixture(scope="class")
    @classmethod
    def model_dir(cls, request: pytest.FixtureRequest) -> Any:
        return request.getfixturevalue("random_model")
