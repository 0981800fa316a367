# SPDX-License-Identifier: Apache-2.0
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


def test_a_row_that_is_kept_holds_no_memory_for_the_longer_one_beside_it() -> None:
    torch = require("torch")
    cache = require("transformers").DynamicCache()
    for numbers in (torch.zeros(2, 1, 90, 4), torch.ones(2, 1, 10, 4)):
        cache.update(numbers, numbers, 0)
    from goodbot_training.backends.torch.cache import copied, trimmed

    short = copied(cache)
    short.reorder_cache(torch.tensor([1]))
    assert trimmed(short, 90) == 90
    for kept in (short.layers[0].keys, short.layers[0].values):
        assert kept.shape == (1, 1, 10, 4)
        assert kept.untyped_storage().nbytes() == kept.nbytes
