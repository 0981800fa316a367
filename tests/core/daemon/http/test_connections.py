# SPDX-License-Identifier: Apache-2.0
"""What a crowd of connections may do to one another, and that none is left behind: T19."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import gc
import inspect
import math
import socket
import threading
import time
import warnings
from collections.abc import AsyncIterator, Callable, Generator
from pathlib import Path

import pytest
from aiohttp import web
from goodbot.base import connection
from goodbot.base import crowd as crowds
from goodbot.base.busy import TurnedAway
from goodbot.config import HttpConfig
from goodbot.daemon.http import server as web_server
from goodbot.daemon.http.http import starting
from goodbot.daemon.http.routes import application
from goodbot.daemon.http.server import HttpServer

from tests.core.builders import until
from tests.core.daemon.http.asking import get, raw
from tests.support import patience

PAGE = b"GET /page HTTP/1.1\r\nHost: localhost\r\n\r\n"


@pytest.fixture(autouse=True)
def nobody_was_turned_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(TurnedAway, "total", 0)


async def page(request: web.Request) -> web.Response:
    return web.Response(text="a page")


async def size(request: web.Request) -> web.Response:
    return web.Response(text=str(len(await request.read())))


async def never(request: web.Request) -> web.Response:
    await asyncio.Event().wait()
    return web.Response()


@contextlib.asynccontextmanager
async def listening(*more: web.RouteDef) -> AsyncIterator[HttpServer]:
    server = HttpServer(HttpConfig(), starting)
    await server.start(0)
    routes = [web.get("/page", page), web.post("/size", size), web.get("/never", never), *more]
    await server.mount(application({"web": routes}, lambda _: True))
    all_of_them = crowd(server)
    try:
        yield server
    finally:
        await server.stop()
        assert not all_of_them.open


def crowd(server: HttpServer) -> crowds.Crowd:
    return server._crowds[0]


class Caller:
    """One connection, and what it hears."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    @classmethod
    async def call(cls, server: HttpServer, begun: bytes = b"") -> Caller:
        caller = cls(*await asyncio.open_connection("127.0.0.1", server.port))
        caller.say(begun)
        return caller

    def say(self, data: bytes) -> None:
        self._writer.write(data)

    async def asks(self) -> str:
        self.say(PAGE)
        return (await self.hears())[0]

    async def hears(self) -> tuple[str, str]:
        """Status and text of what comes next."""
        head = (await self._reader.readuntil(b"\r\n\r\n")).decode()
        length = int(head.partition("Content-Length: ")[2].partition("\r")[0])
        return head.split(" ")[1], (await self._reader.readexactly(length)).decode()

    async def ended(self) -> bool:
        """Whether it is closed, by now or soon."""
        with contextlib.suppress(ConnectionError):
            async with asyncio.timeout(patience(20)):
                return await self._reader.read(1) == b""
        return True

    def open(self) -> bool:
        return not self._reader.at_eof()

    def close(self) -> None:
        self._writer.close()


async def test_a_thousand_who_say_nothing_keep_nobody_out() -> None:
    """Each of them takes the place of another one of them."""
    async with listening() as server:
        owner = await Caller.call(server)
        assert await owner.asks() == "200"
        silent = [
            await Caller.call(server, b"" if n % 2 else b"POST /size HTTP/1.1\r\nHost: loc")
            for n in range(1000)
        ]
        await until(lambda: len(crowd(server).open) <= web_server.CONNECTIONS, 20)
        assert await owner.asks() == "200", "whoever has been heard stays"
        for _ in range(20):
            assert await get(server.port, "/page") == (200, "a page")
        assert await silent[0].ended(), "the oldest have gone"
        assert silent[-1].open()
        owner.close()
        for one in silent:
            one.close()


async def test_one_that_ends_with_an_error_keeps_no_place(monkeypatch: pytest.MonkeyPatch) -> None:
    real, errors = web.RequestHandler.connection_lost, list[BaseException]()

    def ends(self: web.RequestHandler, exc: BaseException | None) -> None:
        real(self, exc)
        raise RuntimeError("aiohttp is at odds with itself")

    monkeypatch.setattr(web.RequestHandler, "connection_lost", ends)
    asyncio.get_running_loop().set_exception_handler(lambda _, told: errors.append(told["exception"]))
    async with listening() as server:
        caller = await Caller.call(server)
        assert await caller.asks() == "200"
        caller.close()
        await until(lambda: not crowd(server).open)
    assert [str(one) for one in errors] == ["aiohttp is at odds with itself"]


async def test_a_crowd_that_comes_at_once_and_asks_is_answered() -> None:
    """All of them are taken from the kernel in one turn of the loop, before the first is read."""
    async with listening() as server:
        asking = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(300)]
        for one in asking:
            one.sendall(PAGE)
            one.settimeout(patience(20))
        said = [await asyncio.to_thread(one.recv, 1 << 16) for one in asking]
        assert {answer.split(b" ")[1] for answer in said} == {b"200"}
        for one in asking:
            one.close()


async def test_those_who_wait_between_two_requests_make_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(web_server, "CONNECTIONS", 4)
    async with listening() as server:
        callers = [await Caller.call(server) for _ in range(4)]
        for one in (*callers, callers[0]):
            assert await one.asks() == "200"
        newcomer = await Caller.call(server)
        assert await newcomer.asks() == "200"
        assert await callers[1].ended(), "it has been silent for the longest time"
        for one in (callers[0], callers[2], callers[3]):
            assert await one.asks() == "200"
        for one in (*callers, newcomer):
            one.close()


async def test_then_those_that_do_not_send_their_body_and_nobody_who_is_answered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(web_server, "CONNECTIONS", 3)
    async with listening() as server:
        busy = [await Caller.call(server, PAGE.replace(b"page", b"never")) for _ in range(2)]
        begun = b"POST /size HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\nx"
        slow = await Caller.call(server, begun)
        await until(lambda: sum(one.is_half_sent() for one in crowd(server).open) == 1)
        await until(lambda: not any(one.is_silent() for one in crowd(server).open))
        newcomer = await Caller.call(server)
        assert await slow.ended()
        assert await newcomer.asks() == "200"
        newcomer.say(PAGE.replace(b"page", b"never"))
        await until(lambda: {one.rank(0.0) for one in crowd(server).open} == {None})
        for count in (1, 2, 3):
            late = await Caller.call(server, PAGE)
            assert (await late.hears())[0] == "503", "all places are taken by who is being answered"
            assert await late.ended()
            assert TurnedAway.total == count
            assert sum(not one.dropped for one in crowd(server).open) <= 4
            late.close()
        for one in (*busy, slow, newcomer):
            one.close()


@pytest.mark.parametrize("asked_before", [False, True])
async def test_a_head_has_its_time_in_all_however_busily_it_trickles(
    asked_before: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "HEAD_SECONDS", patience(0.3))
    async with listening() as server:
        caller = await Caller.call(server)
        if asked_before:
            assert await caller.asks() == "200"

        async def trickle() -> None:
            with contextlib.suppress(ConnectionError):
                for byte in b"GET /page HTTP/1.1\r\nX: " + b"a" * 4000:
                    caller.say(bytes([byte]))
                    await asyncio.sleep(0.01)

        trickling = asyncio.create_task(trickle())
        assert await caller.ended()
        trickling.cancel()
        await asyncio.gather(trickling, return_exceptions=True)
        caller.close()


@pytest.mark.parametrize("asked_before", [False, True])
async def test_a_head_that_grows_and_grows_is_not_kept(
    asked_before: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """T17: 128 headers of 8 KiB each would be two MiB of memory for everybody who begins to ask."""
    monkeypatch.setattr(connection, "HEAD_SECONDS", patience(60))
    monkeypatch.setattr(crowds, "IDLE_SECONDS", patience(60))
    async with listening() as server:
        caller = await Caller.call(server)
        if asked_before:
            assert await caller.asks() == "200"

        async def begin(lines: int) -> None:
            caller.say(PAGE[:-2])
            for n in range(lines):
                caller.say(b"X-%d: %s\r\n" % (n, b"a" * 2000))
                await asyncio.sleep(0.01)

        for _ in range(2):
            await begin(7)
            caller.say(b"\r\n")
            assert await caller.hears() == ("200", "a page"), "each head counts for itself"
        await begin(9)
        assert await caller.ended()
        caller.close()


async def test_a_body_is_no_head_however_slowly_it_comes() -> None:
    async with listening() as server:
        caller = await Caller.call(server)
        for _ in range(2):
            caller.say(b"POST /size HTTP/1.1\r\nHost: localhost\r\nContent-Length: 65536\r\n\r\n")
            for _ in range(16):
                caller.say(b"x" * 4096)
                await asyncio.sleep(0.005)
            assert await caller.hears() == ("200", "65536")
        caller.close()


async def test_while_we_were_busy_elsewhere_nobody_was_late(monkeypatch: pytest.MonkeyPatch) -> None:
    """What they have sent lies in the kernel, or they wait for a sign of ours."""
    monkeypatch.setattr(connection, "HEAD_SECONDS", limit := patience(0.5))
    monkeypatch.setattr(connection, "BODY_SECONDS", limit)
    async with listening() as server:
        head, body = await Caller.call(server, PAGE[:10]), await Caller.call(server)
        body.say(b"POST /size HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\nx")
        await until(lambda: sum(one.is_half_sent() for one in crowd(server).open) == 1)
        asyncio.get_running_loop().call_soon(time.sleep, 3 * limit)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        head.say(PAGE[10:])
        body.say(b"y")
        assert (await head.hears())[0] == "200"
        assert await body.hears() == ("200", "2")
        for one in (head, body):
            one.close()


async def test_who_waits_between_two_requests_may_take_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "HEAD_SECONDS", limit := patience(0.3))
    async with listening() as server:
        caller = await Caller.call(server, PAGE[:10])
        caller.say(PAGE[10:])
        assert await caller.asks() == "200"
        await asyncio.sleep(2 * limit)
        assert await caller.asks() == "200"
        caller.close()


async def test_what_has_come_in_time_is_not_cut_off_after_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """A live line, or an answer that is long under way, has no body that it could be late with."""
    limit = patience(0.3)
    monkeypatch.setattr(connection, "HEAD_SECONDS", limit)
    monkeypatch.setattr(connection, "BODY_SECONDS", limit)

    async def line(request: web.Request) -> web.WebSocketResponse:
        line = web.WebSocketResponse()
        await line.prepare(request)
        async for message in line:
            await line.send_str(message.data)
        return line

    async def stream(request: web.Request) -> web.StreamResponse:
        length = len(await request.read())
        response = web.StreamResponse()
        await response.prepare(request)
        for _ in range(4):
            await asyncio.sleep(limit)
            await response.write(b"%d " % length)
        return response

    import aiohttp

    async with (
        listening(web.get("/line", line), web.post("/stream", stream)) as server,
        aiohttp.ClientSession(f"http://127.0.0.1:{server.port}") as client,
    ):
        async with client.ws_connect("/line") as talk:
            await asyncio.sleep(2 * limit)
            await talk.send_str("still here")
            assert (await talk.receive_str()) == "still here"
        async with client.post("/stream", data=b"x" * 100_000) as response:
            assert await response.text() == "100000 " * 4


UPLOAD = b"POST /size HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999\r\n\r\nx"


async def test_a_body_that_never_comes_is_no_fault_of_ours(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Platforms' bodies are read before anybody knows who sent them: each wrote a trace to the log."""
    monkeypatch.setattr(connection, "BODY_SECONDS", patience(0.3))
    async with listening() as server:
        slow = await Caller.call(server, UPLOAD)
        assert (await slow.hears())[0] == "408"
        assert await slow.ended()
        slow.close()
        gone = await Caller.call(server, UPLOAD)
        await until(lambda: any(one.is_half_sent() for one in crowd(server).open))
        gone.close()
        await until(lambda: not crowd(server).open)
        await until(lambda: not crowd(server).waiting)
    assert [record.getMessage() for record in caplog.records if record.exc_info] == []


async def test_what_fails_here_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    async def fails(request: web.Request) -> web.Response:
        raise ConnectionResetError("a server of ours")

    async with listening(web.get("/fails", fails)) as server:
        assert (await get(server.port, "/fails"))[0] == 500
    [record] = [record for record in caplog.records if record.exc_info]
    assert record.getMessage() == "a request failed"


async def test_nothing_is_kept_of_a_body_whose_sender_has_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its first 128 KiB stayed in memory for ten seconds, of however many connections."""
    monkeypatch.setattr(connection, "BODY_SECONDS", limit := patience(0.5))
    late: list[object] = []
    monkeypatch.setattr(connection, "_give_up", late.append)
    async with listening() as server:
        gone = await Caller.call(server, UPLOAD)
        await until(lambda: any(one.is_half_sent() for one in crowd(server).open))
        gone.close()
        await until(lambda: not crowd(server).open)
        await asyncio.sleep(2 * limit)
    assert late == []


async def test_a_compressed_body_is_not_undone() -> None:
    async with listening() as server:
        body = bytes.fromhex("1f8b08000000000000ff")
        head = b"POST /size HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Encoding: gzip\r\n"
        status, _, said = await raw(server.port, head + b"Content-Length: 10\r\n\r\n" + body)
        assert (status, said) == (200, b"10")


# -- answers that nobody takes, and more than there is room for


LARGE = 64 << 20
"""More than the kernel keeps of it."""


async def flood(request: web.Request) -> web.Response:
    return web.Response(body=b"x" * LARGE)


FLOOD = PAGE.replace(b"page", b"flood")


async def test_s4_an_answer_of_which_nothing_is_taken_ends_its_connection(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """530 sockets whose answers nobody read kept everybody out for as long as they liked."""
    monkeypatch.setattr(connection, "TAKING_SECONDS", patience(0.5))
    ranks: list[int | None] = []
    drop = connection.Connection.drop

    def dropped(one: connection.Connection) -> None:
        ranks.append(one.rank(1e12))
        drop(one)

    monkeypatch.setattr(connection.Connection, "drop", dropped)
    async with listening(web.get("/flood", flood)) as server:
        with socket.create_connection(("127.0.0.1", server.port)) as deaf:
            deaf.sendall(FLOOD)
            await until(lambda: bool(ranks) and not crowd(server).open, 60)
            assert ranks == [3]


async def test_s4_who_takes_an_answer_slowly_gets_all_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """For longer than the limit in all, never for so long nothing."""
    monkeypatch.setattr(connection, "TAKING_SECONDS", limit := patience(2))
    async with listening(web.get("/flood", flood)) as server:
        caller = await Caller.call(server, FLOOD)
        head = await caller._reader.readuntil(b"\r\n\r\n")
        assert head.split(b" ")[1] == b"200"
        for _ in range(16):
            await asyncio.sleep(limit / 8)
            await caller._reader.readexactly(LARGE // 16)
        caller.close()


async def test_who_asks_again_before_an_answer_is_taken_gets_both(monkeypatch: pytest.MonkeyPatch) -> None:
    """HTTP/1.1 allows it. The second request lies there until then, and the first answer was cut off."""
    monkeypatch.setattr(connection, "HEAD_SECONDS", limit := patience(1))
    async with listening(web.get("/flood", flood)) as server:
        caller = await Caller.call(server, FLOOD)
        await caller._reader.readuntil(b"\r\n\r\n")
        caller.say(PAGE)
        for _ in range(16):
            await asyncio.sleep(limit / 8)
            await caller._reader.readexactly(LARGE // 16)
        assert await caller.hears() == ("200", "a page")
        caller.close()


async def test_s4_who_does_not_take_an_answer_makes_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(web_server, "CONNECTIONS", 2)
    monkeypatch.setattr(connection, "_SLOW_SECONDS", 0.0)
    async with listening(web.get("/flood", flood)) as server:
        deaf = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(2)]
        for one in deaf:
            one.sendall(FLOOD)
        await until(lambda: [one.rank(1e12) for one in crowd(server).open] == [3, 3], 20)
        assert await get(server.port, "/page") == (200, "a page")
        for one in deaf:
            one.close()


async def test_s4_the_unix_socket_has_places_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(web_server, "CONNECTIONS", 2)
    monkeypatch.setattr(web_server, "WAITING", 2)
    async with listening() as server:
        await server.listen_at(tmp_path / "http.sock")
        busy = [await Caller.call(server, PAGE.replace(b"page", b"never")) for _ in range(2)]
        await until(lambda: len(crowd(server).waiting) == 2)
        late = await Caller.call(server, PAGE)
        assert (await late.hears())[0] == "503"
        program = Caller(*await asyncio.open_unix_connection(tmp_path / "http.sock"))
        assert await program.asks() == "200"
        for one in (*busy, late, program):
            one.close()


async def test_b4_the_limit_holds_in_a_burst(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 4,000 that came at once 2,797 were open: each newcomer drove the same one out."""
    monkeypatch.setattr(web_server, "CONNECTIONS", 128)
    seen: list[int] = []
    async with listening() as server:
        everybody = crowd(server)
        enter = everybody.enter

        def counted(asks: bool) -> connection.Connection | None:
            newcomer = enter(asks)
            seen.append(len(everybody.open))
            return newcomer

        monkeypatch.setattr(everybody, "enter", counted)
        callers: list[socket.socket] = []
        with closed(callers):
            for n in range(400):
                callers.append(socket.create_connection(("127.0.0.1", server.port)))
                if n % 2:
                    callers[-1].sendall(PAGE)
            last = await Caller.call(server)
            assert await last.asks() == "200"
            last.close()
        assert len(seen) == 401
        most = 128 + crowds.HEALTH + crowds.CLOSING
        assert max(seen) <= most, "those that were driven out are closed in the next turns"


async def test_b6_what_there_is_no_room_for_is_told_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """At ten times what it can do, requests took 15 s, and nobody was told to come later."""
    monkeypatch.setattr(web_server, "WAITING", 3)

    async def stream(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(b"begun")
        await asyncio.Event().wait()
        return response

    free = asyncio.Event()

    async def waits(request: web.Request) -> web.Response:
        await free.wait()
        return web.Response(text="at last")

    async with listening(web.get("/stream", stream), web.get("/waits", waits)) as server:
        begun = [await Caller.call(server, PAGE.replace(b"page", b"stream")) for _ in range(5)]
        for one in begun:
            await one._reader.readuntil(b"begun")
        assert await get(server.port, "/page") == (200, "a page"), "those wait for nothing"
        waiting = [await Caller.call(server, PAGE.replace(b"page", b"waits")) for _ in range(3)]
        await until(lambda: len(crowd(server).waiting) == 3)
        status, head, said = await raw(server.port, PAGE)
        assert (status, "retry-after: 1" in head) == (503, True)
        assert b"Too many ask at once" in said
        assert TurnedAway.total == 1
        assert (await get(server.port, "/healthz"))[0] == 200
        free.set()
        for one in waiting:
            assert await one.hears() == ("200", "at last")
        assert await get(server.port, "/page") == (200, "a page")
        for one in (*begun, *waiting):
            one.close()


async def test_b6_newcomers_are_told_in_the_next_turns_and_not_one_after_the_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """At ten times what it can do, one a turn was let in to be told, and the others waited for up to 15 s."""
    monkeypatch.setattr(web_server, "WAITING", 1)
    monkeypatch.setattr(web_server, "CONNECTIONS", 3)
    async with listening() as server:
        idle = await Caller.call(server)
        assert await idle.asks() == "200"
        busy = await Caller.call(server, PAGE.replace(b"page", b"never"))
        await until(lambda: len(crowd(server).waiting) == 1)
        callers: list[socket.socket] = []
        with closed(callers):
            for n in range(200):
                callers.append(socket.create_connection(("127.0.0.1", server.port)))
                callers[-1].sendall(PAGE if n else PAGE.replace(b"page", b"healthz"))
            for _ in range(12):
                await asyncio.sleep(0)
            assert TurnedAway.total == 199
            said = [one.recv(1 << 16, socket.MSG_DONTWAIT) for one in callers]
            assert [answer.split(b" ")[1] for answer in said] == [b"200", *[b"503"] * 199]
            assert b"Retry-After: 1" in said[-1]
            assert not callers[-1].recv(1, socket.MSG_DONTWAIT), "nothing more is to come"
            assert len(crowd(server).open) <= 3
        assert idle.open(), "they have taken nobody's place"
        for one in (busy, idle):
            one.close()


async def test_health_has_places_of_its_own_where_everybody_is_being_answered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A supervisor was told 503 when all places were taken, and would have ended a goodbot that works."""
    monkeypatch.setattr(web_server, "CONNECTIONS", 2)
    async with listening() as server:
        busy = [await Caller.call(server, PAGE.replace(b"page", b"never")) for _ in range(2)]
        await until(lambda: len(crowd(server).waiting) == 2)
        assert (await get(server.port, "/page"))[0] == 503
        silent = [await Caller.call(server) for _ in range(3 * crowds.HEALTH)]
        await until(lambda: len(crowd(server).open) == 2 + crowds.HEALTH)
        assert (await get(server.port, "/healthz"))[0] == 200
        slow = await Caller.call(server)  # it asks once it has been taken
        await until(lambda: len(crowd(server).open) == 2 + crowds.HEALTH)
        slow.say(PAGE.replace(b"page", b"healthz"))
        assert (await slow.hears())[0] == "200"
        late = await Caller.call(server)
        await until(lambda: len(crowd(server).open) == 2 + crowds.HEALTH)
        assert await late.asks() == "503", "those places are for nothing else"
        busy[0].close()
        await until(lambda: len(crowd(server).waiting) == 1)
        after = await Caller.call(server)
        assert await after.asks() == "200"
        for one in (*busy, *silent, slow, late, after):
            one.close()


async def test_who_is_refused_in_the_middle_of_an_upload_reads_why(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was still under way met a closed socket, and the kernel's reset took the answer away."""
    monkeypatch.setattr(web_server, "WAITING", 1)
    monkeypatch.setattr(crowds, "_LINGERING", patience(20))
    async with listening() as server:
        busy = await Caller.call(server, PAGE.replace(b"page", b"never"))
        await until(lambda: len(crowd(server).waiting) == 1)

        def uploads() -> bytes:
            size = 8 << 20
            with socket.create_connection(("127.0.0.1", server.port)) as one:
                one.settimeout(patience(20))
                one.sendall(b"POST /size HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % size)
                pause.wait(patience(20))
                one.sendall(bytes(size))
                return one.recv(1 << 16)

        pause = threading.Event()
        told = asyncio.create_task(asyncio.to_thread(uploads))
        await until(lambda: TurnedAway.total == 1)
        pause.set()
        assert (await told).split(b" ")[1] == b"503"
        busy.close()


async def test_a_connection_that_fails_before_it_is_taken_keeps_nobody_waiting(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Linux tells of its fault where the next one is taken: that was held for a lack of descriptors."""
    async with listening() as server:
        ground = crowd(server)
        [real] = ground._sockets
        faults = [errno.EPROTO, errno.ECONNABORTED, errno.EHOSTUNREACH]

        class Listening:
            def accept(self) -> object:
                if faults:
                    raise OSError(faults.pop(), "it is gone")
                return real.accept()

        def no_pause(*_: object) -> None:
            raise AssertionError("no connection is taken for a second")

        monkeypatch.setattr(ground, "_wait", no_pause)
        caller = socket.create_connection(("127.0.0.1", server.port))
        with caller:
            asyncio.get_running_loop().remove_reader(real)
            ground._take(Listening())  # type: ignore[arg-type]
            assert not faults
            assert len(crowd(server).open) == 1


async def test_what_cannot_be_listened_at_is_let_go_of_whole() -> None:
    """The second socket fails, and the first was left, with nobody who would have closed it."""

    class Deaf(socket.socket):
        def listen(self, *_: object) -> None:
            raise OSError(errno.EADDRINUSE, "taken")

    async with listening() as server:
        first, second = socket.create_server(("127.0.0.1", 0)), Deaf()
        with pytest.raises(OSError, match="taken"):
            crowds.Crowd(server._asked, server._request, [first, second], 1)
        assert (first.fileno(), second.fileno()) == (-1, -1)


async def test_who_has_asked_is_not_driven_out_by_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both come in the same turn, before the first is read."""
    monkeypatch.setattr(web_server, "CONNECTIONS", 2)
    async with listening() as server:
        idle = [await Caller.call(server) for _ in range(2)]
        for one in idle:
            assert await one.asks() == "200"
        callers: list[socket.socket] = []
        with closed(callers):
            for _ in range(2):
                callers.append(socket.create_connection(("127.0.0.1", server.port)))
                callers[-1].sendall(PAGE)
                callers[-1].settimeout(patience(20))
            for caller in callers:
                assert (await asyncio.to_thread(caller.recv, 1 << 16)).split(b" ")[1] == b"200"
        for one in idle:
            assert await one.ended()
            one.close()


async def test_b6_a_turn_lets_in_no_more_who_ask_than_are_answered_before_the_queue_is_full() -> None:
    """At ten times what it can do, the queue is the time that an answer takes: it is short on the port."""
    async with listening() as server:
        ground, callers = crowd(server), list[socket.socket]()
        [real] = ground._sockets
        asyncio.get_running_loop().remove_reader(real)
        with closed(callers):
            for _ in range(20):
                callers.append(socket.create_connection(("127.0.0.1", server.port)))
                callers[-1].sendall(PAGE)
                callers[-1].settimeout(patience(20))
            ground._take(real)
            assert len(ground.waiting) == web_server.WAITING // crowds._ASK < 20
            ground._listen(real)
            for caller in callers:
                assert (await asyncio.to_thread(caller.recv, 1 << 16)).split(b" ")[1] == b"200"


@pytest.mark.parametrize(
    ("head", "length"),
    [
        (b"GET / HTTP/1.1", 0),
        (b"POST / HTTP/1.1\r\nHost: x\r\ncontent-length:  12 \r\nX: y", 12),
        (b"POST / HTTP/1.1\r\nContent-Length: 1" + b"0" * 9000, 10**8),
        (b"POST / HTTP/1.1\r\nContent-Length: -1", math.inf),
        (b"POST / HTTP/1.1\r\nContent-Length: 3\r\nTransfer-Encoding: chunked", math.inf),
    ],
)
def test_b6_who_has_sent_all_is_told_at_once_and_who_has_not_is_waited_for(
    head: bytes, length: float
) -> None:
    assert crowds._length(head) == length


async def test_b6_who_does_not_send_a_body_keeps_nobody_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """A platform's body is read before anybody knows who sends it: 128 slow ones kept everybody out."""
    monkeypatch.setattr(web_server, "WAITING", 3)
    async with listening() as server:
        slow = [await Caller.call(server, UPLOAD) for _ in range(4)]
        await until(lambda: len(crowd(server).waiting) == 4)
        assert await get(server.port, "/page") == (200, "a page")
        busy = [await Caller.call(server, PAGE.replace(b"page", b"never")) for _ in range(3)]
        await until(lambda: len(crowd(server).waiting) == 7)
        assert (await get(server.port, "/page"))[0] == 503
        for one in (*slow, *busy):
            one.close()


async def test_b6_empty_lines_are_no_request(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two of them are skipped. They took a place among those who wait, and nobody drove their sender out."""
    monkeypatch.setattr(web_server, "WAITING", 3)
    monkeypatch.setattr(web_server, "CONNECTIONS", 4)
    async with listening() as server:
        callers: list[socket.socket] = []
        with closed(callers):
            for _ in range(4):
                callers.append(socket.create_connection(("127.0.0.1", server.port)))
                callers[-1].sendall(b"\r\n\r\n")
            await until(lambda: len(crowd(server).open) == 4)
            assert not crowd(server).waiting
            assert await get(server.port, "/page") == (200, "a page")
            callers.append(socket.create_connection(("127.0.0.1", server.port)))
            callers[-1].sendall(b"\r\n\r\n" + PAGE)
            callers[-1].settimeout(patience(20))
            answer = await asyncio.to_thread(callers[-1].recv, 1 << 16)
            assert answer.split(b" ")[1] == b"200"


def test_a_connection_uses_no_name_that_aiohttp_keeps_to_itself() -> None:
    """By public means: nor may one of ours be one of its own, which another release of it may bring."""
    methods = [one for one in vars(connection.Connection).values() if inspect.isfunction(one)]
    used = {name for one in methods for name in (one.__name__, *one.__code__.co_names)}
    private = {name for name in used if name.startswith("_") and not name.startswith("__")}
    assert "_transport" in private, "the scan has lost its subject"
    assert private & {*dir(web.RequestHandler)} == set()


# -- nothing is left behind


def runs_clean(work: Callable[[], object]) -> None:
    """Run it on a loop of its own; nothing that it has opened may be left open."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()  # what another test has left, as one that failed does
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with asyncio.Runner() as runner:
            runner.run(work())  # type: ignore[arg-type]
        gc.collect()
    assert [str(one.message) for one in caught] == []


@contextlib.contextmanager
def closed(callers: list[socket.socket]) -> Generator[None]:
    """Also where the body fails: what is left would be the next test's fault."""
    try:
        yield
    finally:
        for caller in callers:
            caller.close()


def test_a_connection_that_comes_as_the_server_stops_is_closed_too() -> None:
    """It was taken from the kernel, but had no protocol yet when the connections were counted."""
    for turns in range(6):
        callers: list[socket.socket] = []

        async def work(turns: int = turns, callers: list[socket.socket] = callers) -> None:
            server = HttpServer(HttpConfig(), starting)
            await server.start(0)
            callers += [socket.create_connection(("127.0.0.1", server.port)) for _ in range(3)]
            for _ in range(turns):
                await asyncio.sleep(0)
            await server.stop()

        with closed(callers):
            runs_clean(work)


def test_who_is_half_way_through_something_is_closed_too() -> None:
    callers: list[socket.socket] = []

    async def work() -> None:
        async with listening() as server:
            upgrade = b"Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n"
            for begun in (b"", PAGE[:9], PAGE, PAGE.replace(b"page", b"never"), PAGE[:-2] + upgrade):
                caller = socket.create_connection(("127.0.0.1", server.port))
                caller.sendall(begun)
                callers.append(caller)
            await until(lambda: len(crowd(server).open) == 5)

    with closed(callers):
        runs_clean(work)


def test_who_does_not_read_is_not_waited_for() -> None:
    async def flood(request: web.Request) -> web.Response:
        return web.Response(body=b"x" * (32 << 20))

    callers: list[socket.socket] = []

    async def work() -> None:
        async with listening(web.get("/flood", flood)) as server:
            caller = socket.create_connection(("127.0.0.1", server.port))
            caller.sendall(PAGE.replace(b"page", b"flood"))
            callers.append(caller)
            await until(lambda: {one.is_silent() for one in crowd(server).open} == {False})
            await asyncio.sleep(0.05)

    with closed(callers):
        runs_clean(work)


# -- the Unix socket


async def test_programs_of_this_machine_have_a_socket_of_their_own(tmp_path: Path) -> None:
    path = tmp_path / "http.sock"
    with socket.socket(socket.AF_UNIX) as dead:  # of a daemon that was killed
        dead.bind(str(path))
    async with listening() as server:
        await server.listen_at(path)
        await server.listen_at(path)
        assert path.stat().st_mode & 0o777 == 0o600
        assert server.port > 0
        for host, status in (("localhost", 200), ("evil.example", 421), ("", 421)):
            reader, writer = await asyncio.open_unix_connection(path)
            writer.write(
                PAGE.replace(b"localhost", host.encode()).replace(
                    b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"
                )
            )
            assert (await reader.read()).split(b" ")[1] == str(status).encode()
            writer.close()
    assert not path.exists()
