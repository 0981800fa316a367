# SPDX-License-Identifier: Apache-2.0
"""The official Python clients against the proxy: before an upstream, and with our own model."""

from __future__ import annotations

import contextlib
import json
from collections.abc import AsyncIterator
from pathlib import Path

import anthropic
import openai
import pytest
from goodbot.api.server import BASE

from tests.connectors.api.proxy import requests
from tests.connectors.api.proxy.ground import Ground, Scripted, proxied
from tests.connectors.api.proxy.upstream import TEXT, Upstream

CALLING = ("Sure. ", '<tool_call>{"name": "add", "arguments": {"a": 1, "b": 2}}</tool_call>')
GIVEN = {"a": 1, "b": 2}
WAYS = ["upstream", "own"]


@contextlib.asynccontextmanager
async def _ground(way: str, home: Path, fake: Upstream, *, tools: bool) -> AsyncIterator[Ground]:
    if way == "own":
        model = Scripted(says=CALLING) if tools else Scripted()
        async with proxied(home, model=model) as ground:
            yield ground
    else:
        async with proxied(home, upstream=fake.url, upstream_dialect="both") as ground:
            yield ground


def _openai(ground: Ground) -> openai.AsyncOpenAI:
    return openai.AsyncOpenAI(api_key=ground.token, base_url=f"{ground.url}/v1", max_retries=0)


def _anthropic(ground: Ground) -> anthropic.AsyncAnthropic:
    return anthropic.AsyncAnthropic(api_key=ground.token, base_url=ground.url, max_retries=0)


@pytest.mark.parametrize("way", WAYS)
async def test_openai_chat(way: str, tmp_path: Path, fake: Upstream) -> None:
    async with _ground(way, tmp_path, fake, tools=False) as ground, _openai(ground) as client:
        raw = await client.chat.completions.with_raw_response.create(**requests.CHAT)
        assert raw.parse().choices[0].message.content == TEXT
        [kept] = await ground.captured()
        assert raw.headers["x-goodbot-turn"] == kept.message_id
        assert kept.version == (3 if way == "own" else None)
        stream = await client.chat.completions.create(
            **requests.CHAT, stream=True, stream_options={"include_usage": True}
        )
        chunks = [chunk async for chunk in stream]
        words = [c.choices[0].delta.content or "" for c in chunks if c.choices]
        assert "".join(words) == TEXT
        assert len(words) > 3
        assert chunks[-1].usage is not None
        assert chunks[-1].usage.total_tokens == 7
        assert len(await ground.captured(2)) == 2


@pytest.mark.parametrize("way", WAYS)
async def test_openai_tools(way: str, tmp_path: Path, fake: Upstream) -> None:
    body = requests.TOOLS["/v1/chat/completions"]
    async with _ground(way, tmp_path, fake, tools=True) as ground, _openai(ground) as client:
        async with client.chat.completions.stream(**body) as stream:
            final = await stream.get_final_completion()
        [call] = final.choices[0].message.tool_calls or []
        assert final.choices[0].finish_reason == "tool_calls"
        assert (call.function.name, json.loads(call.function.arguments)) == ("add", GIVEN)
        [kept] = await ground.captured()
        assert CALLING[1] in kept.response
        assert kept.messages[0]["tools"] == [requests.TOOL]
        answered = [
            *body["messages"],
            final.choices[0].message.model_dump(exclude_none=True),
            {"role": "tool", "tool_call_id": call.id, "content": "3"},
        ]
        await client.chat.completions.create(**{**body, "messages": answered})
        _, after = await ground.captured(2)
        assert [message["role"] for message in after.messages] == ["user", "assistant", "tool"]
        assert after.messages[1]["tool_calls"][0]["function"]["name"] == "add"
        assert after.kind == "main"
        assert after.channel.thread == kept.channel.thread  # known again by its transcript


@pytest.mark.parametrize("way", WAYS)
async def test_openai_responses(way: str, tmp_path: Path, fake: Upstream) -> None:
    async with _ground(way, tmp_path, fake, tools=False) as ground, _openai(ground) as client:
        whole = await client.responses.create(**requests.RESPONSES)
        assert whole.output_text == TEXT
        async with client.responses.stream(**requests.RESPONSES) as stream:
            deltas = [e.delta async for e in stream if e.type == "response.output_text.delta"]
            final = await stream.get_final_response()
        assert "".join(deltas) == TEXT == final.output_text
        assert len(deltas) > 2
        kept, _ = await ground.captured(2)
        assert [one["content"] for one in kept.messages] == ["Be kind.", "What do good dogs do?"]


@pytest.mark.parametrize("way", WAYS)
async def test_openai_responses_with_tools(way: str, tmp_path: Path, fake: Upstream) -> None:
    body = requests.TOOLS["/v1/responses"]
    async with _ground(way, tmp_path, fake, tools=True) as ground, _openai(ground) as client:
        async with client.responses.stream(**body) as stream:
            final = await stream.get_final_response()
        [call] = [item for item in final.output if item.type == "function_call"]
        assert (call.name, json.loads(call.arguments)) == ("add", GIVEN)
        output = {"type": "function_call_output", "call_id": call.call_id, "output": "3"}
        asked = [{"role": "user", "content": body["input"]}, call.model_dump(), output]
        await client.responses.create(**{**body, "input": asked})
        _, after = await ground.captured(2)
        assert [one["role"] for one in after.messages] == ["system", "user", "assistant", "tool"]


@pytest.mark.parametrize("way", WAYS)
async def test_anthropic_messages(way: str, tmp_path: Path, fake: Upstream) -> None:
    async with _ground(way, tmp_path, fake, tools=False) as ground, _anthropic(ground) as client:
        whole = await client.messages.create(**requests.MESSAGES)
        assert whole.content[0].type == "text"
        assert whole.content[0].text == TEXT
        assert whole.stop_reason == "end_turn"
        async with client.messages.stream(**requests.MESSAGES) as stream:
            words = [text async for text in stream.text_stream]
        assert "".join(words) == TEXT
        assert len(words) > 3
        assert len(await ground.captured(2)) == 2
        counted = await client.messages.count_tokens(model="m-1", messages=requests.MESSAGES["messages"])
        assert counted.input_tokens > 3
        beta = await client.beta.messages.create(**requests.MESSAGES)  # asks with ?beta=true
        assert beta.content[0].type == "text"
        assert len(await ground.captured(3)) == 3  # counting was none


@pytest.mark.parametrize("way", WAYS)
async def test_anthropic_tools(way: str, tmp_path: Path, fake: Upstream) -> None:
    body = requests.TOOLS["/v1/messages"]
    async with _ground(way, tmp_path, fake, tools=True) as ground, _anthropic(ground) as client:
        async with client.messages.stream(**body) as stream:
            final = await stream.get_final_message()
        [call] = [block for block in final.content if block.type == "tool_use"]
        assert (call.name, call.input, final.stop_reason) == ("add", GIVEN, "tool_use")
        result = {"type": "tool_result", "tool_use_id": call.id, "content": "3"}
        asked = [
            *body["messages"],
            {"role": "assistant", "content": [b.model_dump(exclude_none=True) for b in final.content]},
            {"role": "user", "content": [result]},
        ]
        await client.messages.create(**{**body, "messages": asked})
        first, after = await ground.captured(2)
        assert [one["role"] for one in after.messages] == ["system", "user", "assistant", "tool"]
        assert after.channel.thread == first.channel.thread


@pytest.mark.parametrize("way", WAYS)
async def test_the_smaller_apis(way: str, tmp_path: Path, fake: Upstream) -> None:
    async with _ground(way, tmp_path, fake, tools=False) as ground, _openai(ground) as client:
        listed = await client.models.list()
        name = "goodbot" if way == "own" else "m-1"
        assert listed.data[0].id == name
        text = await client.completions.create(model=name, prompt="Good dogs")
        assert text.choices[0].text == TEXT
        [kept] = await ground.captured()
        assert kept.kind == "side"
        if way == "upstream":
            vector = await client.embeddings.create(model="m", input="dogs", encoding_format="float")
            assert vector.data[0].embedding == [0.5, -0.5]
        else:
            assert (await client.models.retrieve("goodbot-v3")).id == "goodbot-v3"
            with pytest.raises(openai.BadRequestError, match="embeddings"):
                await client.embeddings.create(model="m", input="dogs", encoding_format="float")
    async with _ground(way, tmp_path, fake, tools=False) as ground, _anthropic(ground) as client:
        if way == "own":
            models = await client.models.list()
            assert [one.id for one in models.data] == ["goodbot", "goodbot-v3", f"goodbot-v{BASE}"]


async def test_errors_are_what_the_clients_know(tmp_path: Path, fake: Upstream) -> None:
    async with proxied(tmp_path, upstream=fake.url, upstream_dialect="both") as ground:
        fake.status = 429
        async with _openai(ground) as one:
            with pytest.raises(openai.RateLimitError, match="nope"):
                await one.chat.completions.create(**requests.CHAT)
        async with _anthropic(ground) as two:
            with pytest.raises(anthropic.RateLimitError):
                await two.messages.create(**requests.MESSAGES)
        ground.token = "gb_" + "x" * 43
        async with _openai(ground) as one, _anthropic(ground) as two:
            with pytest.raises(openai.AuthenticationError, match="token"):
                await one.chat.completions.create(**requests.CHAT)
            with pytest.raises(anthropic.AuthenticationError, match="token"):
                await two.messages.create(**requests.MESSAGES)
        assert len(fake.got) == 2
        assert ground.host.attempts == []
