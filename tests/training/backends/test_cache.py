# SPDX-License-Identifier: Apache-2.0
"""Rows in one cache: what is left when the longest of them go."""

# pyright: standard
# (the framework ships no complete types)

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from tests.support import require

require("torch"), require("peft")
import torch  # noqa: E402
from goodbot_training.backends.torch import cache  # noqa: E402
from goodbot_training.backends.torch.sampler import TorchDecoder  # noqa: E402
from transformers import DynamicCache  # noqa: E402

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
        found, expected = (dict(zip(*one.likeliest(token, 400), strict=True)) for one in (rows, alone))
        assert found == pytest.approx(expected, abs=1e-4)


@pytest.fixture(scope="module")
def llama() -> Any:
    return make(FAMILIES["llama"]).eval()


def read(causal: Any, length: int) -> TorchDecoder:
    steps = TorchDecoder(causal, None, torch.device("cpu"))
    steps.read(np.arange(3, 3 + length)[None])
    return steps


def test_a_token_is_written_where_there_is_room(llama: Any) -> None:
    """And it is as if all had been read at once, however often room was made."""
    steps, places = read(llama, 5), list[int]()
    said = np.random.default_rng(2).integers(3, VOCABULARY, 2 * cache._ROOM + 5)
    for token in said:
        steps.read(np.asarray([[token]]))
        places.append(steps._cache.layers[0]._whole[0].data_ptr())
    assert len([one for one, other in pairwise(places) if one != other]) == 2
    plain = DynamicCache(config=llama.config)
    ids = torch.as_tensor([[*range(3, 8), *said.tolist()]])
    llama.base_model(input_ids=ids, past_key_values=plain, use_cache=True)
    same(steps._cache, plain)


@torch.no_grad()
@pytest.mark.parametrize("prompt", [3, WINDOW - 1, WINDOW, 3 * WINDOW])
def test_a_window_moves_along_where_there_is_room(causal: Any, prompt: int) -> None:
    """It holds and shows what transformers' own does, also where several tokens come at once."""
    steps, plain, places = read(causal, prompt), DynamicCache(config=causal.config), list[int]()
    ids = torch.arange(3, 3 + prompt)[None]
    causal.base_model(input_ids=ids, past_key_values=plain, use_cache=True)
    random = np.random.default_rng(2)
    for count in (*[1] * (2 * cache._ROOM + 5), WINDOW + 2, 1, 2, 1):
        said = random.integers(3, VOCABULARY, (1, count))
        known = {"past_key_values": plain, "use_cache": True}
        expected = causal(input_ids=torch.as_tensor(said), **known).logits[0, -1].log_softmax(-1)
        found = dict(zip(*steps.likeliest(said, 400), strict=True))
        for token, logprob in found.items():
            assert logprob == pytest.approx(float(expected[token]), abs=1e-4)
        places.append(steps._cache.layers[0]._whole[0].data_ptr())
        same(steps._cache, plain)
    assert len([one for one, other in pairwise(places) if one != other]) == 2


def same(mine: Any, theirs: Any) -> None:
    for one, other in zip(mine.layers, theirs.layers, strict=True):
        assert one.get_seq_length() == other.get_seq_length()
        for found, expected in ((one.keys, other.keys), (one.values, other.values)):
            torch.testing.assert_close(found, expected, rtol=0, atol=1e-5)


def test_two_that_hold_the_same_do_not_write_into_each_other(llama: Any) -> None:
    one = read(llama, 5)
    one.read(np.asarray([[9]]))  # now there is room behind it
    other = TorchDecoder(llama, None, torch.device("cpu"))
    other._cache, other._lengths, other._width = cache.copied(one._cache), [6], 6
    for steps, token in ((other, 10), (one, 11), (other, 12), (one, 13)):
        steps.read(np.asarray([[token]]))
    for steps, said in ((other, (10, 12)), (one, (11, 13))):
        alone = read(llama, 5)
        for token in (9, *said):
            alone.read(np.asarray([[token]]))
        for layer, expected in zip(steps._cache.layers, alone._cache.layers, strict=True):
            torch.testing.assert_close(layer.keys, expected.keys, rtol=0, atol=1e-5)


def test_what_was_taken_back_is_written_over(llama: Any) -> None:
    steps = read(llama, 5)
    for token in (9, 10, 11):
        steps.read(np.asarray([[token]]))
    assert steps.crop(2)
    steps.read(np.asarray([[12]]))
    alone = read(llama, 5)
    for token in (9, 12):
        alone.read(np.asarray([[token]]))
    assert steps.likeliest(np.asarray([[3]]), 5)[0] == alone.likeliest(np.asarray([[3]]), 5)[0]
