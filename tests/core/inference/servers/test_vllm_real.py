# SPDX-License-Identifier: Apache-2.0
"""A real vLLM on the tiny model: the contract, its numbers, its end, and a goodbot that learns on it."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import numpy as np
import pytest
from goodbot.api.server import BASE, Generated, GenerateRequest, Server
from goodbot.base.errors import ServerError
from goodbot.inference.servers.plugin import VllmSettings
from goodbot.inference.servers.vllm import VllmServer
from goodbot.testing import ServingContract
from goodbot.testing.serving_base import answered

from tests.core.inference.servers import tiny, vllm_install
from tests.core.inference.servers.expected import QUESTION, logprobs, prompt
from tests.core.inference.servers.remote import parts, started
from tests.end_to_end.taught import RATINGS, Bot, questions
from tests.support import free_port, patience

pytestmark = [pytest.mark.serving, pytest.mark.timeout(600)]
APART = 1e-3
"""Nats, in fp32."""
_OPTIONS = (
    "--enable-lora",
    "--max-lora-rank",
    "8",
    "--max-loras",
    "2",
    "--dtype",
    "float32",
    "--enforce-eager",
    "--max-model-len",
    "1024",
    # On a processor the base's part of a mixed batch gets an adapter (vllm-project/vllm#48421).
    "--max-num-seqs",
    "1",
)
_PROCESSED = ("--logprobs-mode", "processed_logprobs")
_ENVIRONMENT = {
    "VLLM_ALLOW_RUNTIME_LORA_UPDATING": "True",
    "VLLM_CPU_KVCACHE_SPACE": "1",
    "HF_HUB_OFFLINE": "1",
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
    "OMP_NUM_THREADS": "1",
    "VLLM_NO_USAGE_STATS": "1",
}


class Vllm:
    """`vllm serve`, as its owner starts it."""

    def __init__(self, log: Path, *options: str) -> None:
        self.url = f"http://127.0.0.1:{free_port()}"
        self._log = log
        self._options = options
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Returns once it answers."""
        port = self.url.rpartition(":")[2]
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [
                    vllm_install.program(),
                    "serve",
                    str(tiny.model()),
                    "--host",
                    "127.0.0.1",
                    "--port",
                    port,
                    *_OPTIONS,
                    *self._options,
                ],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                env={**os.environ, **_ENVIRONMENT},
            )
        end = time.monotonic() + patience(300)
        while not self._answers():
            assert self._process.poll() is None, self._log.read_text()[-3000:]
            assert time.monotonic() < end, self._log.read_text()[-3000:]
            time.sleep(0.5)

    def kill(self) -> None:
        """With all that it has started."""
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()

    def _answers(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.url}/health", timeout=patience(5)):
                return True
        except (urllib.error.URLError, OSError):
            return False


@pytest.fixture(scope="module")
def vllm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Vllm]:
    vllm_install.program()
    vllm = Vllm(tmp_path_factory.mktemp("vllm") / "log", *_PROCESSED)
    vllm.start()
    yield vllm
    vllm.kill()


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return tiny.two(tmp_path_factory.mktemp("adapters"))


@pytest.fixture
async def server(vllm: Vllm) -> AsyncIterator[VllmServer]:
    async with started(VllmServer(VllmSettings(), parts(vllm.url))) as server:
        yield server


class TestTheContract(ServingContract):
    @pytest.fixture
    async def server(self, server: Server) -> Server:
        return server

    @pytest.fixture
    def adapters(self, two: tuple[Path, Path]) -> tuple[Path, Path]:
        return two


async def written(server: Server, version: int, temperature: float) -> Generated:
    request = GenerateRequest(
        messages=QUESTION, max_tokens=30, temperature=temperature, seed=5, version=version
    )
    answer = [piece async for piece in server.generate(request)][-1]
    assert isinstance(answer, Generated)
    return answer


def expect(answer: Generated, adapter: Path | None, temperature: float) -> None:
    assert list(answer.prompt_tokens) == prompt()
    assert answer.tokens
    expected = logprobs([*answer.prompt_tokens, *answer.tokens], adapter, temperature)
    first = len(answer.prompt_tokens) - 1
    chosen = [expected[first + at, token] for at, token in enumerate(answer.tokens)]
    assert np.abs(np.array(answer.logprobs) - chosen).max() < APART


@pytest.mark.parametrize("version", [BASE, 1])
async def test_its_logprobs_are_the_models_at_the_temperature_of_the_request(
    server: VllmServer, two: tuple[Path, Path], version: int
) -> None:
    assert server.follows_temperature
    await server.load(1, two[0])
    expect(await written(server, version, 0.7), two[0] if version else None, 0.7)


async def test_raw_logprobs_are_kept_at_temperature_one_only(tmp_path: Path) -> None:
    vllm_install.program()
    vllm = Vllm(tmp_path / "log")
    try:
        vllm.start()
        async with started(VllmServer(VllmSettings(), parts(vllm.url))) as server:
            assert not server.follows_temperature
            assert not (await written(server, BASE, 0.7)).logprobs
            expect(await written(server, BASE, 1.0), None, 1.0)
    finally:
        vllm.kill()


async def test_one_that_was_killed_and_started_again_gets_its_adapter_again(
    vllm: Vllm, server: VllmServer, two: tuple[Path, Path]
) -> None:
    await server.load(1, two[0])
    await server.activate(1)
    before = (await answered(server)).text
    vllm.kill()
    with pytest.raises(ServerError, match="does not answer: start it"):
        await answered(server)
    vllm.start()
    await server.start()
    assert await server.served() == BASE
    await server.reload(1, two[0])
    assert (await answered(server)).text == before


@pytest.mark.slow
def test_a_whole_goodbot_learns_on_it(vllm: Vllm, tmp_path: Path) -> None:
    from goodbot_training.tiny.judge import style_of

    def friendly() -> int:
        asked = [question.text for question in questions(2, 30)]
        return sum(style_of(answer) == "friendly" for answer in bot.ask(asked))

    bot = Bot(tmp_path / "home")
    bot.configure(tiny.model(), serving=f'server = "vllm"\nurl = "{vllm.url}"')
    try:
        bot.start()
        bot.teach([question.text for question in questions(1, RATINGS)])
        before = friendly()
        done = bot.call("train")
        assert "v1 answers now" in done.stdout, done.stdout + done.stderr
        assert friendly() >= before + 8
        status = bot.json("status")
        assert (status["version"], status["proof"]["verdict"]) == (1, "adapter")
        assert bot.stop() == 0
    finally:
        bot.stop(signal.SIGKILL)
    with urllib.request.urlopen(f"{vllm.url}/v1/models", timeout=patience(5)) as models:
        assert b"goodbot-v" not in models.read(), "it leaves nothing behind"
