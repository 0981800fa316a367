"""Rows in one cache: what is left when the longest of them go."""

# pyright: standard
# (the framework ships no complete types)

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.support import require

require("torch"), require("peft")
import torch  # noqa: E402
from goodbot_training.backends.torch.sampler import TorchDecoder  # noqa: E402

from tests.training.backends.families import FAMILIES, VOCABULARY, make  # noqa: E402

WINDOW = 6


@pytest.fixture(scope="module")
def causal() -> Any:
    """One layer with a sliding window, one without."""
    family = FAMILIES["gemma3"]
    kinds = {"layer_types": ["sliding_attention", "full_attention"], "sliding_window": WINDOW}
    return make(replace(family, own=family.own | kinds)).eval()


@pytest.mark.parametrize("short", [3, 9], ids=["within the window", "beyond it"])
def test_padding_goes_with_the_row_that_it_was_for(causal: Any, short: int) -> None:
    random = np.random.default_rng(1)
    prompts = [random.integers(3, VOCABULARY, (1, length)) for length in (30, short)]

    def decoder(prompt: Any) -> TorchDecoder:
        steps = TorchDecoder(causal, None, torch.device("cpu"))
        steps.read(prompt)
        return steps

    rows, alone = decoder(prompts[0]), decoder(prompts[1])
    rows.join(decoder(prompts[1]))
    rows.select([1])
    assert rows._width == short
    assert [layer.keys.shape[-2] for layer in rows._cache.layers] == [
        layer.keys.shape[-2] for layer in alone._cache.layers
    ]
    for token in random.integers(3, VOCABULARY, (2 * WINDOW, 1, 1)):
        found, expected = (
            dict(zip(*one.likeliest(token, 400), strict=True)) for one in (rows, alone)
        )
        assert found == pytest.approx(expected, abs=1e-4)
