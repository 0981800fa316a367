# SPDX-License-Identifier: Apache-2.0
"""Where platforms call us: whoever calls and says nothing holds nothing, and fills no log."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from aiohttp import web
from goodbot.base import connection, descriptors
from goodbot.base import crowd as crowds
from goodbot.base.busy import TurnedAway
from goodbot_connectors.kit import listener
from goodbot_connectors.kit.listener import Listener

from tests.core.builders import open_bot, until
from tests.support import patience

UPLOAD = b"POST /in HTTP/1.1\r\nHost: bot.example\r\nContent-Length: 99999\r\n\r\nx"


def crowd_of(listening: Listener) -> crowds.Crowd:
    assert listening._crowd is not None
    return listening._crowd


@contextlib.asynccontextmanager
async def calling(begun: bytes) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """A call that has begun so, at a listener that wants all of it."""
    came = asyncio.Event()

    async def handle(request: web.Request) -> web.Response:
        came.set()
        return web.Response(text=str(len(await request.read())))

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
    monkeypatch.setattr(connection, "BODY_SECONDS", 0.1)
    async with calling(UPLOAD) as (reader, _), asyncio.timeout(patience(20)):
        assert (await reader.read()).startswith(b"HTTP/1.1 408 ")
    assert [record.getMessage() for record in caplog.records if record.exc_info] == []


async def test_who_goes_away_in_the_middle_fills_no_log(caplog: pytest.LogCaptureFixture) -> None:
    async with calling(UPLOAD):
        pass
    assert [record.getMessage() for record in caplog.records if record.exc_info] == []


@pytest.mark.parametrize("begun", [b"", b"POST /in HT"])
async def test_who_says_nothing_is_not_waited_for(begun: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "HEAD_SECONDS", 0.1)
    async with calling(b"") as (reader, writer), asyncio.timeout(patience(20)):
        writer.write(begun)
        assert await reader.read() == b""


@pytest.mark.parametrize(("lines", "status"), [(7, b"200"), (9, b"431")])
async def test_t17_a_head_has_a_limit_for_all_of_its_lines(lines: int, status: bytes) -> None:
    wide = b"".join(b"X-%d: %s\r\n" % (number, b"a" * 2000) for number in range(lines))
    head = b"POST /in HTTP/1.1\r\nHost: bot.example\r\nContent-Length: 0\r\nConnection: close\r\n" + wide
    async with calling(b"") as (reader, writer), asyncio.timeout(patience(20)):
        writer.write(head + b"\r\n")
        assert (await reader.read()).startswith(b"HTTP/1.1 " + status)


async def test_no_descriptor_stays_where_the_second_address_cannot_be_taken(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made: list[socket.socket] = []

    class Server(socket.socket):
        def dup(self) -> socket.socket:
            if made:
                raise OSError(24, "too many open files")
            made.append(super().dup())
            return made[0]

    class Two:
        sockets = (Server(), Server())

        def close(self) -> None:
            for one in self.sockets:
                one.close()

    async def two(*_: object, **__: object) -> Two:
        return Two()

    monkeypatch.setattr(asyncio.get_running_loop(), "create_server", two)
    with pytest.raises(OSError, match="too many"):
        await descriptors.bound("localhost", 0)
    assert made[0].fileno() == -1


ZIPPED = UPLOAD.replace(b"Host", b"Content-Encoding: gzip\r\nHost")[:-1]


@pytest.mark.parametrize(("begun", "then"), [(b"", b"no HTTP\r\n\r\n"), (ZIPPED, b"not zipped")])
async def test_what_is_no_http_is_told_so_in_few_words_and_fills_no_log(
    begun: bytes, then: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    """It was answered with the versions that run here, and each time a trace was written."""
    async with calling(begun) as (reader, writer), asyncio.timeout(patience(20)):
        writer.write(then)
        said = await reader.read()
    assert said.split(b" ")[1] == b"400"
    assert b"aiohttp" not in said
    assert [record.getMessage() for record in caplog.records if record.exc_info] == []


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
        return web.Response(text=str(len(await request.read())))

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


async def test_s4_who_finds_no_room_is_told_to_come_again_and_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All places are taken by calls that are being answered; those who were told so hold nothing for long."""
    monkeypatch.setattr(listener, "CONNECTIONS", 2)
    asked, go, before = asyncio.Semaphore(0), asyncio.Event(), TurnedAway.total

    async def handle(request: web.Request) -> web.Response:
        await request.read()
        asked.release()
        await go.wait()
        return web.Response()

    listening = Listener(handle, path="/in", host="127.0.0.1", port=0, setting="port")
    await listening.start()
    call = UPLOAD.replace(b"99999", b"1")
    try:
        async with asyncio.timeout(patience(60)):
            taken = [await asyncio.open_connection("127.0.0.1", listening.port) for _ in "12"]
            for _, writer in taken:
                writer.write(call)
                await asked.acquire()
            for _ in range(8):
                reader, writer = await asyncio.open_connection("127.0.0.1", listening.port)
                writer.write(call)
                said = await reader.read()
                writer.close()
                assert said.startswith(b"HTTP/1.1 503 "), said
                assert b"\r\nRetry-After: 1\r\n" in said
            deaf = [await asyncio.open_connection("127.0.0.1", listening.port) for _ in range(5)]
            for reader, _ in deaf:  # these do not hang up, and are hung up on
                with contextlib.suppress(ConnectionError):
                    await reader.read()
            assert len(crowd_of(listening).open) == 2
            go.set()
            for reader, _ in taken:
                assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 200 ")
        assert TurnedAway.total == before + 13
        for _, writer in (*taken, *deaf):
            writer.close()
    finally:
        await listening.stop()
    async with open_bot(tmp_path) as bot:
        assert f"{TurnedAway.total} calls by HTTP found no room" in (await bot.command("status"))


async def test_s4_who_does_not_take_an_answer_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "TAKING_SECONDS", patience(0.5))

    async def handle(request: web.Request) -> web.Response:
        await request.read()
        return web.Response(body=bytes(100_000))

    listening = Listener(handle, path="/in", host="127.0.0.1", port=0, setting="port")
    await listening.start()
    deaf = socket.socket()
    deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1024)
    deaf.setblocking(False)
    try:
        async with asyncio.timeout(patience(60)):
            loop = asyncio.get_running_loop()
            await loop.sock_connect(deaf, ("127.0.0.1", listening.port))
            await loop.sock_sendall(deaf, UPLOAD.replace(b"99999", b"1") * 100)
            await until(lambda: len(crowd_of(listening).open) == 1)
            await until(lambda: not crowd_of(listening).open)
    finally:
        deaf.close()
        await listening.stop()
