# SPDX-License-Identifier: Apache-2.0
"""The real llama.cpp on the tiny model, in its cage: the contract, and numbers that are those of the model.

By its Python package wherever that is installed; by a `llama-server` of its own with `make test-serving`.
"""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import pytest_asyncio
from goodbot.api.server import BASE, AdapterFormat, Generated, GenerateRequest, Server
from goodbot.base.cage import seccomp
from goodbot.base.errors import AdapterError, ServerError
from goodbot.base.sampling import Filters
from goodbot.base.spawn import child_environment
from goodbot.inference.servers.llamacpp import LlamaCppServer
from goodbot.inference.servers.plugin import LlamaCppSettings
from goodbot.learning.adapters.formats import Formats
from goodbot.testing import ServingContract

from tests.core.builders import SPEC, server_parts
from tests.core.inference.servers import llama_build, llama_wheel, tiny
from tests.core.inference.servers.expected import QUESTION, logits, logprobs, normal, prompt
from tests.support import require

pytestmark = pytest.mark.timeout(600)
Convert = Callable[[Path, AdapterFormat], Awaitable[Path]]
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
async def base(root: Path) -> Path:
    made = root / "base.gguf"
    await Formats(root, tiny.model(), child_environment()).export(None, "gguf-base", made)
    return made


@pytest.fixture(scope="module", params=["package", pytest.param("program", marks=pytest.mark.serving)])
def binary(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> str:
    if request.param == "program":
        return llama_build.program()
    require(llama_wheel.PACKAGE)
    return str(llama_wheel.program(tmp_path_factory.mktemp("program")))


def driver(base: Path, binary: str, convert: Convert) -> LlamaCppServer:
    settings = LlamaCppSettings(
        model=str(base), binary=binary, context=512, parallel=4, gpu_layers=0, threads=1
    )
    parts = server_parts(SPEC, tiny.model(), convert=convert, home=base.parent / "serving")
    return LlamaCppServer(settings, parts)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def running(
    root: Path, base: Path, binary: str, two: tuple[Path, Path]
) -> AsyncIterator[LlamaCppServer]:
    server = driver(base, binary, Formats(root, tiny.model(), child_environment()).convert)
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


@pytest.mark.asyncio(loop_scope="module")
async def test_a_penalty_is_for_all_that_was_said(server: LlamaCppServer) -> None:
    """Also for what stands further back than the 64 tokens that llama.cpp looks back by itself."""
    asked = [{"role": "user", "content": "The capital of France is Paris. I am a bot." + " no" * 80}]
    ids, heat, penalty = prompt(asked), 0.9, 1.8
    request = GenerateRequest(
        messages=asked, max_tokens=12, temperature=heat, seed=5, filters=Filters(repetition_penalty=penalty)
    )
    answer = [piece async for piece in server.generate(request)][-1]
    assert isinstance(answer, Generated)
    assert list(answer.prompt_tokens) == ids
    assert answer.tokens
    said = [*ids, *answer.tokens]

    def expected(back: int) -> np.ndarray:
        rows = logits(said, None)[len(ids) - 1 : -1]
        for at, row in enumerate(rows, len(ids)):
            seen = sorted({*said[max(0, at - back) : at]})
            row[seen] = np.where(row[seen] > 0, row[seen] / penalty, row[seen] * penalty)
        return normal(rows / heat)[np.arange(len(rows)), answer.tokens]

    apart = [np.abs(np.array(answer.logprobs) - expected(back)).max() for back in (len(said), 64)]
    assert apart[0] < APART < apart[1]


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.skipif(sys.platform != "linux", reason="the system tells it of another process in /proc")
async def test_it_is_in_its_cage(server: LlamaCppServer, two: tuple[Path, Path]) -> None:
    """The rules themselves `tests/security` tries, with a program that would break them."""
    await server.load(1, two[0])
    for version in (BASE, 1):
        process = server._children[version]._process
        assert process is not None
        told = Path("/proc", str(process.pid), "status").read_text()
        assert "NoNewPrivs:\t1\n" in told
        assert not seccomp.known() or "Seccomp:\t2\n" in told


@pytest.mark.asyncio(loop_scope="module")
async def test_a_file_that_is_broken_ends_nothing_but_its_own_process(
    root: Path, base: Path, binary: str, tmp_path: Path
) -> None:
    cut = tmp_path / "cut.gguf"
    cut.write_bytes(base.read_bytes()[:100_000])
    server = driver(cut, binary, Formats(root, tiny.model(), child_environment()).convert)
    with pytest.raises(ServerError, match="llama-server ended while it came up") as caught:
        await server.start()
    await server.stop()
    assert not isinstance(caught.value, AdapterError)


@pytest.mark.asyncio(loop_scope="module")
async def test_an_adapter_that_it_does_not_take_is_blamed_and_the_base_answers(
    root: Path, base: Path, binary: str, two: tuple[Path, Path], tmp_path: Path
) -> None:
    formats = Formats(root, tiny.model(), child_environment())

    async def half(directory: Path, wanted: AdapterFormat) -> Path:
        whole = (await formats.convert(directory, wanted)).read_bytes()
        (made := tmp_path / "half.gguf").write_bytes(whole[: len(whole) // 2])
        return made

    server = driver(base, binary, half)
    await server.start()
    try:
        with pytest.raises(AdapterError, match="v1 cannot be served"):
            await server.load(1, two[0])
        assert await server.served() == BASE
        assert await server.first_tokens(QUESTION, version=BASE, top=3)
    finally:
        await server.stop()
