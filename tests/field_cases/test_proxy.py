# SPDX-License-Identifier: Apache-2.0
"""F5, F10, I1: requests as agents and their libraries send them, to our own model behind the proxy."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.connectors.api.proxy.ground import Ground, Scripted, proxied
from tests.connectors.api.proxy.test_own import CHAT, MESSAGES, NOTE, RESPONSES, ask
from tests.support import patience

Q = {"role": "user", "content": "What colour is grass?"}
FUNCTION = {
    "name": "get_weather",
    "description": "w",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
}
CALL = {"id": "1", "type": "function", "function": {"name": "get_weather", "arguments": "{}"}}
PIXEL = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
# Each with the words of the last question that the model gets, and words that it must not get.
TAKEN: dict[str, tuple[str, dict[str, Any], str, str]] = {
    "a picture and words": (
        CHAT,
        {"messages": [{"role": "user", "content": [{"type": "text", "text": "What colour?"}, PIXEL]}]},
        f"What colour?\n\n{NOTE.format('an image')}",
        "AAAA",
    ),
    "one token": (CHAT, {"messages": [Q], "max_tokens": 1}, Q["content"], "AAAA"),
    "a call without words, its result in parts": (
        CHAT,
        {
            "messages": [
                Q,
                {"role": "assistant", "content": None, "tool_calls": [CALL]},
                {"role": "tool", "tool_call_id": "1", "content": [{"type": "text", "text": "sunny"}]},
                Q,
            ],
            "tools": [{"type": "function", "function": FUNCTION}],
        },
        Q["content"],
        "AAAA",
    ),
    "a thought in the history": (
        MESSAGES,
        {
            "max_tokens": 50,
            "messages": [
                Q,
                {
                    "role": "assistant",
                    "content": [
                        {"type": "thinking", "thinking": "dull", "signature": "s"},
                        {"type": "text", "text": "Green."},
                    ],
                },
                Q,
            ],
        },
        Q["content"],
        "dull",
    ),
    "as Claude Code": (
        f"{MESSAGES}?beta=true",
        {
            "max_tokens": 200,
            "thinking": {"type": "enabled", "budget_tokens": 1024},
            "metadata": {"user_id": "u"},
            "system": [{"type": "text", "text": "You are a tool.", "cache_control": {"type": "ephemeral"}}],
            "messages": [
                {
                    "role": "user",
                    "content": [
                        {"type": "text", "text": Q["content"], "cache_control": {"type": "ephemeral"}}
                    ],
                }
            ],
            "tools": [
                {"name": "Bash", "description": "d", "input_schema": {"type": "object"}},
                {"type": "web_search_20250305", "name": "web_search"},
            ],
        },
        Q["content"],
        "ephemeral",
    ),
    "a text": (RESPONSES, {"input": Q["content"]}, Q["content"], "AAAA"),
    "as Codex": (
        RESPONSES,
        {
            "instructions": "be",
            "input": [
                {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Grass?"}]},
                {"type": "reasoning", "summary": [], "encrypted_content": "dull"},
                {
                    "type": "local_shell_call",
                    "call_id": "c",
                    "action": {"type": "exec", "command": ["ls"]},
                    "status": "completed",
                },
                {"type": "local_shell_call_output", "call_id": "c", "output": "a"},
                {"type": "web_search_call", "id": "w", "status": "completed"},
                {
                    "type": "message",
                    "role": "user",
                    "content": [{"type": "input_text", "text": "And the sky?"}],
                },
            ],
            "store": False,
            "include": ["reasoning.encrypted_content"],
            "reasoning": {"effort": "low"},
            "tools": [{"type": "web_search"}],
        },
        "And the sky?",
        "dull",
    ),
    # Siblings.
    "words in other scripts": (
        CHAT,
        {"messages": [{**Q, "content": "草は何色？ 🌱"}]},
        "草は何色？ 🌱",
        "AAAA",
    ),
    "words in two parts": (
        CHAT,
        {"messages": [{"role": "user", "content": [{"type": "text", "text": one} for one in ("a", "b")]}]},
        "ab",
        "AAAA",
    ),
}


@pytest.mark.parametrize("name", TAKEN)
async def test_f10_i1_what_agents_send_is_answered(name: str, tmp_path: Path) -> None:
    path, body, words, never = TAKEN[name]
    model = Scripted()
    async with proxied(tmp_path, model=model) as ground:
        for _ in range(2):
            status, said, turn = await ask(ground, path, {"model": "goodbot", **body})
            assert (status, bool(turn)) == (200, True), said
        asked = model.asked[-1].messages
        assert asked[-1]["content"].endswith(words)
        assert never not in json.dumps(asked, ensure_ascii=False)


async def raw(ground: Ground, head: str, data: bytes) -> bytes:
    """What comes back for bytes that no library of ours would send."""
    url = urlsplit(ground.url)
    async with asyncio.timeout(patience(20)):
        reader, writer = await asyncio.open_connection(url.hostname, url.port)
        lines = [*head.format(host=url.netloc).split("\n"), f"Authorization: Bearer {ground.token}"]
        lines += ["Content-Type: application/json", "", ""]
        writer.write("\r\n".join(lines).encode() + data)
        await writer.drain()
        answer = await reader.read()
        writer.close()
    return answer


def pieces(data: bytes, size: int) -> Iterator[bytes]:
    for at in range(0, len(data), size):
        piece = data[at : at + size]
        yield b"%x\r\n%s\r\n" % (len(piece), piece)
    yield b"0\r\n\r\n"


@pytest.mark.parametrize("size", [7, 1, 100_000])
async def test_f5_a_body_in_pieces_is_read(size: int, tmp_path: Path) -> None:
    data = json.dumps({"model": "goodbot", "messages": [Q]}).encode()
    head = f"POST {CHAT} HTTP/1.1\nHost: {{host}}\nConnection: close\nTransfer-Encoding: chunked"
    async with proxied(tmp_path, model=Scripted()) as ground:
        answer = await raw(ground, head, b"".join(pieces(data, size)))
    assert answer.startswith(b"HTTP/1.1 200")
    assert "Good dogs bark ☂.".encode() in answer or b"Good dogs bark \\u2602." in answer


async def test_f5_an_old_client_is_answered(tmp_path: Path) -> None:
    data = json.dumps({"model": "goodbot", "messages": [Q]}).encode()
    head = f"POST {CHAT} HTTP/1.0\nHost: {{host}}\nContent-Length: {len(data)}"
    async with proxied(tmp_path, model=Scripted()) as ground:
        answer = await raw(ground, head, data)
    assert answer.startswith((b"HTTP/1.0 200", b"HTTP/1.1 200"))
