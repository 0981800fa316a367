# SPDX-License-Identifier: Apache-2.0
"""Thoughts as model servers really send them, through the drivers."""

from __future__ import annotations

import contextlib
import dataclasses
import json
from collections.abc import AsyncGenerator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from goodbot.api.chat_answers import Completion
from goodbot.api.model import ResolvedModel
from goodbot.api.server import Generated, GenerateRequest
from goodbot.base.thoughts import KNOWN, Thought
from goodbot.config.secrets import Secret
from goodbot.inference.servers import chat
from goodbot.inference.servers.ollama_api import OllamaApi
from goodbot.inference.servers.openai import OpenAIServer
from goodbot.inference.servers.upstream import Upstream

from tests.core.inference.servers.remote import parts, started

Chunk = Mapping[str, Any]
ASKED = GenerateRequest(
    messages=[{"role": "user", "content": "What colour is grass?"}], max_tokens=64, temperature=0.7, seed=1
)


def chunk(delta: Chunk, finish: str | None = None, **more: Any) -> Chunk:
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": finish, **more}]}


@contextlib.asynccontextmanager
async def serving(lines: Sequence[bytes], path: str, shown: Sequence[str] = ()) -> AsyncGenerator[str]:
    """A server that streams these bytes, five at a time; `shown`: what Ollama says that its model can do."""
    data = b"".join(lines)

    async def answer(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        for at in range(0, len(data), 5):
            await response.write(data[at : at + 5])
        return response

    async def models(_: web.Request) -> web.Response:
        return web.json_response({"data": [{"id": "m"}]})

    async def show(_: web.Request) -> web.Response:
        return web.json_response({"capabilities": list(shown)})

    app = web.Application()
    app.add_routes([web.post(path, answer), web.get("/v1/models", models), web.post("/api/show", show)])
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


def events(*chunks: Chunk) -> list[bytes]:
    return [*(f"data: {json.dumps(one)}\n\n".encode() for one in chunks), b"data: [DONE]\n\n"]


SHAPES: dict[str, tuple[Sequence[Chunk], str, str]] = {
    "DeepSeek, SGLang": (
        [
            chunk({"content": None, "reasoning_content": "Hm."}),
            chunk({"content": "Green.", "reasoning_content": None}),
            chunk({}, "stop"),
        ],
        "Hm.",
        "Green.",
    ),
    "vLLM, mlx_lm": (
        [
            chunk({"reasoning": "H"}),
            chunk({"reasoning": "m."}),
            chunk({"content": "\n\nGreen."}),
            chunk({}, "stop"),
        ],
        "Hm.",
        "Green.",
    ),
    "Mistral": (
        [
            chunk({"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}]}]}),
            chunk({"content": "Green."}),
            chunk({}, "stop"),
        ],
        "Hm.",
        "Green.",
    ),
    "marks in the text": (
        [
            chunk({"content": "<thi"}),
            chunk({"content": "nk>\nHm.\n</th"}),
            chunk({"content": "ink>\n\nGreen."}),
            chunk({}, "stop"),
        ],
        "Hm.",
        "Green.",
    ),
    "begun by the template": (
        [chunk({"content": "Hm.\n</think>\n\nGreen."}), chunk({}, "stop")],
        "Hm.",
        "Green.",
    ),
    "harmony": (
        [
            chunk(
                {
                    "content": "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant"
                    "<|channel|>final<|message|>Green."
                }
            ),
            chunk({}, "stop"),
        ],
        "Hm.",
        "Green.",
    ),
    "parts of an answer": (
        [chunk({"content": [{"type": "output_text", "text": "Green."}]}), chunk({}, "stop")],
        "",
        "Green.",
    ),
    "an answer that is wrapped": (
        [chunk({"content": "<think>Hm.</think><response>Green.</resp"}), chunk({"content": "onse>"}, "stop")],
        "Hm.",
        "Green.",
    ),
    "JSON in harmony": (
        [
            chunk({"content": "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>final "}),
            chunk({"content": '<|constrain|>json<|message|>{"a":1}<|return|>'}, "stop"),
        ],
        "Hm.",
        '{"a":1}',
    ),
    "cut": ([chunk({"reasoning_content": "Hm"}), chunk({}, "length")], "Hm", ""),
    "cut, marks": ([chunk({"content": "<think>Hm"}), chunk({}, "length")], "Hm", ""),
    "only mentioned": (
        [chunk({"content": "Write <think> first."}), chunk({}, "stop")],
        "",
        "Write <think> first.",
    ),
}


@pytest.mark.parametrize("shape", SHAPES)
async def test_the_thought_is_apart_from_the_answer(shape: str) -> None:
    chunks, thought, answer = SHAPES[shape]
    async with serving(events(*chunks), chat.PATH) as url, started(OpenAIServer(None, parts(url))) as server:
        *pieces, whole = [piece async for piece in server.generate(ASKED)]
    assert isinstance(whole, Generated)
    assert (whole.thought, whole.text) == (thought, answer)
    if shape != "begun by the template":  # nobody knows before its end has come
        assert "".join(piece for piece in pieces if isinstance(piece, str)) == answer


async def test_tags_that_were_asked_for_are_kept() -> None:
    messages = [{"role": "user", "content": "Think, then write <response>a color</response>."}]
    chunks, thought, _ = SHAPES["an answer that is wrapped"]
    async with serving(events(*chunks), chat.PATH) as url, started(OpenAIServer(None, parts(url))) as server:
        *_, whole = [piece async for piece in server.generate(dataclasses.replace(ASKED, messages=messages))]
    assert isinstance(whole, Generated)
    assert (whole.thought, whole.text) == (thought, "<response>Green.</response>")


async def _told(url: str, opened: bool) -> tuple[str, Completion]:
    upstream = Upstream("vLLM", url, Secret(""))
    await upstream.open()
    try:
        stream = chat.stream(upstream, {}, opened=KNOWN[0] if opened else None)
        *pieces, whole = [piece async for piece in stream]
    finally:
        await upstream.close()
    assert isinstance(whole, Completion)
    return "".join(piece for piece in pieces if isinstance(piece, str)), whole


def _token(delta: Chunk, *tokens: int, finish: str | None = None) -> Chunk:
    told = {"content": [{"logprob": -0.5} for _ in tokens]}
    return {**chunk(delta, finish, token_ids=list(tokens), logprobs=told), "prompt_token_ids": [1, 2]}


async def test_tokens_of_the_thought_belong_to_what_the_answer_is_written_after() -> None:
    chunks = [
        _token({"content": "Hm"}, 5),
        _token({"content": "</think>"}, 6),
        _token({"content": "\n\n"}, 7),
        _token({"content": "Gre"}, 8),
        _token({"content": "en."}, 9),
        _token({}, 3, finish="stop"),
    ]
    async with serving(events(*chunks), chat.PATH) as url:
        text, whole = await _told(url, opened=True)
    assert text == whole.text == "Green."
    assert whole.prompt_tokens == (1, 2, 5, 6, 7)
    assert (whole.tokens, len(whole.logprobs), whole.thought_tokens) == ((8, 9, 3), 3, 3)


async def test_tokens_that_may_be_either_are_not_kept() -> None:
    chunks = [
        _token({"content": "Hm</think>Gre"}, 5, 6, 8),
        _token({"content": "en."}, 9),
        _token({}, 3, finish="stop"),
    ]
    async with serving(events(*chunks), chat.PATH) as url:
        text, whole = await _told(url, opened=True)
    assert (text, whole.thought) == ("Green.", "Hm")
    assert whole.tokens == whole.logprobs == ()


def _lines(*messages: Chunk) -> list[bytes]:
    """As Ollama streams them."""
    lines: list[Chunk] = [{"message": {"role": "assistant", **one}, "done": False} for one in messages]
    lines.append({"message": {"role": "assistant", "content": ""}, "done": True, "done_reason": "stop"})
    return [json.dumps(line).encode() + b"\n" for line in lines]


async def _ollamas(
    lines: Sequence[bytes], opened: bool = False, *, knows: bool = False
) -> tuple[list[Any], Completion]:
    """What it says; `knows`: that its model thinks."""
    async with serving(lines, "/api/chat", shown=["thinking"] if knows else []) as url:
        upstream = Upstream("Ollama", url, Secret(""))
        await upstream.open()
        try:
            answer = OllamaApi(upstream).chat({"model": "m"}, KNOWN[0] if opened else None)
            *pieces, whole = [piece async for piece in answer]
        finally:
            await upstream.close()
    assert isinstance(whole, Completion)
    return pieces, whole


async def test_ollama_tells_thoughts_in_a_field_of_its_own() -> None:
    pieces, whole = await _ollamas(_lines({"content": "", "thinking": "Hm."}, {"content": "Green."}))
    assert pieces == [Thought("Hm."), "Green."]
    assert (whole.text, whole.thought) == ("Green.", "Hm.")


@pytest.mark.parametrize("says", ["Hm.\n</think>\n\nGreen.", "<think>\nHm.\n</think>\n\nGreen."])
async def test_a_thought_that_the_prompt_begins_is_no_text_where_ollama_knows_of_none(says: str) -> None:
    """Of a model that was made of a GGUF file it may not know that it thinks."""
    half = len(says) // 2
    pieces, whole = await _ollamas(_lines({"content": says[:half]}, {"content": says[half:]}), opened=True)
    assert "".join(piece for piece in pieces if isinstance(piece, str)) == "Green."
    assert (whole.text, whole.thought) == ("Green.", "Hm.")


@pytest.mark.parametrize("knows", [False, True])
async def test_an_answer_of_ollamas_without_a_thought_is_the_answer(knows: bool) -> None:
    pieces, whole = await _ollamas(_lines({"content": "Green."}), opened=True, knows=knows)
    assert "Green." in pieces
    assert (whole.text, whole.thought) == ("Green.", "")


async def test_a_program_is_sent_on_with_the_template_that_may_begin_a_thought(tmp_path: Path) -> None:
    template = "{% if add_generation_prompt %}<think>{% endif %}"
    (tmp_path / "chat_template.jinja").write_text(template)
    model = ResolvedModel(name="m", path=tmp_path)
    async with (
        serving([], chat.PATH) as url,
        started(OpenAIServer(None, parts(url, model=model))) as server,
        server.far_side(ASKED) as far,
    ):
        assert far is not None
        assert far.template == template
