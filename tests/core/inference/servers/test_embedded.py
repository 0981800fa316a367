# SPDX-License-Identifier: Apache-2.0
"""A sampler that hangs is noticed, ended and replaced; one that is only busy is left alone."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from goodbot.api.server import Generated, GenerateRequest
from goodbot.base import spawn
from goodbot.base.errors import AdapterError, ServerError
from goodbot.base.thoughts import Thought
from goodbot.inference.servers import embedded, sampler_process
from goodbot.inference.servers.embedded import EmbeddedServer

from tests.core import fake_worker
from tests.core.builders import SPEC, Fake, server_parts, until
from tests.support import patience


@pytest.fixture
def fake(tmp_path: Path) -> Fake:
    return Fake(tmp_path / "fake")


@pytest.fixture
async def server(fake: Fake, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[EmbeddedServer]:
    monkeypatch.setattr(sampler_process, "_SILENT_SECONDS", patience(0.6))
    server = EmbeddedServer(None, server_parts(SPEC, fake.path))
    await server.start()
    yield server
    await server.stop()


def freeze(server: EmbeddedServer) -> None:
    process = server._sampler._process
    assert process is not None
    os.kill(process.pid, signal.SIGSTOP)


def adapter(directory: Path) -> Path:
    directory.mkdir()
    (directory / "adapter_model.safetensors").write_bytes(fake_worker.safetensors())
    return directory


async def ask(server: EmbeddedServer, text: str, version: int | None = None) -> str:
    asked = [{"role": "user", "content": text}]
    request = GenerateRequest(messages=asked, max_tokens=8, temperature=1.0, seed=0, version=version)
    whole = [piece async for piece in server.generate(request) if isinstance(piece, Generated)]
    return whole[0].text


async def test_a_sampler_that_does_not_come_up_in_time_is_told_so(
    fake: Fake, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sampler_process, "_START_SECONDS", 0.0)
    server = EmbeddedServer(None, server_parts(SPEC, fake.path))
    with pytest.raises(ServerError, match=r"did not come up \(it took too long\)"):
        await server.start()
    await server.stop()


async def test_a_hanging_sampler_is_ended_and_comes_back(server: EmbeddedServer) -> None:
    assert await ask(server, "Hello?") == "v0 says: Hello?"
    freeze(server)
    with pytest.raises(ServerError, match=r"said nothing for \d+ s and was ended"):
        await ask(server, "Hello?")
    assert not server.healthy()
    await server.start()
    assert await ask(server, "Hello?") == "v0 says: Hello?"


async def test_one_that_hangs_amid_a_thought_is_ended(server: EmbeddedServer, fake: Fake) -> None:
    fake.set(generate="thinks")
    async with asyncio.timeout(patience(30)):
        with pytest.raises(ServerError, match="was ended"):
            await ask(server, "Hello?")


async def test_who_leaves_amid_a_thought_has_it_ended(
    server: EmbeddedServer, fake: Fake, tmp_path: Path
) -> None:
    await server.load(1, adapter(tmp_path / "1"))
    fake.set(generate="thinks")
    asked = [{"role": "user", "content": "Hello?"}]
    request = GenerateRequest(messages=asked, max_tokens=8, temperature=1.0, seed=0, version=1)
    async with contextlib.aclosing(server.generate(request)) as pieces:
        assert await anext(pieces) == Thought("Hm")
    await server.unload(1)  # which waits for what is being written


async def test_everybody_who_waits_is_told(server: EmbeddedServer) -> None:
    freeze(server)
    asked = [asyncio.create_task(ask(server, f"{number}?")) for number in range(5)]
    with pytest.raises(ServerError, match="was ended"):
        await server.served()
    ends = await asyncio.gather(*asked, return_exceptions=True)
    assert all(isinstance(end, ServerError) for end in ends)


async def test_a_question_too_large_for_the_pipe_of_a_hanging_sampler(server: EmbeddedServer) -> None:
    freeze(server)
    with pytest.raises(ServerError, match=r"hangs|was ended"):
        await ask(server, "x" * 2_000_000)
    assert not server.healthy()


async def test_an_idle_sampler_is_not_a_hanging_one(server: EmbeddedServer) -> None:
    longer = 1.5 * sampler_process._SILENT_SECONDS
    await asyncio.sleep(longer)  # longer than it may be silent while somebody waits
    assert await ask(server, "Hello?") == "v0 says: Hello?"
    await asyncio.sleep(longer)
    assert await server.served() == 0


async def test_who_waits_behind_a_long_answer_waits_on(server: EmbeddedServer, fake: Fake) -> None:
    """It speaks to somebody else all the time."""
    fake.set(generate="slow")
    talking = asyncio.create_task(ask(server, "word " * 30))
    await until(lambda: server._writing)
    assert await server.served() == 0
    assert (await talking).startswith("v0 says: word")


async def test_answers_are_written_side_by_side(server: EmbeddedServer, fake: Fake) -> None:
    fake.set(generate="slow")
    writing = most = 0

    async def written() -> str:
        nonlocal writing, most
        whole, begun = "", False
        request = GenerateRequest(
            messages=[{"role": "user", "content": "word " * 40}], max_tokens=8, temperature=1.0, seed=0
        )
        async for piece in server.generate(request):
            if not begun:
                begun, writing = True, writing + 1
                most = max(most, writing)
            if isinstance(piece, Generated):
                whole, writing = piece.text, writing - 1
        return whole

    answers = await asyncio.gather(*(written() for _ in range(10)))
    assert all(answer.startswith("v0 says: word") for answer in answers)
    assert most > 1, "one after the other, one at most is begun and not ended"


async def test_after_making_room_it_serves_what_it_served(
    server: EmbeddedServer, fake: Fake, tmp_path: Path
) -> None:
    """Who was being answered is; who asks meanwhile waits; what was loaded is loaded again."""
    for version in (1, 2):
        await server.load(version, adapter(tmp_path / str(version)))
    await server.activate(2)
    fake.set(generate="slow")
    written = asyncio.create_task(ask(server, "word " * 10))
    await until(lambda: server._writing)
    assert await server.make_room()
    assert written.done()
    assert (await written).startswith("v2 says: word")
    assert not server._sampler.alive()
    assert server.healthy()
    assert await server.served() == 2
    assert await server.first_tokens([{"role": "user", "content": "?"}], version=2, top=5) == {}
    with pytest.raises(ServerError, match="try again"):
        await server.load(3, adapter(tmp_path / "3"))
    await server.activate(1)
    await server.unload(2)
    waiting = asyncio.create_task(ask(server, "Hello?"))
    await asyncio.sleep(0.1)
    assert not waiting.done()
    await server.come_back()
    assert (await waiting).startswith("v1 says: Hello?")
    with pytest.raises(AdapterError):
        await server.activate(2)


async def test_an_answer_without_an_end_does_not_keep_everybody_waiting(
    server: EmbeddedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embedded, "_ROOM_SECONDS", 0.05)
    with server._counted():
        async with asyncio.timeout(patience(30)):
            assert not await server.make_room()
        assert await ask(server, "Hello?") == "v0 says: Hello?"
        assert server.healthy()


async def test_a_version_whose_files_went_away_meanwhile_is_not_served(
    server: EmbeddedServer, tmp_path: Path
) -> None:
    directory = adapter(tmp_path / "1")
    await server.load(1, directory)
    await server.activate(1)
    await server.make_room()
    (directory / "adapter_model.safetensors").unlink()
    await server.come_back()
    assert await server.served() == 0
    assert await ask(server, "Hello?") == "v0 says: Hello?"


async def test_one_that_cannot_be_loaded_anew_stays_as_it_was(server: EmbeddedServer, tmp_path: Path) -> None:
    good = adapter(tmp_path / "1")
    await server.load(1, good)
    await server.activate(1)
    (tmp_path / "torn").mkdir()
    with pytest.raises(AdapterError):
        await server.reload(1, tmp_path / "torn")
    assert await ask(server, "Hello?") == "v1 says: Hello?"
    assert await server.make_room()
    await server.come_back()  # it knows what to load
    assert await ask(server, "Hello?") == "v1 says: Hello?"
    await server.reload(1, good)
    assert await server.served() == 1


async def test_what_the_child_turns_out_not_to_have_is_loaded_again(
    server: EmbeddedServer, fake: Fake, tmp_path: Path
) -> None:
    """It reads what it has dropped from memory by itself; if it cannot, it must get it anew."""
    directory = adapter(tmp_path / "1")
    await server.load(1, directory)
    fake.forget()
    with pytest.raises(AdapterError, match="not loaded"):
        await ask(server, "Hello?", 1)
    await server.load(1, directory)
    assert await ask(server, "Hello?", 1) == "v1 says: Hello?"


async def test_after_making_room_nobody_waits_for_versions_that_nobody_asks_for(
    server: EmbeddedServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for version in (1, 2, 3):
        await server.load(version, adapter(tmp_path / str(version)))
    await server.activate(2)
    assert await server.make_room()
    call, read = server._sampler.call, list[int]()

    async def called(op: str, **fields: Any) -> Any:
        if op == "load" and not fields["later"]:
            read.append(fields["version"])
        return await call(op, **fields)

    monkeypatch.setattr(server._sampler, "call", called)
    await server.come_back()
    assert read == [2]
    assert await ask(server, "Hello?", 3) == "v3 says: Hello?"


async def test_who_waits_for_one_that_is_stopped_is_told(server: EmbeddedServer) -> None:
    await server.make_room()
    waiting = asyncio.create_task(ask(server, "Hello?"))
    await asyncio.sleep(0.05)
    await server.stop()
    with pytest.raises(ServerError, match="not running"):
        await waiting


async def test_ending_a_hanging_sampler_takes_no_longer_than_it_must(
    server: EmbeddedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sampler_process, "_STOP_SECONDS", 0.2)
    freeze(server)
    async with asyncio.timeout(patience(3)):
        await server.stop()


@pytest.mark.parametrize(
    ("number", "helps"), [(errno.ENOMEM, "close other programs"), (errno.ENOSPC, "make room on the disk")]
)
async def test_a_machine_that_starts_no_sampler_is_told_in_a_sentence_and_tried_again(
    server: EmbeddedServer, monkeypatch: pytest.MonkeyPatch, number: int, helps: str
) -> None:
    async def start(*_: object, **__: object) -> None:
        raise OSError(number, os.strerror(number))

    assert await server.make_room()
    with monkeypatch.context() as full:
        full.setattr(spawn, "start", start)
        for again in (server.come_back, server.start):
            with pytest.raises(ServerError, match=f"{os.strerror(number)}.*{helps}"):
                await again()
            assert not server.healthy()
            with pytest.raises(ServerError, match="not running"):  # nobody waits for it
                await ask(server, "Hello?")
    await server.start()
    assert await ask(server, "Hello?") == "v0 says: Hello?"
