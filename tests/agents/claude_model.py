# SPDX-License-Identifier: Apache-2.0
"""A model for Claude Code: `/v1/messages` as far as the program needs it, and what it does is typed.

A prompt with `ZTOOL` has it run a command first, `ZSLOW` a command of three seconds, `ZBACK` one in the
background, `ZAGENT` a subagent; all else is answered at once. `calls` holds the bodies of all calls.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web


class Model:
    """It counts its answers: `Answer 1.`, `Answer 2.` …"""

    def __init__(self) -> None:
        self.calls: list[dict[str, Any]] = []
        self.hold = asyncio.Event()
        self.hold.set()
        """While it is not set, no call is answered."""
        self.address = ""

    async def messages(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        self.calls.append(body)
        number = len(self.calls)
        inner = "x-claude-code-agent-id" in request.headers
        await self.hold.wait()
        blocks = _blocks(body, number, inner=inner)
        used = any(block["type"] == "tool_use" for block in blocks)
        message = {
            "id": f"msg_{number}",
            "type": "message",
            "role": "assistant",
            "model": body["model"],
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            "usage": {"input_tokens": 10, "output_tokens": 1},
        }
        stop = "tool_use" if used else "end_turn"
        if not body.get("stream"):
            return web.json_response({**message, "content": blocks, "stop_reason": stop})
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        with contextlib.suppress(ConnectionResetError):  # somebody has pressed Escape
            await response.prepare(request)
            for event in _events(message, blocks, stop):
                data = f"event: {event['type']}\ndata: {json.dumps(event)}\n\n"
                await response.write(data.encode())
            await response.write_eof()
        return response

    async def count(self, _: web.Request) -> web.Response:
        return web.json_response({"input_tokens": 10})


@asynccontextmanager
async def serving() -> AsyncIterator[Model]:
    """The model on a port of its own."""
    model = Model()
    app = web.Application(client_max_size=64 << 20)
    app.router.add_post("/v1/messages", model.messages)
    app.router.add_post("/v1/messages/count_tokens", model.count)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    port = runner.addresses[0][1]
    model.address = f"http://127.0.0.1:{port}"
    try:
        yield model
    finally:
        model.hold.set()
        await runner.cleanup()


def _blocks(body: dict[str, Any], number: int, *, inner: bool) -> list[dict[str, Any]]:
    said, results = _since(body["messages"])
    answer = {"type": "text", "text": f"Answer {number}."}
    if inner or results or "<task-notification>" in said:
        return [answer]

    def use(name: str, **given: Any) -> dict[str, Any]:
        return {"type": "tool_use", "id": f"toolu_{number}", "name": name, "input": given}

    if "ZTOOL" in said:
        look = {"type": "text", "text": "Let me look. "}
        return [look, use("Bash", command="echo THE-TOOLS-WORDS", description="look")]
    if "ZSLOW" in said:
        return [use("Bash", command="sleep 3; echo THE-TOOLS-WORDS", description="look")]
    if "ZBACK" in said:
        return [use("Bash", command="sleep 2", description="wait", run_in_background=True)]
    if "ZAGENT" in said:
        return [use("Agent", description="ask", prompt="Inner.", subagent_type="general-purpose")]
    return [answer]


def _since(messages: list[dict[str, Any]]) -> tuple[str, bool]:
    """What was said since the model's last words, and whether a tool's result is in it."""
    texts: list[str] = []
    results = False
    for message in reversed(messages):
        if message["role"] == "assistant":
            break
        content = message["content"]
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        results = results or any(block["type"] == "tool_result" for block in blocks)
        texts += [block.get("text", "") for block in blocks if block["type"] == "text"]
    return "\n".join(texts), results


def _events(message: dict[str, Any], blocks: list[dict[str, Any]], stop: str) -> list[dict[str, Any]]:
    events: list[dict[str, Any]] = [{"type": "message_start", "message": message}]
    for index, block in enumerate(blocks):
        if block["type"] == "text":
            empty, delta = {**block, "text": ""}, {"type": "text_delta", "text": block["text"]}
        else:
            empty = {**block, "input": {}}
            delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
        events += [
            {"type": "content_block_start", "index": index, "content_block": empty},
            {"type": "content_block_delta", "index": index, "delta": delta},
            {"type": "content_block_stop", "index": index},
        ]
    return [
        *events,
        {
            "type": "message_delta",
            "delta": {"stop_reason": stop, "stop_sequence": None},
            "usage": {"output_tokens": 5},
        },
        {"type": "message_stop"},
    ]
