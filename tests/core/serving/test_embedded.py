"""A sampler that hangs is noticed, ended and replaced; one that is only busy is left alone."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from goodbot.errors import ServerError
from goodbot.server import Generated, GenerateRequest
from goodbot.serving import embedded
from goodbot.serving.embedded import EmbeddedServer
from goodbot.training.child import child_environment

from tests.core.builders import SPEC, Fake


@pytest.fixture
def fake(tmp_path: Path) -> Fake:
    return Fake(tmp_path / "fake")


@pytest.fixture
async def server(fake: Fake, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[EmbeddedServer]:
    monkeypatch.setattr(embedded, "_SILENT_SECONDS", 0.6)
    server = EmbeddedServer(SPEC, fake.path, environ=child_environment())
    await server.start()
    yield server
    await server.stop()


def freeze(server: EmbeddedServer) -> None:
    assert server._process is not None
    os.kill(server._process.pid, signal.SIGSTOP)


async def ask(server: EmbeddedServer, text: str) -> str:
    request = GenerateRequest(
        messages=[{"role": "user", "content": text}], max_tokens=8, temperature=1.0, seed=0
    )
    whole = [piece async for piece in server.generate(request) if isinstance(piece, Generated)]
    return whole[0].text


async def test_a_hanging_sampler_is_ended_and_comes_back(server: EmbeddedServer) -> None:
    assert await ask(server, "Hello?") == "v0 says: Hello?"
    freeze(server)
    began = time.monotonic()
    with pytest.raises(ServerError, match="said nothing for 1 s and was ended"):
        await ask(server, "Hello?")
    assert time.monotonic() - began < 5
    assert not server.healthy()
    await server.start()
    assert await ask(server, "Hello?") == "v0 says: Hello?"


async def test_everybody_who_waits_is_told(server: EmbeddedServer) -> None:
    freeze(server)
    asked = [asyncio.create_task(ask(server, f"{number}?")) for number in range(5)]
    with pytest.raises(ServerError, match="was ended"):
        await server.served()
    ends = await asyncio.gather(*asked, return_exceptions=True)
    assert all(isinstance(end, ServerError) for end in ends)


async def test_a_question_too_large_for_the_pipe_of_a_hanging_sampler(
    server: EmbeddedServer,
) -> None:
    freeze(server)
    with pytest.raises(ServerError, match=r"hangs|was ended"):
        await ask(server, "x" * 2_000_000)
    assert not server.healthy()


async def test_an_idle_sampler_is_not_a_hanging_one(server: EmbeddedServer) -> None:
    await asyncio.sleep(0.9)  # longer than it may be silent while somebody waits
    assert await ask(server, "Hello?") == "v0 says: Hello?"
    await asyncio.sleep(0.9)
    assert await server.served() == 0


async def test_who_waits_behind_a_long_answer_waits_on(server: EmbeddedServer, fake: Fake) -> None:
    """It speaks to somebody else all the time; the sampler does one thing after the other."""
    fake.set(generate="slow")
    talking = asyncio.create_task(ask(server, "word " * 30))
    await asyncio.sleep(0.05)
    assert await server.served() == 0
    assert (await talking).startswith("v0 says: word")


async def test_ending_a_hanging_sampler_takes_no_longer_than_it_must(
    server: EmbeddedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embedded, "_STOP_SECONDS", 0.2)
    freeze(server)
    began = time.monotonic()
    await server.stop()
    assert time.monotonic() - began < 3
