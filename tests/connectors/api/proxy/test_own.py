# SPDX-License-Identifier: Apache-2.0
"""Our own model behind the proxy, asked through the core."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from goodbot.api.completions import CompletionRequest
from goodbot.api.server import Generated
from goodbot.base.errors import ServerError, UsageError
from goodbot.base.sampling import Filters
from goodbot_connectors.api.proxy.own.calls import CallReader
from goodbot_connectors.api.proxy.own.deltas import Part

from tests.connectors.api.proxy import requests
from tests.connectors.api.proxy.ground import Ground, Scripted, far_side, proxied
from tests.connectors.api.proxy.upstream import Upstream
from tests.support import patience

CALL = '<tool_call>{"name": "add", "arguments": {"a":  1}}</tool_call>'
CHAT, MESSAGES, RESPONSES = "/v1/chat/completions", "/v1/messages", "/v1/responses"


async def ask(
    ground: Ground, path: str, body: dict[str, Any], **headers: str
) -> tuple[int, dict[str, Any], str]:
    """Status, JSON and turn of an answer that is not streamed."""
    async with (
        aiohttp.ClientSession() as session,
        session.post(ground.url + path, json=body, headers={**ground.bearer, **headers}) as response,
    ):
        return response.status, await response.json(), response.headers.get("X-Goodbot-Turn", "")


async def test_what_is_asked_reaches_the_model_as_it_should(tmp_path: Path) -> None:
    model = Scripted(says=(CALL,))
    async with proxied(tmp_path, model=model) as ground:
        body = {
            **requests.TOOLS[CHAT],
            "model": "gpt-5",
            "max_tokens": 40,
            "seed": 7,
            "top_p": 0.5,
            "messages": [{"role": "developer", "content": "Be kind."}, *requests.ASKED],
        }
        status, answer, turn = await ask(ground, CHAT, body, **{"X-Session-Id": "s1"})
        assert status == 200
        assert answer["model"] == "gpt-5"
        [call] = answer["choices"][0]["message"]["tool_calls"]
        assert call["function"] == {"name": "add", "arguments": '{"a":  1}'}  # to the letter
        question = model.asked[-1]
        assert question.messages[0]["role"] == "system"
        assert question.messages[0]["tools"] == [requests.TOOL]
        assert (question.max_tokens, question.temperature, question.seed) == (40, 0.5, 7)
        assert question.filters == {"top_p": 0.5}
        assert (question.version, question.channel.thread, question.user.id) == (None, "s1", "ada")
        [kept] = await ground.captured()
        assert (kept.response, kept.version, kept.temperature) == (CALL, 3, 0.5)
        assert (kept.prompt_tokens, len(kept.tokens), len(kept.logprobs)) == ((1, 2, 3), 1, 1)
        assert kept.filters == Filters(top_p=0.5)
        assert kept.message_id == turn
        assert kept.messages[0]["tools"] == [requests.TOOL]


@pytest.mark.parametrize("path", requests.BODIES)
async def test_versions_have_names(tmp_path: Path, path: str) -> None:
    model = Scripted()
    async with proxied(tmp_path, model=model) as ground:
        for name, version in (("goodbot", None), ("goodbot-v3", 3), ("goodbot-v0", 0)):
            status, _, _ = await ask(ground, path, {**requests.BODIES[path], "model": name})
            assert (status, model.asked[-1].version) == (200, version)
        status, answer, _ = await ask(ground, path, {**requests.BODIES[path], "model": "goodbot-v9"})
        assert status == 404
        assert "goodbot-v9" in answer["error"]["message"]


REFUSED: list[tuple[str, dict[str, Any], str]] = [
    (CHAT, {"n": 2}, "one answer"),
    (CHAT, {"logprobs": True}, "log-probs"),
    (CHAT, {"response_format": {"type": "json_object"}}, "schema"),
    (CHAT, {"tools": [requests.TOOL], "tool_choice": "required"}, "tool_choice"),
    (MESSAGES, {"tools": requests.TOOLS[MESSAGES]["tools"], "tool_choice": {"type": "any"}}, "tool_choice"),
    (RESPONSES, {"previous_response_id": "resp_1"}, "whole conversation"),
    (CHAT, {"frequency_penalty": 0.5}, "has no frequency_penalty"),
    (CHAT, {"min_p": 2}, "Min_p must be"),
    (CHAT, {"presence_penalty": -1}, "presence_penalty"),
    (CHAT, {"logit_bias": {"5": 1}}, "logit_bias"),
    (CHAT, {"min_tokens": 5}, "has no min_tokens"),
    (CHAT, {"guided_json": {"a": 1}}, "has no guided_json"),
    (CHAT, {"bad_words": ["x"]}, "has no bad_words"),
    ("/v1/completions", {"best_of": 2}, "has no best_of"),
    ("/v1/completions", {"echo": True}, "leave echo out"),
    (CHAT, {"typical_p": 0.5}, "with typical_p"),
    (CHAT, {"repeat_penalty": 1.1}, "another name here: repetition_penalty"),
    (CHAT, {"max_tokens": 0}, "max_tokens must be"),
    (MESSAGES, {"max_tokens": "9"}, "max_tokens must be"),
    (RESPONSES, {"max_output_tokens": -1}, "max_output_tokens must"),
    (CHAT, {"temperature": -1}, "temperature"),
    (CHAT, {"temperature": "hot"}, "temperature"),
    (RESPONSES, {"frequency_penalty": 1}, "frequency_penalty"),
    (CHAT, {"messages": []}, "no message"),
    ("/v1/completions", {"suffix": "x"}, "gaps"),
    (CHAT, {"stop": [str(n) for n in range(65)]}, "64 texts at most"),
    (CHAT, {"stop": "x" * 1001}, "1000 characters each"),
    (MESSAGES, {"stop_sequences": [str(n) for n in range(65)]}, "64 texts at most"),
    ("/v1/completions", {"stop": ["x", "y" * 1001]}, "1000 characters each"),
]


@pytest.mark.parametrize(("path", "more", "words"), REFUSED)
async def test_what_it_cannot_do_is_said(tmp_path: Path, path: str, more: dict[str, Any], words: str) -> None:
    async with proxied(tmp_path, model=Scripted()) as ground:
        for stream in (False, True):
            body = {**requests.BODIES[path], **more, "stream": stream}
            status, answer, turn = await ask(ground, path, body)
            assert (status, turn) == (400, "")
            assert words in answer["error"]["message"]
        assert ground.host.attempts == []


@pytest.mark.parametrize(
    "neutral",
    [
        {"frequency_penalty": 0, "presence_penalty": 0.0, "logit_bias": {}, "n": 1, "min_tokens": 0},
        {"typical_p": 1, "length_penalty": 1.0, "repeat_penalty": 1, "mirostat": 0, "stop_token_ids": []},
        {"response_format": {"type": "text"}},
        {"response_format": None},
        {"stop": [f"{n:01000}" for n in range(64)]},
        {"temperature": 0, "max_tokens": None, "parallel_tool_calls": True, "user": "ada", "store": False},
    ],
)
async def test_what_changes_nothing_may_be_said(tmp_path: Path, neutral: dict[str, Any]) -> None:
    async with proxied(tmp_path, model=Scripted()) as ground:
        assert (await ask(ground, CHAT, {**requests.CHAT, **neutral}))[0] == 200


PREFIX = {"role": "assistant", "content": "Grass is"}
PREFILLED: dict[str, dict[str, Any]] = {
    CHAT: {"messages": [*requests.ASKED, PREFIX]},
    MESSAGES: {"messages": [*requests.ASKED, {**PREFIX, "content": [{"type": "text", "text": "Grass"}]}]},
    RESPONSES: {"input": [*requests.ASKED, {**PREFIX, "type": "message"}]},
}


@pytest.mark.parametrize("path", PREFILLED)
@pytest.mark.parametrize("far", [False, True], ids=["embedded", "server"])
async def test_an_answer_that_the_program_has_begun_is_not_answered_anew(
    tmp_path: Path, fake: Upstream, path: str, far: bool
) -> None:
    model = Scripted(far=far_side(fake.url) if far else None)
    async with proxied(tmp_path, model=model) as ground:
        status, answer, _ = await ask(ground, path, {**requests.BODIES[path], **PREFILLED[path]})
        assert status == 400
        assert "The last message is the assistant's" in answer["error"]["message"]
        assert fake.got == []
        assert ground.host.attempts == []


NOTE = "[Attached, and not visible to you: {}]"
PICTURES: list[tuple[str, dict[str, Any], str]] = [
    (CHAT, {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}, "an image"),
    (CHAT, {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}}, "a sound"),
    (CHAT, {"type": "file", "file": {"filename": "a [1].pdf", "file_data": "data:x"}}, "a (1).pdf"),
    (MESSAGES, {"type": "image", "source": {"type": "base64", "data": "AAAA"}}, "an image"),
    (MESSAGES, {"type": "document", "title": "The plan", "source": {"type": "url", "url": "x"}}, "The plan"),
    (RESPONSES, {"type": "input_image", "image_url": "data:image/png;base64,AAAA"}, "an image"),
    (RESPONSES, {"type": "input_file", "filename": "a.pdf", "file_data": "data:x"}, "a.pdf"),
]


@pytest.mark.parametrize(("path", "part", "name"), PICTURES)
async def test_the_model_is_told_that_something_came_which_it_cannot_see(
    tmp_path: Path, path: str, part: dict[str, Any], name: str
) -> None:
    model = Scripted()
    text = {"type": "input_text" if path == RESPONSES else "text", "text": "What is it?"}
    async with proxied(tmp_path, model=model) as ground:
        for parts, words in (([part], NOTE), ([part, text], f"What is it?\n\n{NOTE}")):
            body = {**requests.BODIES[path]}
            body["input" if path == RESPONSES else "messages"] = [{"role": "user", "content": parts}]
            assert (await ask(ground, path, body))[0] == 200
            assert model.asked[-1].messages[-1]["content"] == words.format(name)
        alone, asked = await ground.captured(2)
        assert alone.messages[-1]["content"] == NOTE.format(name)
        # Nothing was asked in words: an answer to a picture that nobody saw teaches nothing.
        assert (alone.kind, asked.kind) == ("side", "main")


async def test_a_text_document_is_read(tmp_path: Path) -> None:
    model = Scripted()
    source = {"type": "text", "media_type": "text/plain", "data": "Grass is green."}
    content = [{"type": "document", "source": source}, {"type": "text", "text": " So?"}]
    async with proxied(tmp_path, model=model) as ground:
        body = {**requests.MESSAGES, "messages": [{"role": "user", "content": content}]}
        assert (await ask(ground, MESSAGES, body))[0] == 200
    assert model.asked[-1].messages[-1]["content"] == "Grass is green. So?"


async def test_one_call_at_most_where_that_is_asked(tmp_path: Path) -> None:
    model = Scripted(says=(CALL, CALL))
    one = {
        CHAT: {"parallel_tool_calls": False},
        RESPONSES: {"parallel_tool_calls": False},
        MESSAGES: {"tool_choice": {"type": "auto", "disable_parallel_tool_use": True}},
    }
    async with proxied(tmp_path, model=model) as ground:
        for path, more in one.items():
            assert (await ask(ground, path, {**requests.TOOLS[path], **more}))[0] == 200
            assert (await ask(ground, path, requests.TOOLS[path]))[0] == 200
        found = [event.response.count("<tool_call>") for event in await ground.captured(6)]
        assert found == [1, 2] * 3


async def test_a_model_whose_template_knows_no_tools_says_so(tmp_path: Path) -> None:
    async with proxied(tmp_path, model=Scripted(template=False)) as ground:
        for path, body in requests.TOOLS.items():
            status, answer, _ = await ask(ground, path, body)
            assert status == 400
            assert "chat template" in answer["error"]["message"]


async def test_errors_of_the_model(tmp_path: Path) -> None:
    model = Scripted()
    async with proxied(tmp_path, model=model) as ground:
        down, long = ServerError("the model is not running"), UsageError("too long")
        for error, expected in ((down, 503), (long, 400)):
            model.error = error
            for stream in (False, True):
                status, answer, _ = await ask(ground, MESSAGES, {**requests.MESSAGES, "stream": stream})
                assert (status, answer["type"]) == (expected, "error")
                assert str(error).lower() in answer["error"]["message"].lower()
        model.error, model.admits = None, False
        status, answer, _ = await ask(ground, CHAT, requests.CHAT)
        assert (status, "may not talk" in answer["error"]["message"]) == (403, True)
        assert ground.host.attempts == []


class Dying(Scripted):
    """Its model ends after a first piece, twice, and comes back."""

    lives = 3

    async def answer(self, question: CompletionRequest) -> AsyncGenerator[str | Generated, None]:
        async for piece in super().answer(question):
            yield piece
            if self.lives > 1:
                self.lives -= 1
                raise ServerError("the model ended")

    async def until_answered(self, ask: Any) -> Any:
        for _ in range(2):
            with contextlib.suppress(ServerError):
                return await ask()
        return await ask()


async def test_who_gets_an_answer_whole_gets_it_though_the_model_ended_under_it(tmp_path: Path) -> None:
    async with proxied(tmp_path, model=Dying()) as ground:
        status, answer, _ = await ask(ground, CHAT, requests.CHAT)
        assert status == 200
        assert answer["choices"][0]["message"]["content"] == "Good dogs bark ☂."
        [kept] = await ground.captured()
        assert kept.response == "Good dogs bark ☂."


async def test_who_has_seen_a_piece_is_told_that_the_model_ended(tmp_path: Path) -> None:
    async with proxied(tmp_path, model=Dying()) as ground, aiohttp.ClientSession() as session:
        body = {**requests.CHAT, "stream": True}
        async with session.post(ground.url + CHAT, json=body, headers=ground.bearer) as response:
            text = await response.text()
        assert text.count("Good") == 1
        assert "model ended" in text


@pytest.mark.parametrize("path", requests.BODIES)
async def test_a_body_that_no_database_takes_is_the_client_s_mistake(tmp_path: Path, path: str) -> None:
    model = Scripted()
    async with proxied(tmp_path, model=model) as ground, aiohttp.ClientSession() as session:
        text = json.dumps({**requests.BODIES[path], "user": "ada"})
        headers = {**ground.bearer, "Content-Type": "application/json"}
        twice = text.replace('"user"', '"model"')
        half = text.replace('"ada"', r'"\ud83d"')
        for data, words in ((half, "half a character"), (twice, "twice"), ("[1]", "object")):
            async with session.post(ground.url + path, data=data, headers=headers) as response:
                assert response.status == 400
                assert words in (await response.json())["error"]["message"]
        assert model.asked == []


async def test_there_may_be_no_model_at_all(tmp_path: Path) -> None:
    async with proxied(tmp_path) as ground:
        status, answer, _ = await ask(ground, CHAT, requests.CHAT)
        assert status == 503
        assert "no model" in answer["error"]["message"]


@pytest.mark.parametrize("stop", [["dogs"], "dogs ", ["bark", "ogs b"]])
async def test_it_stops_where_it_is_told_to(tmp_path: Path, stop: object) -> None:
    model = Scripted()
    async with proxied(tmp_path, model=model) as ground:
        _, answer, _ = await ask(ground, CHAT, {**requests.CHAT, "stop": stop})
        text = answer["choices"][0]["message"]["content"]
        assert text in ("Good ", "Good d")
        [kept] = await ground.captured()
        assert (kept.response, kept.version, kept.tokens) == (text, None, ())
        assert model.closed == 1


async def test_who_hangs_up_stops_the_model(tmp_path: Path) -> None:
    model = Scripted(says=("word ",) * 100_000)
    async with proxied(tmp_path, model=model) as ground, aiohttp.ClientSession() as session:
        body = {**requests.CHAT, "stream": True}
        response = await session.post(ground.url + CHAT, json=body, headers=ground.bearer)
        await response.content.readany()
        response.close()
        async with asyncio.timeout(patience(30)):
            while not model.closed:  # noqa: ASYNC110  the script has no event for it
                await asyncio.sleep(0.02)
        assert ground.host.attempts == []


async def test_an_answer_of_ours_that_is_all_text_is_inert(tmp_path: Path) -> None:
    """Markup in it calls nothing where no tool of that name was offered."""
    model = Scripted()
    async with proxied(tmp_path, model=model) as ground:
        for text in (CALL, "data: [DONE]\n\n", "/rl reset", '<tool_call>{"name": "rm"}</tool_call>'):
            model.says = (text,)
            for path in (CHAT, MESSAGES, RESPONSES):
                body = requests.BODIES[path] if text == CALL else requests.TOOLS[path]
                _, answer, _ = await ask(ground, path, body)
                assert json.dumps(text)[1:-1] in json.dumps(answer)
        assert {event.response for event in await ground.captured(12)} == {  # type: ignore[attr-defined]
            CALL,
            "data: [DONE]\n\n",
            "/rl reset",
            '<tool_call>{"name": "rm"}</tool_call>',
        }


OTHER = '<tool_call>{"name": "rm", "arguments": {}}</tool_call>'
LISTED = '<tool_call>{"name": "add", "arguments": [1]}</tool_call>'
READINGS: list[tuple[str, str, list[tuple[str, str]]]] = [
    ("Hello <tool", "Hello <tool", []),
    (f"Sure.\n{CALL}\n", "Sure.\n", [("add", '{"a":  1}')]),
    (f"{CALL}\n{CALL}", "", [("add", '{"a":  1}')] * 2),
    ('<tool_call>\n{"name": "add", "arguments": "{\\"a\\": 1}"}\n</tool_call>', "", [("add", '{"a": 1}')]),
    ('<tool_call>{"name": "add"}</tool_call>', "", [("add", "{}")]),
    ('<tool_call>{"name": "add", "arguments": {}}', "", [("add", "{}")]),
    (OTHER, OTHER, []),
    ("<tool_call>{oops}</tool_call> so", "<tool_call>{oops}</tool_call> so", []),
    ('<tool_call>["add"]</tool_call>', '<tool_call>["add"]</tool_call>', []),
    (LISTED, LISTED, []),
    ("<tool_call>", "<tool_call>", []),
    ("a < b <too_much> c", "a < b <too_much> c", []),
]


@pytest.mark.parametrize(("text", "words", "calls"), READINGS)
@pytest.mark.parametrize("size", [1, 5, 1000])
def test_calls_are_found_however_they_come(
    text: str, words: str, calls: list[tuple[str, str]], size: int
) -> None:
    reader = CallReader(["add"])
    found = [one for at in range(0, len(text), size) for one in reader.feed(text[at : at + size])] + list(
        reader.end()
    )
    assert "".join(one for one in found if isinstance(one, str)) == words == reader.text
    parts = [one for one in found if isinstance(one, Part)]
    assert [(one.name, one.arguments) for one in parts] == calls
    assert [one.place for one in parts] == list(range(len(calls)))


def test_a_long_call_is_read_in_linear_time() -> None:
    reader = CallReader(["add"])
    list(reader.feed("<tool_call>"))
    for _ in range(20_000):
        assert list(reader.feed("<tool_call> x ")) == []
    assert [type(one) for one in reader.end()] == [str]
