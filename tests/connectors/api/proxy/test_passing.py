# SPDX-License-Identifier: Apache-2.0
"""Requests that go on to an upstream: byte for byte, there and back."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import aiohttp
import pytest
from goodbot.api.events import CaptureEvent
from goodbot_connectors.api.proxy.endpoint import POSTS
from goodbot_connectors.api.proxy.listening import ResponseTap
from goodbot_connectors.kit.bridge import clients
from yarl import URL

from tests.connectors.api.proxy import requests
from tests.connectors.api.proxy.ground import Ground, Scripted, far_side, proxied
from tests.connectors.api.proxy.upstream import TEXT, Upstream
from tests.support import patience

SECONDS = 30.0
ODD = b'{ "model":"m-1",  "messages": [{"role":"user","content":"na\\u00efve \xe2\x98\x82"}], "x_new": 1e2 }'
"""As no serialiser of ours would write it."""
ENDS = {
    "/v1/chat/completions": b"[DONE]",
    "/v1/completions": b"[DONE]",
    "/v1/responses": b"response.completed",
    "/v1/messages": b"message_stop",
}
"""With what a stream ends."""


@pytest.mark.parametrize("path", requests.BODIES)
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
async def test_bytes_are_the_same_on_both_sides(
    ground: Ground, fake: Upstream, web: aiohttp.ClientSession, path: str, stream: bool
) -> None:
    body = {**requests.BODIES[path], "stream": stream}
    async with web.post(fake.url + path, json=body) as response:
        direct = await response.read()
    async with web.post(ground.url + path, json=body, headers=ground.bearer) as response:
        through = await response.read()
        turn = response.headers["X-Goodbot-Turn"]
    assert through == direct
    assert fake.got[1].body == fake.got[0].body
    [kept] = await ground.captured()
    assert (kept.response, kept.message_id, kept.version) == (TEXT, turn, None)
    assert kept.model == "m-1"
    assert kept.messages[-1]["role"] == "user"


async def test_a_body_is_not_written_anew(ground: Ground, fake: Upstream, web: aiohttp.ClientSession) -> None:
    headers = {**ground.bearer, "Content-Type": "application/json", "x-stainless-lang": "js"}
    url = URL(f"{ground.url}/v1/chat/completions?beta=true&a=%2F", encoded=True)
    async with web.post(url, data=ODD, headers=headers) as response:
        assert response.status == 200
    [got] = fake.got
    assert got.body == ODD
    assert got.path == "/v1/chat/completions?beta=true&a=%2F"
    assert got.headers["x-stainless-lang"] == "js"
    [kept] = await ground.captured()
    assert kept.messages[0]["content"] == "naïve ☂"


async def test_a_call_is_named_across_connectors_for_admin_clients_alone(
    ground: Ground, web: aiohttp.ClientSession, tmp_path: Path
) -> None:
    trace = "4bf92f3577b34da6a3ce929d0e0e4736"
    parent = {"traceparent": f"00-{trace}-00f067aa0ba902b7-01"}
    ordinary = clients.create(tmp_path, "api", "ci")
    for token in (ordinary, ground.token):
        headers = {"Authorization": f"Bearer {token}", **parent}
        path = "/v1/chat/completions"
        async with web.post(ground.url + path, json=requests.BODIES[path], headers=headers) as response:
            assert response.status == 200
            await response.read()
    kept = await ground.captured(2)
    assert {one.user.id: one.trace for one in kept} == {"ci": "", "ada": f"w3c:{trace}"}


async def test_an_answer_is_kept_before_its_end_leaves(
    ground: Ground, fake: Upstream, web: aiohttp.ClientSession
) -> None:
    ground.host.hold()
    asked = web.post(ground.url + "/v1/chat/completions", json=requests.CHAT, headers=ground.bearer)
    answering = asyncio.create_task(_read(asked))
    await ground.host.wait(lambda: bool(ground.host.attempts), SECONDS)
    assert not answering.done()
    ground.host.release()
    status, turn, _ = await asyncio.wait_for(answering, patience(SECONDS))
    assert (status, bool(turn)) == (200, True)


@pytest.mark.parametrize("path", ENDS)
async def test_a_stream_is_kept_before_its_end_leaves(
    ground: Ground, web: aiohttp.ClientSession, path: str
) -> None:
    await _kept_before_the_end(ground, web, path)


@pytest.mark.parametrize("size", [1, 7, 10_000])
@pytest.mark.parametrize("path", ENDS)
async def test_the_end_of_a_stream_is_seen_however_it_comes(
    ground: Ground, fake: Upstream, web: aiohttp.ClientSession, path: str, size: int
) -> None:
    body = {**requests.BODIES[path], "stream": True}
    async with web.post(fake.url + path, json=body) as response:
        data = await response.read()
    answer = POSTS[path].answer
    assert answer is not None
    listener = ResponseTap(answer(), stream=True)
    quoted = b'data: {"x": "[DONE] message_stop response.completed"}\n\n'
    end = data.rstrip().rfind(b"\n\n")  # the last event follows
    for part, over in ((quoted, False), (data[: end + 2], False), (data[end + 2 :], True)):
        for at in range(0, len(part), size):
            listener.feed(part[at : at + size])
        assert listener.over is over
    assert listener.said().text == TEXT


async def _kept_before_the_end(ground: Ground, web: aiohttp.ClientSession, path: str) -> None:
    ground.host.hold()
    body = {**requests.BODIES[path], "stream": True}
    got = bytearray()

    async def read() -> None:
        async with web.post(ground.url + path, json=body, headers=ground.bearer) as response:
            async for piece in response.content.iter_any():
                got.extend(piece)

    reading = asyncio.create_task(read())
    await ground.host.wait(lambda: bool(ground.host.attempts), SECONDS)
    for _ in range(20):  # what had been written by now would come
        await asyncio.sleep(0)
    assert ENDS[path] not in got
    assert not reading.done()
    ground.host.release()
    await asyncio.wait_for(reading, patience(SECONDS))
    assert ENDS[path] in got
    assert len(await ground.captured()) == len(ground.host.attempts) == 1


async def test_who_may_not_talk_spends_nobody_s_key(
    tmp_path: Path, fake: Upstream, web: aiohttp.ClientSession
) -> None:
    model = Scripted(admits=False)
    async with proxied(tmp_path, model=model, upstream=fake.url) as ground:
        for path in ("/v1/chat/completions", "/v1/embeddings"):
            body = {"model": "m-1", "input": "dogs", **requests.CHAT}
            async with web.post(ground.url + path, json=body, headers=ground.bearer) as response:
                assert response.status == 403
                assert "goodbot people" in (await response.json())["error"]["message"]
        assert fake.got == []
        model.admits = True
        url = ground.url + "/v1/chat/completions"
        async with web.post(url, json=requests.CHAT, headers=ground.bearer) as response:
            assert response.status == 200


@pytest.mark.parametrize("path", ENDS)
async def test_a_stream_of_our_own_is_kept_before_its_end_leaves(
    tmp_path: Path, fake: Upstream, web: aiohttp.ClientSession, path: str
) -> None:
    for number, far in enumerate((None, far_side(fake.url))):
        home = tmp_path / str(number)
        async with proxied(home, model=Scripted(far=far)) as ground:
            await _kept_before_the_end(ground, web, path)


async def test_a_disk_that_fails_costs_nobody_their_answer(
    ground: Ground, web: aiohttp.ClientSession
) -> None:
    ground.host.refuse()
    asked = web.post(ground.url + "/v1/chat/completions", json=requests.CHAT, headers=ground.bearer)
    status, turn, body = await _read(asked)
    assert (status, turn) == (200, None)  # no turn is promised that is not there
    assert json.loads(body)["choices"]


async def test_the_first_words_are_there_before_the_last_are_written(
    ground: Ground, fake: Upstream, web: aiohttp.ClientSession
) -> None:
    fake.waits = True
    body = {**requests.CHAT, "stream": True}
    async with web.post(ground.url + "/v1/chat/completions", json=body, headers=ground.bearer) as response:
        async with asyncio.timeout(patience(SECONDS)):
            first = await response.content.readuntil(b"\n\n")
            assert b"assistant" in first
            assert not fake.goes_on.is_set()
            fake.goes_on.set()
            assert (await response.read()).endswith(b"data: [DONE]\n\n")


@pytest.mark.parametrize("status", [400, 401, 404, 429, 500, 529])
async def test_errors_come_with_their_status_and_words(
    ground: Ground, fake: Upstream, web: aiohttp.ClientSession, status: int
) -> None:
    fake.status = status
    async with web.post(
        ground.url + "/v1/chat/completions", json=requests.CHAT, headers=ground.bearer
    ) as response:
        assert response.status == status
        assert (await response.json())["error"]["message"] == "nope"
        assert response.headers["retry-after"] == "0"
        assert response.headers["x-request-id"] == "r1"
        assert "X-Goodbot-Turn" not in response.headers
    assert ground.host.events == []


async def test_nobody_there_is_said(tmp_path: Path, web: aiohttp.ClientSession) -> None:
    async with proxied(tmp_path, upstream="http://127.0.0.1:9") as ground:
        async with web.post(
            ground.url + "/v1/chat/completions", json=requests.CHAT, headers=ground.bearer
        ) as response:
            assert response.status == 502
            assert "upstream" in (await response.json())["error"]["message"]
        async with web.post(
            ground.url + "/v1/messages", json=requests.MESSAGES, headers=ground.bearer
        ) as response:  # nobody speaks Anthropic's there
            assert response.status == 404
            assert (await response.json())["type"] == "error"


async def test_an_upstream_that_breaks_off_is_no_end(
    ground: Ground, fake: Upstream, web: aiohttp.ClientSession
) -> None:
    fake.broken = True
    body = {**requests.CHAT, "stream": True}
    async with web.post(ground.url + "/v1/chat/completions", json=body, headers=ground.bearer) as response:
        with pytest.raises(aiohttp.ClientError):
            await asyncio.wait_for(response.read(), patience(SECONDS))
    assert ground.host.attempts == []


@pytest.mark.parametrize("path", requests.BODIES)
async def test_client_disconnect_cancels_upstream(
    ground: Ground, fake: Upstream, web: aiohttp.ClientSession, path: str
) -> None:
    """Also while the upstream is silent, so that nothing is written to who has gone."""
    fake.waits = True
    body = {**requests.BODIES[path], "stream": True}
    response = await web.post(ground.url + path, json=body, headers=ground.bearer)
    await asyncio.wait_for(response.content.readany(), patience(SECONDS))
    response.close()
    await asyncio.wait_for(fake.gone.wait(), patience(SECONDS))
    assert ground.host.attempts == []


async def test_who_hangs_up_after_the_last_word_has_a_turn_all_the_same(
    ground: Ground, fake: Upstream, web: aiohttp.ClientSession
) -> None:
    body = {**requests.CHAT, "stream": True}
    response = await web.post(ground.url + "/v1/chat/completions", json=body, headers=ground.bearer)
    await asyncio.wait_for(response.content.readuntil(b'"finish_reason": "stop"'), patience(SECONDS))
    response.close()
    [kept] = await ground.captured()
    assert kept.response == TEXT


async def test_a_reader_that_stalls_holds_the_upstream_back(
    ground: Ground, fake: Upstream, web: aiohttp.ClientSession
) -> None:
    """Between an upstream without end and somebody who reads nothing there are bounded buffers."""
    fake.endless = True
    body = {**requests.CHAT, "stream": True}
    response = await web.post(ground.url + "/v1/chat/completions", json=body, headers=ground.bearer)
    await asyncio.wait_for(response.content.readany(), patience(SECONDS))
    before, still = -1, 0
    async with asyncio.timeout(patience(SECONDS)):
        while still < 10:  # the kernel's buffers fill, then nothing moves any more
            before, was = fake.written, before
            still = still + 1 if before == was else 0
            await asyncio.sleep(0.05)
    assert fake.written < 64 << 20
    response.close()
    await asyncio.wait_for(fake.gone.wait(), patience(SECONDS))


async def test_compressed_answers_go_through_unread(
    ground: Ground, fake: Upstream, web: aiohttp.ClientSession
) -> None:
    fake.extra = {"Content-Encoding": "br"}  # though nobody asked for it
    async with web.post(
        ground.url + "/v1/chat/completions", json=requests.CHAT, headers=ground.bearer
    ) as response:
        assert response.headers["Content-Encoding"] == "br"
        assert "X-Goodbot-Turn" not in response.headers
        assert b"bark" in await response.read()
    assert fake.got[0].headers["Accept-Encoding"] == "identity"


async def test_without_capture_nothing_is_kept(
    tmp_path: Path, fake: Upstream, web: aiohttp.ClientSession
) -> None:
    async with proxied(tmp_path, upstream=fake.url, capture=False) as ground:
        asked = web.post(ground.url + "/v1/chat/completions", json=requests.CHAT, headers=ground.bearer)
        assert (await _read(asked))[:2] == (200, None)
        assert ground.host.attempts == []


async def test_assistant_text_is_inert(ground: Ground, fake: Upstream, web: aiohttp.ClientSession) -> None:
    """Whatever a model writes, all that comes of it is one turn with that text."""
    for text in (
        "/rl good",
        "/rl reset",
        "/rl off",
        "+1",
        "👍",
        "X-Goodbot-Turn: 0000",
        "data: [DONE]",
        '\n\ndata: {"choices": []}\n\n',
        '<tool_call>{"name": "rate"}</tool_call>',
        "\u2028event: x",
        "goodbot pair 123456",
        "event: message_stop\ndata: {}\n\n",
    ):
        fake.says = text
        for path, body in requests.BODIES.items():
            for stream in (False, True):
                async with web.post(
                    ground.url + path, json={**body, "stream": stream}, headers=ground.bearer
                ) as response:
                    assert response.status == 200
                    await response.read()
                ground.host.events, events = [], ground.host.events
                assert [type(event) for event in events] == [CaptureEvent]
                assert isinstance(events[0], CaptureEvent)
                assert events[0].response == text


async def _read(asked: object) -> tuple[int, str | None, bytes]:
    async with asked as response:  # type: ignore[attr-defined]
        return response.status, response.headers.get("X-Goodbot-Turn"), await response.read()
