# SPDX-License-Identifier: Apache-2.0
"""Out of descriptors: nobody is lost, nothing multiplies, and it is told."""

from __future__ import annotations

import asyncio
import logging
import os
import resource
import socket
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
from aiohttp import web
from goodbot.api.setup import CheckState, Examined
from goodbot.base import descriptors
from goodbot.base.descriptors import Descriptors
from goodbot.cli.doctor import files
from goodbot.config import HttpConfig
from goodbot.daemon.control import ControlSocket
from goodbot.daemon.http import readiness
from goodbot.daemon.http.http import Http
from goodbot.testing import VirtualClock
from goodbot_connectors.kit.listener import Listener

from tests.core.builders import open_bot, until
from tests.support import free_port


@pytest.fixture
def short() -> Iterator[list[int]]:
    """Descriptors that hold all that this process may have, once they are `taken`."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    held: list[int] = []
    yield held
    for handle in held:
        os.close(handle)
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


def take_all(held: list[int]) -> None:
    handle = os.dup(0)
    resource.setrlimit(resource.RLIMIT_NOFILE, (handle + 8, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    held.append(handle)
    try:
        while True:
            held.append(os.dup(0))
    except OSError:
        pass


def give_back(held: list[int]) -> None:
    while held:
        os.close(held.pop())


@pytest.mark.parametrize("where", ["port", "http.sock", "control.sock"])
async def test_b5_out_of_descriptors_one_attempt_fails_a_second_and_all_are_heard_later(
    tmp_path: Path, short: list[int], where: str, caplog: pytest.LogCaptureFixture
) -> None:
    """One burst wrote 39,216 tracebacks: the loop went on over its whole backlog."""
    clock = VirtualClock(1.0)
    knows = Descriptors(clock)
    port = free_port()
    http, control = Http(HttpConfig(port=port), home=tmp_path), ControlSocket(tmp_path, clock=clock)
    http.descriptors = knows
    await http.start()
    await http.mount({}, lambda _: True)
    await control.start()
    callers = [socket.socket(socket.AF_INET if where == "port" else socket.AF_UNIX) for _ in range(20)]
    try:
        take_all(short)
        for caller in callers:
            caller.connect(("127.0.0.1", port) if where == "port" else str(tmp_path / where))
        with caplog.at_level(logging.WARNING):
            await until(lambda: bool(knows.trouble), seconds=30)
            assert len(caplog.records) < 50, "one a second, however many wait"
            assert caplog.records[0].exc_info is None
        assert "file descriptors are taken" in knows.trouble
        give_back(short)
        loop = asyncio.get_running_loop()
        for caller in callers:
            caller.setblocking(False)
            await loop.sock_sendall(caller, b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        for caller in callers:
            assert await loop.sock_recv(caller, 100)
        clock.advance(59)
        assert knows.trouble
        clock.advance(2)
        assert knows.trouble == ""
    finally:
        for caller in callers:
            caller.close()
        await control.stop()
        await http.stop()


async def test_b5_so_it_is_where_platforms_call(short: list[int], caplog: pytest.LogCaptureFixture) -> None:
    """Each attempt of a backlog of a hundred asked for another try, a hundred a second later."""

    async def handle(_: web.Request) -> web.Response:
        return web.Response()

    knows = Descriptors(VirtualClock(1.0))
    knows.watch()
    listening = Listener(handle, path="/in", host="127.0.0.1", port=0, setting="port")
    await listening.start()
    with socket.socket() as caller:
        try:
            take_all(short)
            caller.connect(("127.0.0.1", listening.port))
            with caplog.at_level(logging.WARNING):
                await until(lambda: bool(knows.trouble), seconds=30)
                assert len(caplog.records) < 50
            give_back(short)
            caller.setblocking(False)
            loop = asyncio.get_running_loop()
            await loop.sock_sendall(caller, b"POST /in HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert (await loop.sock_recv(caller, 100)).startswith(b"HTTP/1.1 200 ")
        finally:
            await listening.stop()


async def test_b5_status_and_readyz_tell_it(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        loop = asyncio.get_running_loop()
        assert (await readiness.parts(bot.app))["descriptors"] == "ok"
        bot.app.http.descriptors.watch()
        error = OSError(24, "Too many open files")
        loop.call_exception_handler({"message": "accept", "exception": error, "socket": None})
        assert (await readiness.parts(bot.app))["descriptors"] == "down"
        told = await bot.command("status")
        assert "too many files and connections are open" in told


async def test_what_else_goes_wrong_in_the_loop_is_told_as_before(caplog: pytest.LogCaptureFixture) -> None:
    knows = Descriptors(VirtualClock(1.0))
    knows.watch()
    loop = asyncio.get_running_loop()
    loop.call_exception_handler({"message": "something else", "exception": OSError(24, "x")})
    assert knows.trouble == ""
    assert "something else" in caplog.text


def test_the_soft_limit_is_raised_as_far_as_it_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[tuple[int, int]] = []

    def put(_: int, limits: tuple[int, int]) -> None:
        done.append(limits)

    monkeypatch.setattr(descriptors.resource, "setrlimit", put)
    infinite = resource.RLIM_INFINITY
    for limits in ((256, infinite), (1024, 4096), (8192, 65536), (infinite, infinite)):
        known = {resource.RLIMIT_NOFILE: limits}
        monkeypatch.setattr(descriptors.resource, "getrlimit", known.__getitem__)
        descriptors.raise_limit()
    assert done == [(8192, infinite), (4096, 4096)]


async def test_b5_doctor_asks_the_one_that_runs() -> None:
    asked = cast("Examined", SimpleNamespace(daemon={"descriptors": "all 256 are taken"}))
    [check] = await files.descriptors(asked)
    assert (check.state, check.text) == (CheckState.FAIL, "all 256 are taken")
    for daemon in (None, {}, {"descriptors": ""}):
        assert await files.descriptors(cast("Examined", SimpleNamespace(daemon=daemon))) == []
