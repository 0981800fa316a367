# SPDX-License-Identifier: Apache-2.0
"""What all drivers of remote servers share: health, drain, what the server forgot, and how it ends."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from goodbot.api.server import BASE
from goodbot.base.errors import ServerError
from goodbot.inference.servers import remote
from goodbot.inference.servers.heartbeat import SECONDS
from goodbot.inference.servers.plugin import VllmSettings
from goodbot.inference.servers.vllm import VllmServer
from goodbot.testing import VirtualClock
from goodbot.testing.serving_base import Answering, answered, asking
from goodbot_fakes.vllm import FakeVllm

from tests.core.inference.servers import tiny
from tests.core.inference.servers.remote import parts, started, until
from tests.support import patience


@pytest.fixture
async def vllm() -> AsyncIterator[FakeVllm]:
    async with FakeVllm(delay=0.002) as server:
        yield server  # type: ignore[misc]


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock(waits=True)


@pytest.fixture
async def server(vllm: FakeVllm, clock: VirtualClock) -> AsyncIterator[VllmServer]:
    async with started(VllmServer(VllmSettings(), parts(vllm.url, clock=clock))) as server:
        yield server


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return tiny.two(tmp_path_factory.mktemp("adapters"))


async def heartbeat(clock: VirtualClock) -> None:
    """Let the time of one check pass, and the check take place."""
    before = len(clock.slept)
    await until(lambda: bool(clock._sleepers))
    clock.advance(SECONDS)
    await until(lambda: len(clock.slept) > before)


async def test_who_is_not_there_at_the_start_is_told(vllm: FakeVllm) -> None:
    await vllm.down()
    server = VllmServer(VllmSettings(), parts(vllm.url))
    with pytest.raises(ServerError, match="start it, or set"):
        await server.start()
    assert not server.healthy()
    assert "does not answer" in server.trouble()
    with pytest.raises(ServerError, match="does not answer"):
        await answered(server)
    await vllm.up()
    async with started(server):
        assert server.healthy()
        assert server.trouble() == ""


async def test_a_check_finds_out_that_it_went_and_that_it_is_back(
    server: VllmServer, vllm: FakeVllm, clock: VirtualClock
) -> None:
    await heartbeat(clock)
    assert server.healthy()
    await vllm.down()
    await heartbeat(clock)
    assert not server.healthy()
    assert "does not answer: start it" in server.trouble()
    await vllm.up()
    await heartbeat(clock)
    assert server.healthy()
    assert server.trouble() == ""


async def test_what_is_wrong_stays_said_until_it_is_put_right(
    server: VllmServer, vllm: FakeVllm, clock: VirtualClock
) -> None:
    await vllm.down()
    with pytest.raises(ServerError):
        await server.start()

    def told() -> bool:
        clock.advance(SECONDS)
        return "does not answer: start it" in server.trouble()

    await until(told)
    await vllm.up()
    await server.start()
    await heartbeat(clock)
    assert server.healthy()
    assert server.trouble() == ""


async def test_one_failed_check_is_no_illness(
    server: VllmServer, vllm: FakeVllm, clock: VirtualClock
) -> None:
    vllm.faults.fails = True
    await heartbeat(clock)
    assert server.healthy()
    await heartbeat(clock)
    assert not server.healthy()
    assert "status 503" in server.trouble()


async def test_a_failed_answer_is_noticed_at_once(server: VllmServer, vllm: FakeVllm) -> None:
    await vllm.down()
    with pytest.raises(ServerError):
        await answered(server)
    assert not server.healthy()
    await vllm.up()
    await server.start()
    assert server.healthy()
    assert (await answered(server)).text


async def test_looking_again_keeps_what_is_still_there(server: VllmServer, two: tuple[Path, Path]) -> None:
    await server.load(1, two[0])
    await server.activate(1)
    await server.start()
    assert await server.served() == 1
    assert server.name_of(1) == "goodbot-v1"


async def test_looking_again_forgets_what_is_gone(
    server: VllmServer, vllm: FakeVllm, two: tuple[Path, Path]
) -> None:
    await server.load(1, two[0])
    await server.activate(1)
    await vllm.restart()
    await server.start()
    assert await server.served() == BASE


async def test_an_adapter_is_there_until_its_last_answer_is_written(
    server: VllmServer, vllm: FakeVllm, two: tuple[Path, Path]
) -> None:
    await server.load(1, two[0])
    async with Answering(server, asking(version=1)) as answer:
        await answer.begun()
        unloading = asyncio.create_task(server.unload(1))
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(asyncio.shield(unloading), 0.01)
        assert "goodbot-v1" in vllm.loaded
        await answer.rest()
    await unloading
    assert vllm.loaded == {}


async def test_an_answer_that_hangs_does_not_hold_a_version_for_ever(
    server: VllmServer, vllm: FakeVllm, two: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remote, "_DRAIN_SECONDS", 0.05)
    await server.load(1, two[0])
    vllm._delay = 5.0
    async with Answering(server, asking(version=1)) as answer:
        asked = asyncio.create_task(answer.begun())
        await until(lambda: vllm.answering == 1)
        await server.unload(1)
        assert vllm.loaded == {}
        asked.cancel()
        await asyncio.gather(asked, return_exceptions=True)


async def test_what_could_not_be_unloaded_is_tried_again(
    server: VllmServer, vllm: FakeVllm, clock: VirtualClock, two: tuple[Path, Path]
) -> None:
    await server.load(1, two[0])
    await vllm.down()
    with pytest.raises(ServerError):
        await server.unload(1)
    await vllm.up()
    assert "goodbot-v1" in vllm.loaded
    await heartbeat(clock)
    await until(lambda: "goodbot-v1" not in vllm.loaded)


async def test_a_version_that_is_put_right_leaves_its_old_name_behind(
    server: VllmServer, vllm: FakeVllm, two: tuple[Path, Path]
) -> None:
    """And the answer that is being written under the old one ends."""
    await server.load(1, two[0])
    await server.activate(1)
    expected = await answered(server)
    async with Answering(server, asking()) as answer:
        await answer.begun()
        await server.reload(1, two[0])
        assert "goodbot-v1" in vllm.loaded
        assert (await answer.rest()).text == expected.text
    await until(lambda: [*vllm.loaded] == ["goodbot-v1-2"])


async def test_a_version_can_be_loaded_while_it_is_being_unloaded(
    server: VllmServer, vllm: FakeVllm, two: tuple[Path, Path]
) -> None:
    await server.load(1, two[0])
    async with Answering(server, asking(version=1)) as answer:
        await answer.begun()
        unloading = asyncio.create_task(server.unload(1))
        await asyncio.sleep(0)
        await server.load(1, two[0])
        await answer.rest()
    await unloading
    assert [*vllm.loaded] == ["goodbot-v1-2"]
    assert (await answered(server, version=1)).version == 1


async def test_stopping_cuts_answers_off_and_leaves_the_server_running(
    server: VllmServer, vllm: FakeVllm, two: tuple[Path, Path]
) -> None:
    await server.load(1, two[0])
    async with Answering(server, asking(max_tokens=400)) as answer:
        await answer.begun()
        await server.stop()
        with pytest.raises(ServerError):
            await answer.rest()
    assert vllm.loaded == {}
    async with started(VllmServer(VllmSettings(), parts(vllm.url))) as another:
        assert (await answered(another)).text


async def test_stopping_does_not_wait_for_a_server_that_is_gone(
    server: VllmServer, vllm: FakeVllm, two: tuple[Path, Path]
) -> None:
    await server.load(1, two[0])
    await vllm.down()
    async with asyncio.timeout(patience(5)):
        await server.stop()
