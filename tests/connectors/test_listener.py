# SPDX-License-Identifier: Apache-2.0
"""Where platforms call us: whoever calls and says nothing holds nothing, and fills no log."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

import pytest
from aiohttp import web
from goodbot_connectors.kit import listener
from goodbot_connectors.kit.listener import Listener, whole

from tests.support import patience

UPLOAD = b"POST /in HTTP/1.1\r\nHost: bot.example\r\nContent-Length: 99999\r\n\r\nx"


@contextlib.asynccontextmanager
async def calling(begun: bytes) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """A call that has begun so, at a listener that wants all of it."""
    came = asyncio.Event()

    async def handle(request: web.Request) -> web.Response:
        came.set()
        return web.Response(text=str(len(await whole(request))))

    listening = Listener(handle, path="/in", host="127.0.0.1", port=0, setting="port")
    await listening.start()
    try:
        reader, writer = await asyncio.open_connection("127.0.0.1", listening.port)
        writer.write(begun)
        if begun:
            await came.wait()
        yield reader, writer
        writer.close()
    finally:
        await listening.stop()


async def test_a_body_that_never_comes_is_given_up(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(listener, "BODY_SECONDS", 0.1)
    async with calling(UPLOAD) as (reader, _), asyncio.timeout(patience(20)):
        assert (await reader.read()).startswith(b"HTTP/1.1 408 ")
    assert [record.getMessage() for record in caplog.records if record.exc_info] == []


async def test_who_goes_away_in_the_middle_fills_no_log(caplog: pytest.LogCaptureFixture) -> None:
    async with calling(UPLOAD):
        pass
    assert [record.getMessage() for record in caplog.records if record.exc_info] == []


@pytest.mark.parametrize("begun", [b"", b"POST /in HT"])
async def test_who_says_nothing_is_not_waited_for(begun: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listener, "IDLE_SECONDS", 0.1)
    async with calling(b"") as (reader, writer), asyncio.timeout(patience(20)):
        writer.write(begun)
        assert await reader.read() == b""


@pytest.mark.parametrize("begun", [b"", UPLOAD], ids=["silent", "half sent"])
async def test_b4_s4_a_crowd_that_asks_nothing_takes_no_more_than_its_places(
    begun: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A call is answered beside them, and one that is being answered keeps its place."""
    monkeypatch.setattr(listener, "CONNECTIONS", 8)
    asked, go = asyncio.Event(), asyncio.Event()

    async def handle(request: web.Request) -> web.Response:
        asked.set()
        await go.wait()
        return web.Response(text=str(len(await whole(request))))

    listening = Listener(handle, path="/in", host="127.0.0.1", port=0, setting="port")
    await listening.start()
    call = UPLOAD.replace(b"99999", b"1")
    try:
        async with asyncio.timeout(patience(60)):
            first, writer = await asyncio.open_connection("127.0.0.1", listening.port)
            writer.write(call)
            await asked.wait()
            crowd: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []
            for _ in range(100):
                crowd.append(await asyncio.open_connection("127.0.0.1", listening.port))
                if begun:
                    asked.clear()
                    crowd[-1][1].write(begun)
                    await asked.wait()
            go.set()
            assert (await first.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 200 ")
            beside, also = await asyncio.open_connection("127.0.0.1", listening.port)
            also.write(call)
            assert (await beside.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 200 ")
            ended = 0
            for reader, _ in crowd[: 100 - 8]:  # the oldest of those who say nothing
                with contextlib.suppress(ConnectionError):
                    assert await reader.read() == b""
                ended += 1
            assert ended == 92
        for _, one in (*crowd, (first, writer), (beside, also)):
            one.close()
    finally:
        await listening.stop()


async def test_a_whole_body_is_taken() -> None:
    whole = UPLOAD.replace(b"99999", b"1")
    async with calling(whole) as (reader, _), asyncio.timeout(patience(20)):
        assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 200 ")
        assert await reader.readexactly(1) == b"1"
