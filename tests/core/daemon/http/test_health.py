# SPDX-License-Identifier: Apache-2.0
"""`/healthz` and `/readyz` of a running goodbot, asked over real sockets."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import subprocess
import sys
from collections.abc import AsyncGenerator, Mapping
from pathlib import Path
from typing import Any

import pytest
from goodbot.base.errors import ConfigError
from goodbot.cli.service.supervision import Supervision
from goodbot.config import HttpConfig
from goodbot.conversation.presence import Presence
from goodbot.daemon.http import readiness
from goodbot.daemon.http.http import Http, PartsSeen

from tests.core.builders import Bot, open_bot, until
from tests.core.daemon.http.asking import raw


async def ask(
    port: int, path: str, host: str = "localhost", method: str = "GET"
) -> tuple[int, Mapping[str, Any]]:
    request = f"{method} {path} HTTP/1.1\r\nHost: {host}\r\n\r\n"
    status, head, body = await raw(port, request.encode())
    assert "aiohttp" not in head
    assert "access-control" not in head
    assert "connection: close" in head
    return status, json.loads(body or b"{}")


@contextlib.asynccontextmanager
async def supervised(bot: Bot | None, port: int, host: str = "127.0.0.1") -> AsyncGenerator[None]:
    supervision = Supervision(HttpConfig(port=port, host=host))
    await supervision.start()
    try:
        if bot:
            supervision.up(bot.app, "up")
        yield
    finally:
        await supervision.stop()


async def test_a_goodbot_that_works_is_ready(tmp_path: Path, unused_tcp_port: int) -> None:
    async with open_bot(tmp_path) as bot, supervised(bot, unused_tcp_port):
        assert await ask(unused_tcp_port, "/healthz") == (200, {"status": "ok"})
        status, said = await ask(unused_tcp_port, "/readyz")
        assert status == 200
        assert said == {
            "status": "ready",
            "missing": [],
            "store": "ok",
            "descriptors": "ok",
            "model": "ok",
            "loopback": "ok",
        }


async def test_while_it_starts_it_is_alive_and_not_ready(unused_tcp_port: int) -> None:
    async with supervised(None, unused_tcp_port):
        assert (await ask(unused_tcp_port, "/healthz"))[0] == 200
        assert await ask(unused_tcp_port, "/readyz") == (503, {"status": "starting"})


async def test_what_is_told_of_a_part_decides_nothing(unused_tcp_port: int) -> None:
    told = {"model": "startet: Das Modell wird geladen, 3 s"}
    for code, status, missing in (("starting", "starting", ["model"]), ("ok", "ready", [])):

        async def parts(code: str = code) -> PartsSeen:
            return PartsSeen(codes={"store": "ok", "model": code}, told=told)

        http = Http(HttpConfig(port=unused_tcp_port), parts)
        await http.start()
        try:
            _, said = await ask(unused_tcp_port, "/readyz")
        finally:
            await http.stop()
        assert said == {"status": status, "missing": missing, "store": "ok", **told}


async def test_a_model_that_comes_while_it_is_asked_is_not_told_as_starting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = ["starting: loading the model, 3 s"]
    real = readiness.store_takes

    async def meanwhile(app: Any) -> bool:
        said[0] = ""
        return await real(app)

    async with open_bot(tmp_path) as bot:
        with monkeypatch.context() as patch:
            patch.setattr(Presence, "starting", lambda *_: said[0])
            patch.setattr(readiness, "store_takes", meanwhile)
            seen = await readiness.seen(bot.app)
    assert (seen.codes["model"], seen.told) == ("ok", {})


async def test_the_part_that_is_missing_is_named_and_nothing_else(
    tmp_path: Path, unused_tcp_port: int
) -> None:
    async with open_bot(tmp_path) as bot, supervised(bot, unused_tcp_port):
        bot.app.connectors.errors["loopback"] = "4711:canary was refused for user 123456789"
        status, said = await ask(unused_tcp_port, "/readyz")
        assert (status, said["status"], said["missing"]) == (503, "unavailable", ["loopback"])
        assert "canary" not in str(said)
        assert "123456789" not in str(said)
        bot.app.connectors.errors.clear()
        bot.fake.set(generate="die")
        await bot.say("hello")
        await until(lambda: not bot.app.server.healthy())
        assert (await ask(unused_tcp_port, "/readyz"))[1]["missing"] == ["model"]
        assert (await ask(unused_tcp_port, "/healthz"))[0] == 200


async def test_while_another_model_takes_over_it_is_alive_and_not_ready(
    tmp_path: Path, unused_tcp_port: int
) -> None:
    supervision = Supervision(HttpConfig(port=unused_tcp_port))
    await supervision.start()
    async with open_bot(tmp_path) as bot:
        supervision.up(bot.app, "up")
        assert (await ask(unused_tcp_port, "/readyz"))[0] == 200
        supervision.restarting()
    assert await ask(unused_tcp_port, "/readyz") == (503, {"status": "starting"})
    assert (await ask(unused_tcp_port, "/healthz"))[0] == 200
    async with open_bot(tmp_path) as bot:
        supervision.up(bot.app, "up again")
        assert (await ask(unused_tcp_port, "/readyz"))[0] == 200
    await supervision.stop()


async def test_a_writer_that_is_stuck_is_not_ready(
    tmp_path: Path, unused_tcp_port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("goodbot.daemon.http.readiness.store_answers.__defaults__", (0.2,))
    stuck = asyncio.Event()

    async def wedge(db: object) -> None:
        await stuck.wait()

    async with open_bot(tmp_path) as bot, supervised(bot, unused_tcp_port):
        writing = asyncio.create_task(bot.store.write(wedge))
        await asyncio.sleep(0)
        assert (await ask(unused_tcp_port, "/readyz"))[1]["missing"] == ["store"]
        assert (await ask(unused_tcp_port, "/healthz"))[0] == 200, "that is the watchdog's affair"
        stuck.set()
        await writing
        assert (await ask(unused_tcp_port, "/readyz"))[0] == 200


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("localhost", 200),
        ("LOCALHOST:80", 200),
        ("127.0.0.1", 200),
        ("127.0.0.1:1", 200),
        ("[::1]", 200),
        ("[::1]:8080", 200),
        ("evil.example", 421),
        ("evil.example:80", 421),
        ("localhost.evil.example", 421),
        ("127.0.0.1.evil.example", 421),
        ("localhost:x", 421),
        ("::1", 421),
        ("", 421),
        ("127.0.0.2", 421),
        ("localhost.", 421),
        ("127.1", 421),
        ("[::ffff:127.0.0.1]", 421),
        ("localhost@evil.example", 421),
        ("evil.example#localhost", 421),
        (":80", 421),
        ("[::1", 421),
    ],
)
async def test_only_our_own_names_are_answered(host: str, status: int, unused_tcp_port: int) -> None:
    async with supervised(None, unused_tcp_port):
        assert (await ask(unused_tcp_port, "/healthz", host))[0] == status


async def test_a_request_without_a_host_or_with_two(unused_tcp_port: int) -> None:
    async with supervised(None, unused_tcp_port):
        for hosts in (
            b"",
            b"Host: localhost\r\nHost: evil.example\r\n",
            b"Host: localhost\r\nHost: localhost\r\n",
        ):
            for version in (b"1.0", b"1.1"):
                head = b"GET /healthz HTTP/%s\r\n%s\r\n" % (version, hosts)
                assert (await raw(unused_tcp_port, head))[0] == 400, "as RFC 9112, 3.2 has it"


async def test_a_whole_address_in_the_first_line_does_not_count(unused_tcp_port: int) -> None:
    """T09: who names the host there, as to a proxy, is held to the `Host` header all the same."""
    async with supervised(None, unused_tcp_port):
        line = b"GET http://%s/healthz HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n"
        for target, host, statuses in (
            (b"localhost", b"evil.example", (421,)),
            (b"evil.example", b"evil.example", (421,)),
            (b"evil.example", b"localhost", (421,)),
            (b"localhost", b"localhost", (200,)),
        ):
            assert (await raw(unused_tcp_port, line % (target, host)))[0] in statuses


async def test_the_address_that_one_has_connected_to_is_a_name_of_ours(
    unused_tcp_port: int, caplog: pytest.LogCaptureFixture
) -> None:
    async with supervised(None, unused_tcp_port, "0.0.0.0"):
        assert "others on the network can reach" in caplog.text
        request = b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.7\r\n\r\n"
        assert (await raw(unused_tcp_port, request, "127.0.0.7"))[0] == 200
        assert (await raw(unused_tcp_port, request, "127.0.0.8"))[0] == 421


async def test_loopback_is_no_reason_to_warn(unused_tcp_port: int, caplog: pytest.LogCaptureFixture) -> None:
    for host in ("127.0.0.1", "localhost"):
        async with supervised(None, unused_tcp_port, host):
            pass
    assert caplog.text == ""


async def test_there_is_nothing_else(unused_tcp_port: int) -> None:
    async with supervised(None, unused_tcp_port):
        assert (await ask(unused_tcp_port, "/"))[0] == 503
        assert (await ask(unused_tcp_port, "/healthz/.."))[0] == 503
        for method in ("POST", "PUT", "DELETE", "OPTIONS"):
            assert (await ask(unused_tcp_port, "/healthz", method=method))[0] == 405
        assert await ask(unused_tcp_port, "/healthz", method="HEAD") == (200, {})


@pytest.mark.parametrize(
    "request_",
    [
        b"NONSENSE\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
        b"GET /healthz HTTP/9.9\r\n\r\n",
        b"GET /" + b"a" * 9000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX: " + b"a" * 9000 + b"\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nContent-Length: nan\r\n\r\n",
    ],
)
async def test_what_is_no_request_is_answered_briefly_and_not_logged(
    request_: bytes, unused_tcp_port: int, caplog: pytest.LogCaptureFixture
) -> None:
    async with supervised(None, unused_tcp_port):
        status, head, body = await raw(unused_tcp_port, request_)
        assert (status, json.loads(body)) == (400, {"status": "error"})
        assert "aiohttp" not in head
        assert (await ask(unused_tcp_port, "/healthz"))[0] == 200
    assert caplog.text == ""


async def test_a_port_that_is_taken_is_said_in_a_sentence() -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        supervision = Supervision(HttpConfig(port=port))
        with pytest.raises(ConfigError, match=rf"cannot listen on 127\.0\.0\.1 port {port} .*another port"):
            await supervision.start()
        await supervision.stop()


async def test_the_usual_port_is_taken_so_the_next_free_one_is_used_and_said(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.socket() as first, socket.socket() as second:
        first.bind(("127.0.0.1", 0))
        first.listen()
        port = first.getsockname()[1]
        monkeypatch.setattr("goodbot.daemon.http.http.PORT", port)
        with contextlib.suppress(OSError):  # somebody may have that one anyway
            second.bind(("127.0.0.1", port + 1))
            second.listen()
        http = Http(HttpConfig())
        await http.open()
        try:
            moved = int(http.address.rpartition(":")[2])
            assert port + 1 < moved <= port + 9
            assert (await ask(moved, "/healthz"))[0] == 200
            assert f"port {port} is taken" in http.moved()
            assert f"`[http] port = {moved}`" in http.moved()
            assert http.moved() in caplog.text
        finally:
            await http.stop()
        assert http.moved() == ""


async def test_nothing_listens_unless_a_port_is_set() -> None:
    supervision = Supervision(HttpConfig())
    await supervision.start()
    assert not supervision.http.listening
    await supervision.stop()


def test_without_a_port_nothing_of_http_is_imported() -> None:
    code = "import sys, goodbot.cli.run; print('aiohttp' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
