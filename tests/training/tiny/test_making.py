# SPDX-License-Identifier: Apache-2.0
"""How the shipped model is made: what is saved there changes nothing of what is learnt."""

from __future__ import annotations

from itertools import islice
from random import Random
from typing import Any

import pytest
from goodbot_training.tiny import model_path
from goodbot_training.tiny.corpus import conversations

from tests.support import require


@pytest.fixture(scope="module")
def model() -> Any:
    torch = require("torch")
    require("transformers")
    from transformers import AutoModelForCausalLM

    torch.set_num_threads(1)
    return AutoModelForCausalLM.from_pretrained(model_path(), dtype=torch.float32)


def test_a_beginning_in_common_is_computed_once_with_the_same_gradients(
    model: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    import torch
    from goodbot_training.tiny import packing
    from goodbot_training.tiny.styles import FIRST_WORDS
    from goodbot_training.tiny.train import _answer_loss, encoder
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(model_path() / "tokenizer.json"))
    encode = encoder(tokenizer)
    openers = torch.tensor([tokenizer.encode(word).ids[0] for word in FIRST_WORDS])
    chats = [encode(messages) for messages in islice(conversations(Random(3)), 32)]

    def learnt() -> tuple[int, float, list[Any]]:
        model.zero_grad()
        tokens, loss = 0, 0.0
        for batch in packing.batches(chats):
            one = _answer_loss(model, batch, openers)
            one.backward()
            tokens, loss = tokens + batch.tokens.numel(), loss + one.item()
        return tokens, loss, [weight.grad.clone() for weight in model.parameters()]

    packed, loss, gradients = learnt()
    monkeypatch.setattr(packing, "_WORTH", 10_000)
    apart, expected, theirs = learnt()
    assert packed < 0.9 * apart
    assert loss == pytest.approx(expected, rel=1e-4)
    for mine, other in zip(gradients, theirs, strict=True):
        assert (mine - other).abs().max() <= 1e-3 * other.abs().max() + 1e-5


def test_muon_steps_as_torchs_own_does() -> None:
    torch = require("torch")
    from goodbot_training.tiny.muon import Muon

    torch.manual_seed(0)
    shapes = [(16, 16), (16, 16), (48, 16), (16, 48)]
    starts = [torch.randn(shape) for shape in shapes]
    ours, theirs = ([torch.nn.Parameter(start.clone()) for start in starts] for _ in range(2))
    stepping = (Muon(ours, lr=0.1), torch.optim.Muon(theirs, lr=0.1, weight_decay=0.0))
    for _ in range(5):
        for one, other in zip(ours, theirs, strict=True):
            one.grad = torch.randn(one.shape)
            other.grad = one.grad.clone()
        for optimizer in stepping:
            optimizer.step()
    for start, one, other in zip(starts, ours, theirs, strict=True):
        assert (one - start).abs().max() > 0.1
        assert (one - other).abs().max() < 0.02  # torch's iterates in bfloat16
