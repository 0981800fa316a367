# SPDX-License-Identifier: Apache-2.0
"""F11: streamed calls of tools as servers send them, as Claude Code reads them and as they are kept."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.connectors.api.proxy.ground import Scripted, far_side, proxied
from tests.connectors.api.proxy.test_tool_calls import MESSAGES, far, piece

__all__ = ["far"]

A, B = '{"path":"a"}', '{"path":"b"}'
BOTH = [("read", A), ("read", B)]


def chunk(delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


def call(*made: Any) -> dict[str, Any]:
    return chunk({"tool_calls": [piece(*made)]})


END = chunk({}, "tool_calls")
STREAMS: dict[str, tuple[list[dict[str, Any]], list[tuple[str, str]]]] = {
    "two, index 0 both, as Ollama": ([call(0, "call_a", "read", A), call(0, "call_b", "read", B), END], BOTH),
    "two, no index": ([call(None, "call_a", "read", A), call(None, "call_b", "read", B), END], BOTH),
    "the name in each piece": (
        [call(0, "call_a", "read", '{"pa'), call(0, "call_a", "read", 'th":"a"}'), END],
        BOTH[:1],
    ),
    "empty arguments": ([call(0, "c", "ls", ""), END], [("ls", "{}")]),
    "it ends with `stop`": ([call(0, "c", "ls", "{}"), chunk({}, "stop")], [("ls", "{}")]),
    "words behind the call": ([call(0, "c", "ls", "{}"), chunk({"content": "done"}), END], [("ls", "{}")]),
    "no id": ([call(0, None, "ls", "{}"), END], [("ls", "{}")]),
    # Siblings.
    "an empty id and an empty name in what follows": (
        [call(0, "call_a", "read", '{"pa'), call(0, "", "", 'th":"a"}'), END],
        BOTH[:1],
    ),
    "arguments in another script, cut anywhere": (
        [call(0, "c", "read", '{"path":"文'), call(0, None, None, '件"}'), END],
        [("read", '{"path":"文件"}')],
    ),
    "three, index 0 all": ([*(call(0, f"call_{n}", "read", A) for n in "abc"), END], [("read", A)] * 3),
    "two of two names, no id, no index": (
        [call(None, None, "ls", "{}"), call(None, None, "read", A), END],
        [("ls", "{}"), ("read", A)],
    ),
}


def blocks(data: bytes) -> tuple[list[tuple[str, str]], str]:
    """The calls in the stream, as a client puts them together, and why it says that it ends."""
    found: dict[int, list[str]] = {}
    reason = ""
    for line in data.decode().splitlines():
        if not line.startswith("data: {"):
            continue
        event = json.loads(line[6:])
        if event["type"] == "content_block_start" and event["content_block"]["type"] == "tool_use":
            assert event["content_block"]["id"]
            found[event["index"]] = [event["content_block"]["name"], ""]
        elif event["type"] == "content_block_delta" and event["index"] in found:
            found[event["index"]][1] += event["delta"]["partial_json"]
        elif event["type"] == "message_delta":
            reason = event["delta"]["stop_reason"]
    return [(name, arguments or "{}") for name, arguments in found.values()], reason


@pytest.mark.parametrize("name", STREAMS)
async def test_f11_each_call_is_one_and_whole(tmp_path: Path, far: tuple[str, list[Any]], name: str) -> None:
    url, sends = far
    chunks, expected = STREAMS[name]
    sends += chunks
    body = {
        "model": "x",
        "max_tokens": 99,
        "stream": True,
        "messages": [{"role": "user", "content": "hi"}],
        "tools": [{"name": tool, "input_schema": {"type": "object"}} for tool in ("read", "ls")],
    }
    async with (
        proxied(tmp_path, model=Scripted(far=far_side(url))) as ground,
        aiohttp.ClientSession() as session,
        session.post(ground.url + MESSAGES, json=body, headers=ground.bearer) as response,
    ):
        data = await response.read()
        assert response.status == 200
        found, reason = blocks(data)
        assert [(one, json.loads(arguments)) for one, arguments in found] == [
            (one, json.loads(arguments)) for one, arguments in expected
        ]
        assert reason == "tool_use"
        [kept] = await ground.captured()
        for one, arguments in expected:
            assert f'<tool_call>{{"name": "{one}", "arguments": {arguments}}}</tool_call>' in kept.response
        assert kept.response.count("<tool_call>") == len(expected)
