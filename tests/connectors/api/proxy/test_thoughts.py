# SPDX-License-Identifier: Apache-2.0
"""What our model thinks goes out in the field that each API has for it, never as text."""

from __future__ import annotations

import contextlib
import json
from collections.abc import AsyncGenerator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from goodbot.api.completions import CompletionRequest
from goodbot.api.events import CaptureEvent
from goodbot.api.server import Generated
from goodbot.base.errors import ServerError
from goodbot.base.thoughts import Thought
from goodbot_connectors.api.proxy.dialects.shapes import ChatRequest, ChatResponse
from goodbot_connectors.api.proxy.own.deltas import AnswerWriter, End, ResponseHead
from goodbot_connectors.api.proxy.own.write_chat import ChatWriter
from goodbot_connectors.api.proxy.own.write_messages import MessageWriter
from goodbot_connectors.api.proxy.own.write_responses import ResponseWriter

from tests.connectors.api.proxy import requests
from tests.connectors.api.proxy.ground import Scripted, proxied

ABOUT = ResponseHead(id="1", model="m", created=0, asked=ChatRequest(model="m", messages=()), body={})
END = End(said=ChatResponse(text="Green.", thought="Hm.", finish="stop"))


def streamed(writer: AnswerWriter) -> list[dict[str, Any]]:
    data = writer.start() + writer.more(Thought("H")) + writer.more(Thought("m."))
    data += writer.more("Green.") + writer.end(END)
    lines = [line[6:] for line in data.decode().splitlines() if line.startswith("data: {")]
    return [json.loads(line) for line in lines]


def test_chat_completions_have_reasoning_content() -> None:
    deltas = [one["choices"][0]["delta"] for one in streamed(ChatWriter(ABOUT))]
    assert "".join(one.get("reasoning_content", "") for one in deltas) == "Hm."
    assert "".join(one.get("content") or "" for one in deltas) == "Green."
    message = ChatWriter(ABOUT).whole(END)["choices"][0]["message"]
    assert (message["content"], message["reasoning_content"]) == ("Green.", "Hm.")


def test_messages_have_a_block_of_thinking_first() -> None:
    events = streamed(MessageWriter(ABOUT))
    begun = [e["content_block"]["type"] for e in events if e["type"] == "content_block_start"]
    assert begun == ["thinking", "text"]
    deltas = [e["delta"] for e in events if e["type"] == "content_block_delta"]
    assert "".join(d.get("thinking", "") for d in deltas) == "Hm."
    assert "".join(d.get("text", "") for d in deltas) == "Green."
    blocks = MessageWriter(ABOUT).whole(END)["content"]
    assert [block["type"] for block in blocks] == ["thinking", "text"]
    assert (blocks[0]["thinking"], blocks[1]["text"]) == ("Hm.", "Green.")


@pytest.mark.parametrize("stream", [True, False])
def test_responses_have_an_item_of_reasoning_first(stream: bool) -> None:
    writer = ResponseWriter(ABOUT)
    body = streamed(writer)[-1]["response"] if stream else writer.whole(END)
    assert [item["type"] for item in body["output"]] == ["reasoning", "message"]
    assert body["output"][0]["content"] == [{"type": "reasoning_text", "text": "Hm."}]
    assert body["output"][1]["content"][0]["text"] == "Green."


WANTED: dict[str, list[dict[str, Any]]] = {
    "/v1/chat/completions": [
        {"reasoning_effort": "low"},
        {"include_reasoning": True},
        {"chat_template_kwargs": {"enable_thinking": True}},
    ],
    "/v1/messages": [{"thinking": {"type": "enabled", "budget_tokens": 1024}}],
    "/v1/responses": [{"reasoning": {"effort": "medium", "summary": "auto"}}],
}
NOT_WANTED: dict[str, list[dict[str, Any]]] = {
    "/v1/chat/completions": [{}, {"reasoning_effort": "none"}],
    "/v1/messages": [{}, {"thinking": {"type": "disabled"}}],
    "/v1/responses": [{}, {"reasoning": {"effort": "none"}}, {"reasoning": None}],
}


@pytest.mark.parametrize("path", WANTED)
@pytest.mark.parametrize("stream", [False, True])
async def test_who_did_not_ask_for_thoughts_gets_none(tmp_path: Path, path: str, stream: bool) -> None:
    model = Scripted(says=(Thought("Sec"), Thought("ret."), "Green."), thought="Secret.")  # type: ignore[arg-type]
    async with proxied(tmp_path, model=model) as ground, aiohttp.ClientSession() as web:
        for wanted, bodies in ((True, WANTED[path]), (False, NOT_WANTED[path])):
            for more in bodies:
                body = {**requests.BODIES[path], **more, "stream": stream}
                async with web.post(ground.url + path, json=body, headers=ground.bearer) as response:
                    data = await response.text()
                    assert response.status == 200
                assert ("ret." in data) is wanted
                assert "Green." in data
        for event in ground.host.events:
            assert isinstance(event, CaptureEvent)
            assert (event.thought, event.response) == ("Secret.", "Green.")


@dataclass(kw_only=True)
class Cut(Scripted):
    """One whose thought takes all of its tokens, or that ends its answer within it."""

    finish: str = "length"

    async def answer(self, question: CompletionRequest) -> AsyncGenerator[Any, None]:
        async for piece in super().answer(question):
            yield replace(piece, finish=self.finish) if isinstance(piece, Generated) else piece


@pytest.mark.parametrize("finish", ["length", "stop"])
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("path", requests.BODIES)
async def test_an_answer_that_ends_within_its_thought_is_an_empty_one(
    tmp_path: Path, path: str, stream: bool, finish: str
) -> None:
    said: Any = (Thought("Sec"), Thought("ret."))
    async with (
        proxied(tmp_path, model=Cut(says=said, thought="Secret.", finish=finish)) as ground,
        aiohttp.ClientSession() as web,
    ):
        body = {**requests.BODIES[path], "stream": stream}
        async with web.post(ground.url + path, json=body, headers=ground.bearer) as response:
            data = await response.text()
            assert response.status == 200
        assert "ret." not in data
        assert "event: error" not in data
        assert '"error": {' not in data
        words = {
            "/v1/chat/completions": f'"finish_reason": "{finish}"',
            "/v1/completions": f'"finish_reason": "{finish}"',
            "/v1/messages": f'"stop_reason": "{"max_tokens" if finish == "length" else "end_turn"}"',
            "/v1/responses": f'"status": "{"incomplete" if finish == "length" else "completed"}"',
        }
        assert words[path] in data
        [kept] = await ground.captured()
        assert (kept.thought, kept.response) == ("Secret.", "")


@dataclass(kw_only=True)
class Dying(Scripted):
    """Its model ends within its thought, twice, and comes back."""

    lives: int = 3

    async def answer(self, question: CompletionRequest) -> AsyncGenerator[Any, None]:
        async for piece in super().answer(question):
            yield piece
            if self.lives > 1:
                self.lives -= 1
                raise ServerError("the model ended")

    async def until_answered(self, ask: Any) -> Any:
        while self.lives > 1:
            with contextlib.suppress(ServerError):
                return await ask()
        return await ask()


@pytest.mark.parametrize("path", requests.BODIES)
@pytest.mark.parametrize("wanted", [False, True])
async def test_who_saw_nothing_of_a_thought_gets_an_answer_though_the_model_ended_in_it(
    tmp_path: Path, path: str, wanted: bool
) -> None:
    said: Any = (Thought("Secret."), "Green.")
    more = WANTED.get(path, [{}])[0] if wanted else {}
    async with (
        proxied(tmp_path, model=Dying(says=said, thought="Secret.")) as ground,
        aiohttp.ClientSession() as web,
    ):
        body = {**requests.BODIES[path], **more, "stream": True}
        async with web.post(ground.url + path, json=body, headers=ground.bearer) as response:
            data = await response.text()
        if wanted and path in WANTED:
            assert "model ended" in data
            return
        assert ": thinking" in data, "somebody is there meanwhile"
        assert "model ended" not in data
        assert "Green." in data
        [kept] = await ground.captured()
        assert (kept.thought, kept.response) == ("Secret.", "Green.")
