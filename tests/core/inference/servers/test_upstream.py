# SPDX-License-Identifier: Apache-2.0
"""One origin, bounded answers, no redirects, and sentences that say what to do."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
from collections.abc import AsyncIterator

import pytest
from aiohttp import web
from goodbot.base.errors import ServerError
from goodbot.config.secrets import Secret
from goodbot.inference.servers import upstream as module
from goodbot.inference.servers.upstream import StatusError, Unreachable, Upstream, UpstreamResponse
from goodbot_fakes.openai_server import FakeOpenAI

KEY = "sk-for-tests-only"


@contextlib.asynccontextmanager
async def opened(url: str, key: str = "") -> AsyncIterator[Upstream]:
    upstream = Upstream("vLLM", url, Secret(key))
    await upstream.open()
    try:
        yield upstream
    finally:
        await upstream.close()


async def read_all(upstream: Upstream) -> None:
    async with upstream.stream("/flood", {}) as (_, pieces):
        async for _ in pieces:
            pass


async def test_nobody_there_is_a_sentence() -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        url = f"http://127.0.0.1:{closed.getsockname()[1]}"
    async with opened(url) as upstream:
        with pytest.raises(Unreachable) as caught:
            await upstream.ask("/v1/models")
    assert str(caught.value) == f"vLLM at {url} does not answer: start it, or set [serving] url"


async def test_no_question_fails_for_a_connection_that_the_server_has_ended() -> None:
    """As they do with one that was idle for some seconds."""
    async with FakeOpenAI() as server, opened(server.url) as upstream:
        await upstream.ask("/v1/models")
        await server.down()
        await server.up()
        assert (await upstream.ask("/v1/models", {}, method="GET")).ok
        await server.down()
        with pytest.raises(Unreachable, match="does not answer: start it"):
            await upstream.ask("/v1/chat/completions", {})


async def test_silence_is_a_sentence() -> None:
    async with FakeOpenAI() as server, opened(server.url) as upstream:
        server.faults.hangs = True
        with pytest.raises(ServerError, match=r"said nothing for 0 s: it hangs"):
            await upstream.ask("/v1/models", seconds=0.1)


async def test_a_stream_that_falls_silent_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SILENT_SECONDS", 0.1)
    async with FakeOpenAI() as server, opened(server.url) as upstream:
        server.faults.hangs = True
        with pytest.raises(ServerError, match="said nothing for"):
            async with upstream.stream("/v1/chat/completions", {}):
                pass


async def test_the_key_goes_to_the_server_and_nowhere_else() -> None:
    async with FakeOpenAI(key=KEY) as server, FakeOpenAI() as other:
        async with opened(server.url, KEY) as upstream:
            assert (await upstream.ask("/v1/models")).ok
            server.faults.redirects = f"{other.url}/v1/models"
            with pytest.raises(ServerError, match=r"elsewhere: set \[serving\] url"):
                await upstream.ask("/v1/models")
            server.faults.redirects = "http://169.254.169.254/latest/meta-data/"
            with pytest.raises(ServerError, match="elsewhere"):
                await upstream.ask("/v1/chat/completions", {"a": 1})
        assert other.requests == []


@pytest.mark.parametrize("key", ["", "sk-another"])
async def test_a_wrong_key_is_a_sentence(key: str) -> None:
    async with FakeOpenAI(key=KEY) as server, opened(server.url, key) as upstream:
        refused = upstream.refused(await upstream.ask("/v1/models"))
    assert "GOODBOT_SERVER_KEY" in str(refused)
    assert KEY not in str(refused)


async def test_a_key_that_no_header_may_hold_is_refused() -> None:
    with pytest.raises(ServerError, match="is no key"):
        await Upstream("vLLM", "http://127.0.0.1:1", Secret("a\r\nX: y")).open()


async def test_a_proxy_of_the_environment_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    async with FakeOpenAI() as server, opened(server.url) as upstream:
        assert (await upstream.ask("/v1/models")).ok


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"detail": [{"msg": "too long", "input": "my secret"}]}', "too long"),
        ('{"detail": [{"loc": ["body", "seed"], "msg": "not permitted"}]}', "seed: not permitted"),
        ('["my secret"]', ""),
        ('{"error": {"message": "out of memory"}}', "out of memory"),
        ("Bad Gateway", "Bad Gateway"),
    ],
)
def test_an_error_repeats_no_request(text: str, words: str) -> None:
    found = json.loads(text) if text.startswith("{") else {}
    assert UpstreamResponse(status=422, body=found, text=text).words == words


async def test_a_name_is_looked_up_once(monkeypatch: pytest.MonkeyPatch) -> None:
    async def getaddrinfo(*_: object, **__: object) -> None:
        raise OSError("now it would lead elsewhere")

    async with FakeOpenAI() as server:
        named = server.url.replace("127.0.0.1", "localhost")
        async with opened(named) as upstream:
            monkeypatch.setattr(asyncio.BaseEventLoop, "getaddrinfo", getaddrinfo)
            assert (await upstream.ask("/v1/models")).ok
            monkeypatch.undo()


async def test_endless_answers_are_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    async def flood(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        while True:
            await response.write(b"data: x\n\n" * 1000)

    monkeypatch.setattr(module, "_LARGEST_ANSWER", 100_000)
    monkeypatch.setattr(module, "_LARGEST_STREAM", 100_000)
    app = web.Application()
    app.add_routes([web.post("/flood", flood), web.get("/flood", flood)])
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    async with opened(f"http://127.0.0.1:{runner.addresses[0][1]}") as upstream:
        with pytest.raises(ServerError, match="does not come to an end"):
            await upstream.ask("/flood")
        with pytest.raises(ServerError, match="does not come to an end"):
            await read_all(upstream)
    await runner.cleanup()


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"error": {"message": "a\x1b[31m\nb"}}, "a [31m b"),
        ({"error": "plain"}, "plain"),
        ({"detail": "Not Found"}, "Not Found"),
        ({"object": "error", "message": "not loaded"}, "not loaded"),
        ({"success": False, "error_message": "no rank"}, "no rank"),
        ({"error": {"message": "x" * 5000}}, "x" * 299 + "…"),
        ({"error": ["odd"]}, ""),
    ],
)
def test_a_servers_words_fit_into_a_sentence(body: dict[str, object], words: str) -> None:
    assert module.said(body) == words


async def test_words_come_from_what_is_no_json_too() -> None:
    reply = module.UpstreamResponse(status=502, body={}, text="Bad\nGateway")
    refused = Upstream("vLLM", "http://127.0.0.1:1", Secret("")).refused(reply)
    assert isinstance(refused, StatusError)
    assert str(refused) == "vLLM at http://127.0.0.1:1 answers with status 502: Bad Gateway"


async def test_what_is_closed_says_so() -> None:
    async with FakeOpenAI() as server, opened(server.url) as upstream:
        await upstream.close()
        await upstream.close()
        with pytest.raises(ServerError, match="is not connected"):
            await upstream.ask("/v1/models")
