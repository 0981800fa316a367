# SPDX-License-Identifier: Apache-2.0
"""What is long is bounded, is read beside what others wait for, and only of who may ask."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from goodbot_connectors.api.proxy import sessions
from goodbot_connectors.api.proxy.dialects import shapes
from goodbot_connectors.api.proxy.own import history, wishes

from tests.connectors.api.proxy import requests
from tests.connectors.api.proxy.ground import Ground, Scripted, far_side, proxied
from tests.connectors.api.proxy.upstream import Upstream
from tests.core.builders import until

COUNT = "/v1/messages/count_tokens"
SAID = [*requests.ASKED, {"role": "assistant", "content": "<b>Bark</b>."}, *requests.ASKED]
LONG: dict[str, dict[str, Any]] = {
    "/v1/chat/completions": {**requests.CHAT, "messages": SAID},
    "/v1/responses": {
        **requests.RESPONSES,
        "input": [*SAID[:2], {"type": "function_call", "call_id": "c1", "name": "f"}, *requests.ASKED],
    },
    "/v1/messages": {**requests.MESSAGES, "messages": SAID},
    COUNT: {**requests.MESSAGES, "messages": SAID},
}


@pytest.fixture
def readers(monkeypatch: pytest.MonkeyPatch) -> list[threading.Thread]:
    """The threads in which the assistant's words were read."""
    found = list[threading.Thread]()
    unthought = shapes.unthought

    def noted(text: str) -> str:
        found.append(threading.current_thread())
        return unthought(text)

    for module in (shapes, history, sessions):
        monkeypatch.setattr(module, "unthought", noted)
    return found


async def ask(web: aiohttp.ClientSession, ground: Ground, path: str, body: dict[str, Any]) -> tuple[int, str]:
    async with web.post(ground.url + path, json=body, headers=ground.bearer) as response:
        return response.status, await response.text()


@pytest.mark.parametrize("path", LONG)
async def test_a_request_is_read_beside_what_others_wait_for(
    tmp_path: Path, web: aiohttp.ClientSession, readers: list[threading.Thread], path: str
) -> None:
    async with proxied(tmp_path, model=Scripted()) as ground:
        status, _ = await ask(web, ground, path, LONG[path])
    assert (status, bool(readers)) == (200, True)
    assert threading.current_thread() not in readers


@pytest.mark.parametrize("path", [path for path in LONG if path != COUNT])
async def test_so_is_one_for_a_server_of_ours(
    tmp_path: Path, fake: Upstream, web: aiohttp.ClientSession, readers: list[threading.Thread], path: str
) -> None:
    async with proxied(tmp_path, model=Scripted(far=far_side(fake.url, tells=False))) as ground:
        status, _ = await ask(web, ground, path, LONG[path])
    assert (status, bool(readers)) == (200, True)
    assert threading.current_thread() not in readers


@pytest.mark.parametrize("path", [path for path in LONG if path != COUNT])
async def test_and_one_that_goes_on_to_an_upstream(
    ground: Ground, web: aiohttp.ClientSession, readers: list[threading.Thread], path: str
) -> None:
    status, _ = await ask(web, ground, path, LONG[path])
    await ground.captured()
    assert (status, bool(readers)) == (200, True)
    assert threading.current_thread() not in readers


@pytest.fixture
def hashing(monkeypatch: pytest.MonkeyPatch) -> list[threading.Thread]:
    """The threads in which transcripts were hashed."""
    found = list[threading.Thread]()
    digests = sessions._digests

    def noted(transcript: Any) -> Any:
        found.append(threading.current_thread())
        return digests(transcript)

    monkeypatch.setattr(sessions, "_digests", noted)
    return found


@pytest.mark.parametrize("path", [path for path in LONG if path != COUNT])
async def test_transcripts_are_hashed_beside_what_others_wait_for(
    tmp_path: Path, web: aiohttp.ClientSession, hashing: list[threading.Thread], path: str
) -> None:
    async with proxied(tmp_path, model=Scripted()) as ground:
        status, _ = await ask(web, ground, path, LONG[path])
        assert status == 200
        await ground.captured()
        await until(lambda: len(hashing) == 2)  # to find the conversation, and to know it again
    assert threading.current_thread() not in hashing


async def test_so_are_those_that_go_on_to_an_upstream(
    ground: Ground, web: aiohttp.ClientSession, hashing: list[threading.Thread]
) -> None:
    path = "/v1/chat/completions"
    assert (await ask(web, ground, path, LONG[path]))[0] == 200
    await ground.captured()
    await until(lambda: len(hashing) == 2)
    assert threading.current_thread() not in hashing


@pytest.mark.parametrize("path", [*requests.BODIES, "/v1/embeddings", COUNT])
async def test_who_may_not_ask_is_told_so_before_anything_is_read(
    tmp_path: Path, web: aiohttp.ClientSession, path: str
) -> None:
    async with proxied(tmp_path, model=Scripted(admits=False)) as ground:
        headers = {**ground.bearer, "Content-Type": "application/json"}
        for data in (b"{", b'{"messages": [{"role": "user", "content": "Hi"}]}'):
            async with web.post(ground.url + path, data=data, headers=headers) as response:
                assert response.status == 403
                assert "ada may not talk" in (await response.json())["error"]["message"]


@pytest.mark.parametrize("path", LONG)
async def test_more_messages_than_are_kept_are_refused_before_they_are_read(
    tmp_path: Path,
    web: aiohttp.ClientSession,
    readers: list[threading.Thread],
    monkeypatch: pytest.MonkeyPatch,
    path: str,
) -> None:
    monkeypatch.setattr(wishes, "_MESSAGES", 10)
    name = "input" if path == "/v1/responses" else "messages"
    said = LONG[path][name]
    async with proxied(tmp_path, model=Scripted()) as ground:
        status, _ = await ask(web, ground, path, {**LONG[path], name: (said * 4)[-9:]})
        assert status == 200
        readers.clear()
        status, told = await ask(web, ground, path, {**LONG[path], name: said * 4})
        assert (status, "more than 10 messages" in told) == (400, True)
    assert readers == []


async def test_one_message_that_becomes_many_is_refused_too(
    tmp_path: Path, web: aiohttp.ClientSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wishes, "_MESSAGES", 10)
    results = [{"type": "tool_result", "tool_use_id": f"t{n}", "content": "1"} for n in range(11)]
    body = {**requests.MESSAGES, "messages": [{"role": "user", "content": results}]}
    async with proxied(tmp_path, model=Scripted()) as ground:
        status, told = await ask(web, ground, "/v1/messages", body)
        assert (status, "more than 10 messages" in told) == (400, True)
