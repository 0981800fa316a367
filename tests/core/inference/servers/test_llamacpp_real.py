# SPDX-License-Identifier: Apache-2.0
"""A real `llama-server` on the tiny model: the contract, and numbers that are those of the model."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import pytest_asyncio
from goodbot.api.server import BASE, Generated, GenerateRequest, Server
from goodbot.base.spawn import child_environment
from goodbot.inference.servers.llamacpp import LlamaCppServer
from goodbot.inference.servers.plugin import LlamaCppSettings
from goodbot.learning.adapters.formats import Formats
from goodbot.testing import ServingContract

from tests.core.builders import SPEC, server_parts
from tests.core.inference.servers import llama_build, tiny
from tests.core.inference.servers.expected import QUESTION, logprobs, prompt
from tests.support import require

pytestmark = [pytest.mark.serving, pytest.mark.timeout(600)]
APART = 0.05
"""Nats: llama.cpp multiplies F16 weights with activations in F16 on a CPU."""


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    require("gguf")
    return tmp_path_factory.mktemp("adapters")


@pytest.fixture(scope="module")
def two(root: Path) -> tuple[Path, Path]:
    return tiny.two(root)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def running(root: Path, two: tuple[Path, Path]) -> AsyncIterator[LlamaCppServer]:
    binary = llama_build.program()
    formats = Formats(root, tiny.model(), child_environment())
    base = root / "base.gguf"
    await formats.export(None, "gguf-base", base)
    settings = LlamaCppSettings(
        model=str(base), binary=binary, context=512, parallel=4, gpu_layers=0, threads=1
    )
    parts = server_parts(SPEC, tiny.model(), convert=formats.convert)
    server = LlamaCppServer(settings, parts)
    await server.start()
    yield server
    await server.stop()


@pytest_asyncio.fixture(loop_scope="module")
async def server(running: LlamaCppServer) -> AsyncIterator[LlamaCppServer]:
    yield running
    if not running.healthy():
        await running.start()
    await running.activate(BASE)
    for version in (1, 2):
        await running.unload(version)


@pytest.mark.asyncio(loop_scope="module")
class TestTheContract(ServingContract):
    @pytest_asyncio.fixture(loop_scope="module")
    async def server(self, server: Server) -> Server:
        return server

    @pytest.fixture
    def adapters(self, two: tuple[Path, Path]) -> tuple[Path, Path]:
        return two


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("version", [BASE, 1])
async def test_its_logprobs_are_the_models_at_the_temperature_of_the_request(
    server: LlamaCppServer, two: tuple[Path, Path], version: int
) -> None:
    await server.load(1, two[0])
    request = GenerateRequest(messages=QUESTION, max_tokens=30, temperature=0.7, seed=5, version=version)
    answer = [piece async for piece in server.generate(request)][-1]
    assert isinstance(answer, Generated)
    assert list(answer.prompt_tokens) == prompt()
    assert answer.tokens
    ids = [*answer.prompt_tokens, *answer.tokens]
    expected = logprobs(ids, two[0] if version else None, 0.7)
    first = len(answer.prompt_tokens) - 1
    chosen = [expected[first + at, token] for at, token in enumerate(answer.tokens)]
    assert np.abs(np.array(answer.logprobs) - chosen).max() < APART


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("version", [BASE, 1])
async def test_its_first_tokens_are_the_models(
    server: LlamaCppServer, two: tuple[Path, Path], version: int
) -> None:
    transformers = require("transformers")
    tokenizer: Any = transformers.AutoTokenizer.from_pretrained(tiny.model())
    await server.load(1, two[0])
    told = await server.first_tokens(QUESTION, version=version, top=10)
    expected = logprobs(prompt(), two[0] if version else None, 1.0)[-1]
    best = {tokenizer.decode([at]): expected[at] for at in np.argsort(-expected)[:12]}
    assert len(told) == 10
    for text, logprob in told.items():
        assert best[text] == pytest.approx(logprob, abs=APART)
