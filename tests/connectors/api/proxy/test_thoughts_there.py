# SPDX-License-Identifier: Apache-2.0
"""What a model on a server of the owner's thinks is no text, whatever the server makes of it."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from goodbot_connectors.api.proxy.dialects.chat import ChatAnswer
from goodbot_connectors.api.proxy.dialects.shapes import ChatRequest
from goodbot_connectors.api.proxy.own.apart import ThoughtEditor
from goodbot_connectors.api.proxy.own.deltas import ResponseHead
from goodbot_connectors.api.proxy.own.edited import ResponseEditor

from tests.connectors.api.proxy import requests
from tests.connectors.api.proxy.ground import Scripted, far_side, proxied
from tests.connectors.api.proxy.upstream import Upstream, data

CHAT = "/v1/chat/completions"
OPENS = "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n<think>\\n' }}{% endif %}"
"""As DeepSeek-R1's and Qwen3-Thinking's do."""
MAY_OPEN = "{% if add_generation_prompt %}{% if thinking %}{{ '<think>' }}{% endif %}{% endif %}"
WANTED: dict[str, dict[str, Any]] = {
    CHAT: {"reasoning_effort": "low"},
    "/v1/messages": {"thinking": {"type": "enabled", "budget_tokens": 1024}},
    "/v1/responses": {"reasoning": {"effort": "medium"}},
}
SAYS = {
    "the prompt opens it": (OPENS, "Hm.\n</think>\n\nGreen."),
    "within the text": ("", "<think>\nHm.\n</think>\n\nGreen."),
}


@pytest.mark.parametrize("path", WANTED)
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("wanted", [False, True])
@pytest.mark.parametrize("how", SAYS)
async def test_a_thought_is_told_from_the_answer(
    tmp_path: Path,
    fake: Upstream,
    web: aiohttp.ClientSession,
    path: str,
    stream: bool,
    wanted: bool,
    how: str,
) -> None:
    template, fake.says = SAYS[how]
    fake.tokens = True
    far = dataclasses.replace(far_side(fake.url), template=template)
    async with proxied(tmp_path, model=Scripted(far=far)) as ground:
        body = {**requests.BODIES[path], "stream": stream, **(WANTED[path] if wanted else {})}
        async with web.post(ground.url + path, json=body, headers=ground.bearer) as response:
            told = await response.text()
            assert response.status == 200
        assert "think>" not in told
        assert ("Hm." in told) is wanted
        assert "Green." in told
        [kept] = await ground.captured()
        assert (kept.thought, kept.response) == ("Hm.", "Green.")
        assert kept.tokens == kept.logprobs == ()


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
async def test_an_answer_that_is_held_to_a_form_is_no_thought(
    tmp_path: Path, fake: Upstream, web: aiohttp.ClientSession, stream: bool
) -> None:
    """Its first token is the form's, though the prompt opens a thought."""
    fake.says = '{"colour": "green"}'
    far = dataclasses.replace(far_side(fake.url), template=OPENS)
    async with proxied(tmp_path, model=Scripted(far=far)) as ground:
        form = {"response_format": {"type": "json_object"}}
        body = {**requests.BODIES[CHAT], "stream": stream, **form}
        async with web.post(ground.url + CHAT, json=body, headers=ground.bearer) as response:
            assert "colour" in await response.text()
        [kept] = await ground.captured()
        assert (kept.thought, kept.response) == ("", fake.says)


@pytest.mark.parametrize("thinks", [False, True])
async def test_a_template_that_may_begin_a_thought_does_so_where_it_is_told_to(
    tmp_path: Path, fake: Upstream, web: aiohttp.ClientSession, thinks: bool
) -> None:
    fake.says = "Hm.\n</think>\n\nGreen." if thinks else "Green."
    far = dataclasses.replace(far_side(fake.url), template=MAY_OPEN)
    async with proxied(tmp_path, model=Scripted(far=far)) as ground:
        asked = {"chat_template_kwargs": {"thinking": thinks}, "stream": True}
        async with web.post(
            ground.url + CHAT, json={**requests.CHAT, **asked}, headers=ground.bearer
        ) as response:
            deltas = _deltas(await response.read())
        assert "".join(one.get("content") or "" for one in deltas) == "Green."
        assert "".join(one.get("reasoning_content", "") for one in deltas).strip() == (
            "Hm." if thinks else ""
        )


async def test_thoughts_of_before_are_no_part_of_what_is_asked(
    tmp_path: Path, fake: Upstream, web: aiohttp.ClientSession
) -> None:
    """Programs send back what they got: of another model, or of a time when thoughts were shown."""
    fake.says = "<think>Hm.</think>Green."
    async with proxied(tmp_path, model=Scripted(far=far_side(fake.url))) as ground:
        said: list[dict[str, Any]] = []
        for thought in ({"content": "<think>\nHm.\n</think>\n\nGreen."}, {"reasoning_content": "Hm."}):
            body = {**requests.CHAT, "messages": [*requests.ASKED, *said]}
            async with web.post(ground.url + CHAT, json=body, headers=ground.bearer) as response:
                assert response.status == 200
            answer = {"role": "assistant", "content": "Green.", **thought}
            said += [answer, {"role": "user", "content": "And snow?"}]
        body = {**requests.CHAT, "messages": [*requests.ASKED, *said]}
        async with web.post(ground.url + CHAT, json=body, headers=ground.bearer) as response:
            assert response.status == 200
        assert not [got for got in fake.got if b"Hm." in got.body]
        assert [one["content"] for one in fake.got[-1].json["messages"][1::2]] == ["Green.", "Green."]
        first, *others = await ground.captured(3)
        assert {one.channel for one in others} == {first.channel}, "it is one conversation"
        assert "Hm." not in str([one.messages for one in others])


def _deltas(streamed: bytes) -> list[dict[str, Any]]:
    lines = [line[6:] for line in streamed.decode().splitlines() if line.startswith("data: {")]
    return [choice["delta"] for line in lines for choice in json.loads(line)["choices"]]


def _editor(asked: ChatRequest, **body: Any) -> ResponseEditor:
    about = ResponseHead(id="1", model="m", created=0, asked=asked, body=body)
    thoughts = ThoughtEditor(far_side("http://127.0.0.1:1"), body, asked)
    return ResponseEditor(ChatAnswer(), about, thoughts=thoughts)


def _chunk(said: Mapping[str, Any], part: str = "delta", finish: str | None = None, index: int = 0) -> Any:
    told = {"content": [{"token": said.get("content"), "logprob": -0.5}]}
    choice = {"index": index, part: said, "finish_reason": finish, "logprobs": told}
    return {"model": "goodbot-v3", "choices": [choice]}


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
@pytest.mark.parametrize("thinks", [False, True])
def test_what_a_parser_there_has_told_apart_is_kept_and_shown_by_the_servers_name(
    field: str, thinks: bool
) -> None:
    asked = ChatRequest(model="m", messages=(), thinks=thinks)
    editor = _editor(asked)
    chunks = [
        _chunk({field: "Hm.", "content": None}),
        _chunk({"content": "Green."}),
        _chunk({}, finish="stop"),
    ]
    deltas = _deltas(b"".join(editor.feed(data(one)) for one in chunks) + editor.end())
    assert [one[field] for one in deltas if field in one] == (["Hm."] if thinks else [])
    assert "".join(one.get("content") or "" for one in deltas) == "Green."
    assert (editor.said().thought, editor.said().text) == ("Hm.", "Green.")
    editor = _editor(asked)
    told = editor.whole(json.dumps(_chunk({field: "Hm.", "content": "Green."}, "message", "stop")).encode())
    message = json.loads(told)["choices"][0]["message"]
    assert message == {"content": "Green.", **({field: "Hm."} if thinks else {})}
    assert (editor.said().thought, editor.said().text) == ("Hm.", "Green.")


def test_log_probs_do_not_tell_what_was_thought() -> None:
    editor = _editor(ChatRequest(model="m", messages=()), logprobs=True)
    chunks = [
        _chunk({"content": "<think>Secret"}),
        _chunk({"content": "</think>"}),
        _chunk({"content": "Green."}),
    ]
    told = b"".join(editor.feed(data(one)) for one in chunks)
    assert b"Secret" not in told
    assert b'"token": "Green."' in told


def test_each_of_several_answers_has_its_own_thought() -> None:
    editor = _editor(ChatRequest(model="m", messages=()), n=2)
    chunks = [
        _chunk({"content": "<think>One"}),
        _chunk({"content": "<think>Two"}, index=1),
        _chunk({"content": "</think>Green."}),
        _chunk({"content": "</think>Red."}, index=1),
    ]
    deltas = _deltas(b"".join(editor.feed(data(one)) for one in chunks))
    assert [one["content"] for one in deltas] == ["", "", "Green.", "Red."]


def test_an_answer_without_a_thought_goes_through_as_it_came() -> None:
    editor = _editor(ChatRequest(model="m", messages=()), logprobs=True)
    chunks = [
        _chunk({"role": "assistant", "content": ""}),
        _chunk({"content": "Gre"}),
        _chunk({"content": "en."}),
        _chunk({"content": None, "refusal": "No."}),
        _chunk({}, finish="stop"),
    ]
    told = b"".join(editor.feed(data(one)) for one in chunks)
    assert told == b"".join(data({**one, "model": "m"}) for one in chunks)
    assert editor.said().text == "Green."
