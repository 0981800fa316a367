# SPDX-License-Identifier: Apache-2.0
"""A model server of somebody else's: what it was asked, and answers as OpenAI's and Anthropic's servers give.

What it sends is read with the types of the official clients, which are made from the published schemas
(`test_upstream.py`).
"""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import json
import zlib
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

WORDS = ("Good ", "dogs ", "bark ☂", ".")
TEXT = "".join(WORDS)
CALL = {"name": "add", "arguments": '{"a": 1, "b": 2}'}
"""What it calls when it is given tools."""


@dataclass(frozen=True, kw_only=True)
class Got:
    """One request, as it arrived."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass
class Upstream:
    """The fake. `wait` holds every stream after its first piece; `broken` hangs up there."""

    got: list[Got] = field(default_factory=list[Got])
    sent: list[bytes] = field(default_factory=list[bytes])
    """What the last answer's body was, in the pieces in which it left."""
    gone: asyncio.Event = field(default_factory=asyncio.Event)
    """The client hung up in the middle of a stream."""
    waits: bool = False
    goes_on: asyncio.Event = field(default_factory=asyncio.Event)
    broken: bool = False
    then: Sequence[bytes] | None = None
    """In the place of a stream's third event, and of all that would follow."""
    status: int = 200
    says: str = ""
    """In place of `TEXT`."""
    toolless: bool = False
    """It calls no tool, whatever it is given."""
    endless: bool = False
    written: int = 0
    """Bytes of an endless stream that were taken from it."""
    url: str = ""
    extra: Mapping[str, str] = field(default_factory=dict[str, str])
    refuses: list[tuple[int, Any]] = field(default_factory=list[tuple[int, Any]])
    """Statuses and words (or whole bodies) of the next answers."""
    packs: tuple[str, Callable[[bytes], bytes]] | None = None
    """What it compresses its answers with, though nobody asked for it."""
    tokens: bool = False
    """It tells token ids and log-probs, as vLLM does when it is asked."""

    async def answer(self, request: web.Request) -> web.StreamResponse:
        body = await request.content.read()  # as it came, compressed or not
        self.got.append(
            Got(method=request.method, path=request.path_qs, headers=request.headers.copy(), body=body)
        )
        if self.refuses:
            status, told = self.refuses.pop(0)
            whole = {"error": {"message": told}} if isinstance(told, str) else told
            return web.json_response(whole, status=status)
        if self.status != 200:
            error = {"error": {"message": "nope", "type": "x", "code": None}}
            told = {"retry-after": "0", "x-request-id": "r1"}
            return web.json_response(error, status=self.status, headers=told)
        packed = request.headers.get("Content-Encoding")
        plain = {"gzip": gzip.decompress, "deflate": zlib.decompress}.get(packed or "", bytes)(body)
        if packed not in (None, "gzip", "deflate", "identity"):
            plain = b'{"model": "m-1"}'
        path, asked = request.path, json.loads(plain or b"{}")
        if path not in _APIS:
            model = {"id": "m-1", "object": "model", "created": 1, "owned_by": "x"}
            return web.json_response({"object": "list", "data": [model]})
        if self.toolless:
            asked.pop("tools", None)
        words = [self.says] if self.says else list(WORDS)
        events, whole = _APIS[path](asked, words, self.tokens)
        if self.packs is not None:
            name, pack = self.packs
            streamed = asked.get("stream")
            self.sent = [pack(b"".join(events) if streamed else json.dumps(whole).encode())]
            type_ = "text/event-stream" if streamed else "application/json"
            told = {"Content-Encoding": name, "Content-Type": type_}
            return web.Response(body=self.sent[0], headers=told)
        if not asked.get("stream"):
            return web.json_response(whole, headers=dict(self.extra))
        return await self._stream(request, events)

    async def _stream(self, request: web.Request, events: Sequence[bytes]) -> web.StreamResponse:
        response = web.StreamResponse(
            headers={"Content-Type": "text/event-stream", "x-request-id": "r1", **self.extra}
        )
        await response.prepare(request)
        self.sent = []
        try:
            for number, event in enumerate(events):
                if number == 2 and self.waits:
                    await self.goes_on.wait()
                if number == 2 and self.broken:
                    assert request.transport is not None
                    request.transport.close()
                    return response
                if number == 2 and self.then is not None:
                    for one in self.then:
                        await response.write(one)
                    return response
                await response.write(event)
                self.sent.append(event)
                while number == 2 and self.endless:
                    await response.write(b": " + b"x" * 16381 + b"\n")
                    self.written += 16384
        except (ConnectionResetError, asyncio.CancelledError):
            self.gone.set()
            raise
        return response


@contextlib.asynccontextmanager
async def upstream() -> AsyncIterator[Upstream]:
    fake = Upstream()
    application = web.Application(client_max_size=80 << 20)
    application.router.add_route("*", "/{path:.*}", fake.answer)
    runner = web.AppRunner(
        application, handler_cancellation=True, shutdown_timeout=1.0, auto_decompress=False
    )
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    fake.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield fake
    finally:
        fake.goes_on.set()
        await runner.cleanup()


Made = tuple[list[bytes], dict[str, Any]]


def data(value: Any, kind: str = "") -> bytes:
    name = f"event: {kind}\n" if kind else ""
    return f"{name}data: {json.dumps(value)}\n\n".encode()


def chat(asked: Mapping[str, Any], words: list[str], tokens: bool) -> Made:
    head = {"id": "chatcmpl-1", "created": 1, "model": asked["model"]}
    usage = {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7}
    told = tokens and asked.get("return_token_ids")

    def choice(delta: Any, finish: str | None, number: int = -1) -> dict[str, Any]:
        more: dict[str, Any] = {}
        if told and number >= 0:
            entry = {"token": "t", "logprob": -0.5, "bytes": None, "top_logprobs": []}
            more = {"token_ids": [10 + number], "logprobs": {"content": [entry]}}
        return {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish, **more}

    def chunk(one: dict[str, Any], **more: Any) -> bytes:
        return data({**head, "object": "chat.completion.chunk", "choices": [one], **more})

    begun = {"prompt_token_ids": [1, 2, 3]} if told else {}
    events = [chunk(choice({"role": "assistant", "content": ""}, None), **begun)]
    if asked.get("tools"):
        call = {"id": "call_1", "type": "function", "function": CALL}
        message = {"role": "assistant", "content": None, "refusal": None, "tool_calls": [call]}
        finish = "tool_calls"
        first = {**call, "index": 0, "function": {"name": CALL["name"], "arguments": ""}}
        events.append(chunk(choice({"tool_calls": [first]}, None)))
        for half in (CALL["arguments"][:7], CALL["arguments"][7:]):
            part = {"index": 0, "function": {"arguments": half}}
            events.append(chunk(choice({"tool_calls": [part]}, None)))
    else:
        message = {"role": "assistant", "content": "".join(words), "refusal": None}
        finish = "stop"
        events += [chunk(choice({"content": word}, None, n)) for n, word in enumerate(words)]
    events.append(chunk(choice({}, finish)))
    if (asked.get("stream_options") or {}).get("include_usage"):
        last_words = {"object": "chat.completion.chunk", "choices": [], "usage": usage}
        events.append(data({**head, **last_words}))
    events.append(b"data: [DONE]\n\n")
    last = {"index": 0, "message": message, "logprobs": None, "finish_reason": finish}
    if told:
        entry = {"token": "t", "logprob": -0.5, "bytes": None, "top_logprobs": []}
        last |= {"token_ids": [10, 11], "logprobs": {"content": [entry, entry], "refusal": None}}
        head |= {"prompt_token_ids": [1, 2, 3]}
    return events, {**head, "object": "chat.completion", "choices": [last], "usage": usage}


def completions(asked: Mapping[str, Any], words: list[str], tokens: bool) -> Made:
    del tokens
    head = {"id": "cmpl-1", "object": "text_completion", "created": 1, "model": asked["model"]}

    def made(text: str, finish: str | None) -> dict[str, Any]:
        choice = {"index": 0, "text": text, "logprobs": None, "finish_reason": finish}
        return {**head, "choices": [choice]}

    events = [data(made(word, None)) for word in words] + [data(made("", "stop"))]
    return [*events, b"data: [DONE]\n\n"], made("".join(words), "stop")


def responses(asked: Mapping[str, Any], words: list[str], tokens: bool) -> Made:
    del tokens
    text = "".join(words)
    if asked.get("tools"):
        about_it = {"id": "fc_1", "call_id": "call_1", "status": "completed"}
        item: dict[str, Any] = {"type": "function_call", **about_it, **CALL}
    else:
        part = {"type": "output_text", "text": text, "annotations": [], "logprobs": []}
        about_it = {"id": "msg_1", "role": "assistant", "status": "completed"}
        item = {"type": "message", **about_it, "content": [part]}
    usage = {
        "input_tokens": 3,
        "output_tokens": 4,
        "total_tokens": 7,
        "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
        "output_tokens_details": {"reasoning_tokens": 0},
    }
    whole = {
        "id": "resp_1",
        "object": "response",
        "created_at": 1,
        "model": asked["model"],
        "error": None,
        "incomplete_details": None,
        "instructions": None,
        "metadata": {},
        "output": [item],
        "parallel_tool_calls": True,
        "temperature": 1.0,
        "tool_choice": "auto",
        "tools": [],
        "top_p": 1.0,
        "status": "completed",
        "usage": usage,
    }
    count = iter(range(100))

    def event(kind: str, **fields: Any) -> bytes:
        return data({"type": kind, "sequence_number": next(count), **fields}, kind)

    begun = {**whole, "status": "in_progress", "output": [], "usage": None}
    events = [event("response.created", response=begun)]
    if not asked.get("tools"):
        empty = {**item, "content": [], "status": "in_progress"}
        part = {"type": "output_text", "text": "", "annotations": [], "logprobs": []}
        about: dict[str, Any] = {"item_id": "msg_1", "output_index": 0, "content_index": 0}
        events.append(event("response.output_item.added", output_index=0, item=empty))
        events.append(event("response.content_part.added", **about, part=part))
        events += [event("response.output_text.delta", **about, delta=word, logprobs=[]) for word in words]
        events.append(event("response.output_text.done", **about, text=text, logprobs=[]))
        events.append(event("response.content_part.done", **about, part={**part, "text": text}))
    else:
        empty = {**item, "arguments": "", "status": "in_progress"}
        events.append(event("response.output_item.added", output_index=0, item=empty))
        delta: dict[str, Any] = {"item_id": "fc_1", "output_index": 0}
        given = CALL["arguments"]
        events.append(event("response.function_call_arguments.delta", **delta, delta=given))
        delta["name"] = CALL["name"]
        events.append(event("response.function_call_arguments.done", **delta, arguments=given))
    events.append(event("response.output_item.done", output_index=0, item=item))
    events.append(event("response.completed", response=whole))
    return events, whole


def messages(asked: Mapping[str, Any], words: list[str], tokens: bool) -> Made:
    del tokens
    usage = {"input_tokens": 3, "output_tokens": 4}
    head = {"id": "msg_1", "type": "message", "role": "assistant", "model": asked["model"]}
    block: dict[str, Any] = {"type": "text", "text": "".join(words)}
    reason = "end_turn"
    begun: dict[str, Any] = {"type": "text", "text": ""}
    deltas: list[dict[str, Any]] = [{"type": "text_delta", "text": word} for word in words]
    if asked.get("tools"):
        given = CALL["arguments"]
        block = {"type": "tool_use", "id": "toolu_1", "name": CALL["name"], "input": json.loads(given)}
        begun, reason = {**block, "input": {}}, "tool_use"
        deltas = [{"type": "input_json_delta", "partial_json": half} for half in (given[:7], given[7:])]
    whole = {**head, "content": [block], "stop_reason": reason, "stop_sequence": None, "usage": usage}
    start = {**whole, "content": [], "stop_reason": None}

    def event(kind: str, **fields: Any) -> bytes:
        return data({"type": kind, **fields}, kind)

    ended = {"stop_reason": reason, "stop_sequence": None}
    return [
        event("message_start", message=start),
        event("content_block_start", index=0, content_block=begun),
        event("ping"),
        *(event("content_block_delta", index=0, delta=delta) for delta in deltas),
        event("content_block_stop", index=0),
        event("message_delta", delta=ended, usage=usage),
        event("message_stop"),
    ], whole


def count(asked: Mapping[str, Any], words: list[str], tokens: bool) -> Made:
    del asked, words, tokens
    return [], {"input_tokens": 42}


def embeddings(asked: Mapping[str, Any], words: list[str], tokens: bool) -> Made:
    del words, tokens
    one = {"object": "embedding", "index": 0, "embedding": [0.5, -0.5]}
    usage = {"prompt_tokens": 3, "total_tokens": 3}
    return [], {"object": "list", "data": [one], "model": asked["model"], "usage": usage}


_APIS: dict[str, Callable[[Mapping[str, Any], list[str], bool], Made]] = {
    "/v1/chat/completions": chat,
    "/v1/completions": completions,
    "/v1/responses": responses,
    "/v1/messages": messages,
    "/v1/messages/count_tokens": count,
    "/v1/embeddings": embeddings,
}
