# SPDX-License-Identifier: Apache-2.0
"""A model for Codex: `/v1/responses` as far as the program needs it; what it does is in the prompt.

`ZSLOW` is answered once `go` is set, `ZAGENT` has it start a subagent first; all else is answered at
once. `calls` holds the bodies of all calls, `sent` their headers.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web

TITLE = "single-line task title"
"""What Codex asks a hidden thread for."""


class Model:
    """It counts its answers: `Answer 1.`, `Answer 2.` …, and those to hidden threads not."""

    def __init__(self) -> None:
        self.calls: list[dict[str, Any]] = []
        self.sent: list[dict[str, str]] = []
        self.go = asyncio.Event()
        self.address = ""

    def asked(self, word: str) -> int:
        """How many calls had this in what their person said last."""
        return sum(word in _last(body) for body in self.calls)

    async def responses(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        said = _last(body)
        hidden = TITLE in said
        if not hidden:
            self.calls.append(body)
            self.sent.append(dict(request.headers))
        number = len(self.calls)
        if "ZSLOW" in said and not hidden:
            await self.go.wait()
        text = "A title" if hidden else f"Answer {number}."
        item: dict[str, Any] = {
            "type": "message",
            "role": "assistant",
            "id": f"msg_{number}",
            "status": "completed",
            "content": [{"type": "output_text", "text": text, "annotations": []}],
        }
        if "ZAGENT" in json.dumps(body["input"][-1]) and not hidden:
            item = {
                "type": "function_call",
                "id": f"fc_{number}",
                "call_id": f"call_{number}",
                "namespace": "multi_agent_v1",
                "name": "spawn_agent",
                "status": "completed",
                "arguments": json.dumps({"message": "Inner.", "task_name": "inner"}),
            }
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        for event in _events(item, number):
            data = f"event: {event['type']}\ndata: {json.dumps(event)}\n\n"
            await response.write(data.encode())
        await response.write_eof()
        return response


@asynccontextmanager
async def serving() -> AsyncIterator[Model]:
    """The model on a port of its own."""
    model = Model()
    app = web.Application(client_max_size=64 << 20)
    app.router.add_post("/v1/responses", model.responses)
    runner = web.AppRunner(app, shutdown_timeout=0.1, handler_cancellation=True)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    model.address = f"http://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield model
    finally:
        model.go.set()
        await runner.cleanup()


def _last(body: dict[str, Any]) -> str:
    users = [one for one in body["input"] if one.get("role") == "user"]
    return json.dumps(users[-1:])


def _events(item: dict[str, Any], number: int) -> list[dict[str, Any]]:
    response = {"id": f"resp_{number}", "object": "response"}
    events: list[dict[str, Any]] = [
        {"type": "response.created", "response": {**response, "status": "in_progress", "output": []}}
    ]
    if item["type"] == "message":
        begun = {**item, "status": "in_progress", "content": []}
        events += [
            {"type": "response.output_item.added", "output_index": 0, "item": begun},
            {
                "type": "response.output_text.delta",
                "item_id": item["id"],
                "output_index": 0,
                "content_index": 0,
                "delta": item["content"][0]["text"],
            },
        ]
    usage = {
        "input_tokens": 5,
        "output_tokens": 3,
        "total_tokens": 8,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens_details": {"reasoning_tokens": 0},
    }
    done = {**response, "status": "completed", "output": [item], "usage": usage}
    return [
        *events,
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"type": "response.completed", "response": done},
    ]
