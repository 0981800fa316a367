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
async def test_who_says_nothing_is_not_waited_for(
    begun: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listener, "IDLE_SECONDS", 0.1)
    async with calling(b"") as (reader, writer), asyncio.timeout(patience(20)):
        writer.write(begun)
        assert await reader.read() == b""


async def test_a_whole_body_is_taken() -> None:
    whole = UPLOAD.replace(b"99999", b"1")
    async with calling(whole) as (reader, _), asyncio.timeout(patience(20)):
        assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 200 ")
        assert await reader.readexactly(1) == b"1"
