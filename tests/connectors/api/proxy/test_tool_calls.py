# SPDX-License-Identifier: Apache-2.0
"""Streamed calls of tools as servers really number them: each is one, in every API and in what is kept."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from goodbot_connectors.api.proxy.dialects.chat import ChatAnswer
from goodbot_connectors.api.proxy.dialects.messages import MessageAnswer
from goodbot_connectors.api.proxy.dialects.tools import Calls

from tests.connectors.api.proxy import requests
from tests.connectors.api.proxy.ground import Scripted, far_side, proxied
from tests.support import within

CHAT, MESSAGES, RESPONSES = "/v1/chat/completions", "/v1/messages", "/v1/responses"


def piece(number: int | None, id_: str | None, name: str | None, arguments: Any) -> dict[str, Any]:
    function: dict[str, Any] = {"arguments": arguments}
    if name is not None:
        function["name"] = name
    made: dict[str, Any] = {"type": "function", "function": function}
    if number is not None:
        made["index"] = number
    if id_ is not None:
        made["id"] = id_
    return made


A, B = '{"a": 1, "b": 2}', '{"a": 3, "b": 4}'
TWO = [("add", A), ("add", B)]
STREAMS: dict[str, tuple[list[list[dict[str, Any]]], list[tuple[str, str]]]] = {
    "one number for both": ([[piece(0, "c1", "add", A)], [piece(0, "c2", "add", B)]], TWO),
    "no number": ([[piece(None, "c1", "add", A)], [piece(None, "c2", "add", B)]], TWO),
    "no number, in one chunk": ([[piece(None, "c1", "add", A), piece(None, "c2", "add", B)]], TWO),
    "one number, in one chunk": ([[piece(0, "c1", "add", A), piece(0, "c2", "add", B)]], TWO),
    "one number, no ids": ([[piece(0, None, "add", A)], [piece(0, None, "add", B)]], TWO),
    "no number, no ids": ([[piece(None, None, "add", A)], [piece(None, None, "add", B)]], TWO),
    "one id for both": ([[piece(0, "c", "add", A)], [piece(0, "c", "add", B)]], TWO),
    "another name, no ids, no arguments": (
        [[piece(0, None, "now", "")], [piece(0, None, "here", "")]],
        [("now", ""), ("here", "")],
    ),
    "another name before the arguments are whole": (
        [[piece(0, None, "now", "{")], [piece(0, None, "add", A)]],
        [("now", "{"), ("add", A)],
    ),
    "one id for both, the second's arguments later": (
        [[piece(0, "c", "add", A)], [piece(0, "c", "add", "")], [piece(0, None, None, B)]],
        TWO,
    ),
    "id and name in each piece, an empty one last": (
        [[piece(0, "c", "add", A[:6])], [piece(0, "c", "add", A[6:])], [piece(0, "c", "add", "")]],
        TWO[:1],
    ),
    "lists, no ids": (
        [[piece(0, None, "add", "[1]")], [piece(0, None, "add", "[2]")]],
        [("add", "[1]"), ("add", "[2]")],
    ),
    "lists in place of text": (
        [[piece(0, "c1", "add", [1])], [piece(0, "c2", "add", [2])]],
        [("add", "[1]"), ("add", "[2]")],
    ),
    "one number, in pieces": (
        [
            [piece(0, "c1", "add", "")],
            [piece(0, None, None, A[:6])],
            [piece(0, None, None, A[6:])],
            [piece(0, "c2", "add", "")],
            [piece(0, None, None, B[:6])],
            [piece(0, None, None, B[6:])],
        ],
        TWO,
    ),
    "arguments that never came": (
        [[piece(0, "c1", "add", "")], [piece(0, "c2", "add", B)]],
        [("add", ""), ("add", B)],
    ),
    "side by side": (
        [
            [piece(0, "c1", "add", ""), piece(1, "c2", "add", "")],
            [piece(1, None, None, B[:6])],
            [piece(0, None, None, A[:6])],
            [piece(1, None, None, B[6:])],
            [piece(0, None, None, A[6:])],
        ],
        TWO,
    ),
    "side by side without numbers": (
        [
            [piece(None, "c1", "add", ""), piece(None, "c2", "add", "")],
            [piece(None, None, None, A), piece(None, None, None, B)],
        ],
        TWO,
    ),
    "objects in place of text": (
        [[piece(0, "c1", "add", json.loads(A))], [piece(0, "c2", "add", json.loads(B))]],
        TWO,
    ),
    "the name in each piece": ([[piece(0, "c1", "add", A[:6])], [piece(0, "c1", "add", A[6:])]], TWO[:1]),
    "a name without id in each piece": (
        [[piece(0, "c1", "add", A[:6])], [piece(0, None, "add", A[6:])]],
        TWO[:1],
    ),
    "a new id in each piece": (
        [[piece(0, "c1", "add", A[:6])], [piece(0, "c9", None, A[6:])], [piece(0, "c8", None, "")]],
        TWO[:1],
    ),
    "a new number in each piece": ([[piece(0, "c1", "add", A[:6])], [piece(1, "c1", None, A[6:])]], TWO[:1]),
    "the id after the name": ([[piece(0, None, "add", "")], [piece(0, "c1", None, A)]], TWO[:1]),
    "the name after the id": ([[piece(0, "c1", None, "")], [piece(0, None, "add", A)]], TWO[:1]),
    "numbers from one": ([[piece(1, "c1", "add", A)], [piece(2, "c2", "add", B)]], TWO),
}


def chunks(pieces: Sequence[list[dict[str, Any]]]) -> list[dict[str, Any]]:
    """A stream of them, with what real ones also hold: a chunk of usage alone, and empty ones."""
    head = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    found: list[dict[str, Any]] = [{**head, "choices": [], "usage": None}]
    for calls in pieces:
        delta = {"role": "assistant", "content": None, "tool_calls": calls}
        found.append({**head, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]})
    last = {"index": 0, "delta": {"content": ""}, "finish_reason": "tool_calls"}
    usage = {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7}
    return [*found, {**head, "choices": [last]}, {**head, "choices": [], "usage": usage}]


@pytest.fixture
async def far(unused_tcp_port: int) -> Any:
    """A server that sends what the test puts into `sends`."""
    sends: list[dict[str, Any]] = []

    async def answer(request: web.Request) -> web.StreamResponse:
        await request.read()
        if len(sends) == 1:  # it does not stream, whatever was asked
            return web.json_response(sends[0])
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        for chunk in sends:
            await response.write(f"data: {json.dumps(chunk)}\n\n".encode())
        await response.write(b"data: [DONE]\n\n")
        return response

    application = web.Application()
    application.router.add_post("/v1/chat/completions", answer)
    runner = web.AppRunner(application)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", unused_tcp_port).start()
    yield f"http://127.0.0.1:{unused_tcp_port}", sends
    await runner.cleanup()


def called(path: str, data: bytes) -> list[tuple[str, str, str]]:
    """The ids, names and arguments of the calls in a stream, as the API's clients put them together."""
    events = [json.loads(line[6:]) for line in data.decode().splitlines() if line[:7] == "data: {"]
    if path == RESPONSES:
        items = [one["item"] for one in events if one["type"] == "response.output_item.done"]
        whole = events[-1]["response"]["output"]
        assert whole == items
        return [(one["call_id"], one["name"], one["arguments"]) for one in items]
    found: dict[int, list[str]] = {}
    for one in events:
        if path == MESSAGES:
            if one["type"] == "content_block_start":
                block = one["content_block"]
                assert one["index"] not in found
                found[one["index"]] = [block["id"], block["name"], ""]
            elif one["type"] == "content_block_delta":
                found[one["index"]][2] += one["delta"]["partial_json"]
            continue
        for choice in one["choices"]:
            for call in choice["delta"].get("tool_calls", ()):
                known = found.setdefault(call["index"], ["", "", ""])
                known[0] = known[0] or call.get("id", "")
                known[1] = known[1] or call["function"].get("name", "")
                known[2] += call["function"]["arguments"]
    return [(id_, name, arguments) for id_, name, arguments in found.values() if name]


@pytest.mark.parametrize("path", [CHAT, MESSAGES, RESPONSES])
@pytest.mark.parametrize("name", STREAMS)
async def test_each_call_is_one(tmp_path: Path, far: tuple[str, list[Any]], path: str, name: str) -> None:
    url, sends = far
    pieces, expected = STREAMS[name]
    sends += chunks(pieces)
    async with (
        proxied(tmp_path, model=Scripted(far=far_side(url))) as ground,
        aiohttp.ClientSession() as session,
    ):
        body = {**requests.TOOLS[path], "stream": True}
        async with session.post(ground.url + path, json=body, headers=ground.bearer) as response:
            data = await response.read()
            assert response.status == 200
        found = called(path, data)
        assert [one[1:] for one in found] == expected
        ids = [one[0] for one in found]
        assert all(ids)
        assert len(set(ids)) == len(ids)
        [kept] = await ground.captured()
        assert kept.response == "".join(
            f'<tool_call>{{"name": "{name}", "arguments": {arguments or "{}"}}}</tool_call>'
            for name, arguments in expected
        )


@pytest.mark.parametrize("path", [MESSAGES, RESPONSES])
async def test_a_server_that_does_not_stream_is_understood(
    tmp_path: Path, far: tuple[str, list[Any]], path: str
) -> None:
    url, sends = far
    calls = [piece(0, "c1", "add", A), piece(0, "c2", "add", B)]
    message = {"role": "assistant", "content": "", "tool_calls": calls}
    sends.append({"choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}]})
    async with (
        proxied(tmp_path, model=Scripted(far=far_side(url))) as ground,
        aiohttp.ClientSession() as session,
    ):
        body = {**requests.TOOLS[path], "stream": True}
        async with session.post(ground.url + path, json=body, headers=ground.bearer) as response:
            data = await response.read()
            assert response.status == 200
        assert [one[1:] for one in called(path, data)] == TWO


@pytest.mark.parametrize("name", STREAMS)
def test_what_is_kept_of_an_upstream_s_stream(name: str) -> None:
    pieces, expected = STREAMS[name]
    answer = ChatAnswer()
    for chunk in chunks(pieces):
        answer.event(chunk)
    assert [(call.name, call.arguments) for call in answer.said().calls] == expected


def test_what_is_kept_of_an_answer_at_once() -> None:
    """Without numbers, and with one for all, as some servers have them there too."""
    for number in (None, 0):
        calls = [piece(number, "c1", "add", A), piece(number, "c2", "add", json.loads(B))]
        answer = ChatAnswer()
        answer.whole({"choices": [{"message": {"content": "", "tool_calls": calls}}]})
        assert [(call.name, call.arguments) for call in answer.said().calls] == TWO


def test_two_blocks_with_one_number_are_two_calls() -> None:
    answer = MessageAnswer()
    for id_, arguments in (("t1", A), ("t2", B)):
        block: dict[str, Any] = {"type": "tool_use", "id": id_, "name": "add", "input": {}}
        answer.event({"type": "content_block_start", "index": 0, "content_block": block})
        for half in (arguments[:5], arguments[5:]):
            delta = {"type": "input_json_delta", "partial_json": half}
            answer.event({"type": "content_block_delta", "index": 0, "delta": delta})
    assert [(call.name, call.arguments) for call in answer.said().calls] == TWO


def test_very_many_pieces_of_one_call_are_put_together_in_time() -> None:
    calls = Calls()
    calls.add(0, "c1", "add")
    with within(5):
        for _ in range(200_000):
            calls.add(0, arguments="0123456789" * 4)
        [call] = calls.all()
    assert len(call.arguments) == 8_000_000
