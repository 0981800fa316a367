# SPDX-License-Identifier: Apache-2.0
"""Which models follow notes is found by asking: two that never saw a system line do not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from goodbot.api.backend import LoraSettings
from goodbot.api.sampler import SampleRequest
from goodbot.api.server import Generated, GenerateRequest
from goodbot.conversation.note_trial import FEWEST, AskedTwice, Compared

from tests.learning.bases import BASES
from tests.training.test_slices import backend


async def asked(path: Path) -> Compared:
    one: Any = backend("torch")()
    one.load(path, lora=LoraSettings(rank=8, alpha=16.0), seed=0)
    sampler = one.sampler()
    sampler.activate(0)

    async def ask(request: GenerateRequest) -> Generated:
        sample = SampleRequest(
            messages=request.messages, max_tokens=request.max_tokens, temperature=0, seed=request.seed
        )
        said = sampler.sample(sample)
        return Generated(text=said.text, version=0, finish=said.finish)

    return await AskedTwice(ask).end()


async def test_the_shipped_model_follows_notes() -> None:
    found = await asked(BASES["tiny"].obtain())
    assert found.clear, found


@pytest.mark.parametrize("base", ["llama", "two-style"])
async def test_a_model_without_system_lines_in_its_past_does_not(base: str) -> None:
    found = await asked(BASES[base].obtain())
    assert found.compared >= FEWEST
    assert not found.follows, found
