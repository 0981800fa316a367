# SPDX-License-Identifier: Apache-2.0
"""Servers that refuse what others take: asked once more in a way that they take, and so from then on."""

from __future__ import annotations

import contextlib
import json
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from aiohttp import web
from goodbot.api.completions import with_form, with_tools, without_form
from goodbot.api.events import Event, OrderKey
from goodbot.api.manners import Attempt, Manners, formed
from goodbot.api.sentences import words
from goodbot.api.server import Generated, GenerateRequest
from goodbot.base.errors import ServerError
from goodbot.base.sampling import Filters
from goodbot.conversation import replies
from goodbot.inference.servers.openai import OpenAIServer
from goodbot.inference.servers.upstream import StatusError

from tests.core.inference.servers.remote import parts, started
from tests.core.made import CHANNEL, OWNER

SYSTEM = {"role": "system", "content": "Be terse."}
DEVELOPER = {"role": "developer", "content": "Be terse."}
ASKED = {"role": "user", "content": "What colour is grass?"}
SAID = {"role": "assistant", "content": "Green."}
Refuses = Callable[[dict[str, Any]], web.Response | None]


def error(words: str, status: int = 400) -> web.Response:
    return web.json_response({"error": {"message": words, "code": status}}, status=status)


def no_system(body: dict[str, Any]) -> web.Response | None:
    """As Gemma's template says it."""
    roles = [message["role"] for message in body["messages"]]
    return error("System role not supported") if "system" in roles else None


def alternates(body: dict[str, Any]) -> web.Response | None:
    """As Mistral's template says it; the server has it for a fault of its own."""
    roles = [message["role"] for message in body["messages"] if message["role"] != "system"]
    good = roles == [("user", "assistant")[number % 2] for number in range(len(roles))]
    words = "Conversation roles must alternate user/assistant/user/assistant/..."
    return None if good else error(words, 500)


def system_first(body: dict[str, Any]) -> web.Response | None:
    roles = [message["role"] for message in body["messages"]]
    return error("System message must be at the beginning.") if "system" in roles[1:] else None


def no_developer(body: dict[str, Any]) -> web.Response | None:
    roles = [message["role"] for message in body["messages"]]
    return error("Unexpected message role.") if "developer" in roles else None


def newer(body: dict[str, Any]) -> web.Response | None:
    words = (
        "Unsupported parameter: 'max_tokens' is not supported with this model. Use "
        "'max_completion_tokens' instead."
    )
    return error(words) if "max_tokens" in body else None


def no_seed(body: dict[str, Any]) -> web.Response | None:
    told = [{"loc": ["body", "seed"], "msg": "extra fields not permitted", "input": "a secret"}]
    return web.json_response({"detail": told}, status=422) if "seed" in body else None


def cold(body: dict[str, Any]) -> web.Response | None:
    words = "Unsupported value: 'temperature' does not support 0.7. Only the default (1) is supported."
    return error(words) if "temperature" in body else None


def no_top_p(body: dict[str, Any]) -> web.Response | None:
    return error("'top_p' is not supported with this model.") if "top_p" in body else None


def all_of_it(body: dict[str, Any]) -> web.Response | None:
    every = (no_system, newer, no_seed, cold)
    return next((refused for one in every if (refused := one(body)) is not None), None)


@dataclass
class Strict:
    """A server that refuses something."""

    refuses: Refuses
    got: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    url: str = ""

    async def answer(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        self.got.append(body)
        if (refused := self.refuses(body)) is not None:
            return refused
        choice = {"index": 0, "delta": {"content": "Green."}, "finish_reason": "stop"}
        data = f"data: {json.dumps({'choices': [choice]})}\n\ndata: [DONE]\n\n"
        return web.Response(text=data, content_type="text/event-stream")


@contextlib.asynccontextmanager
async def strict(refuses: Refuses) -> AsyncIterator[Strict]:
    made = Strict(refuses)

    async def models(_: web.Request) -> web.Response:
        return web.json_response({"data": [{"id": "m"}]})

    application = web.Application()
    application.router.add_post("/v1/chat/completions", made.answer)
    application.router.add_get("/v1/models", models)
    runner = web.AppRunner(application)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    made.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield made
    finally:
        await runner.cleanup()


async def ask(driver: OpenAIServer, *messages: dict[str, Any]) -> Generated:
    request = GenerateRequest(
        messages=messages, max_tokens=64, temperature=0.7, seed=1, filters=Filters(top_p=0.9)
    )
    *_, last = [piece async for piece in driver.generate(request)]
    assert isinstance(last, Generated)
    return last


FOLDED = {"role": "user", "content": "Be terse.\n\nWhat colour is grass?"}
TWICE = [ASKED, SAID, ASKED, ASKED]
JOINED = {"role": "user", "content": f"{ASKED['content']}\n\n{ASKED['content']}"}
NO_SYSTEM = ([SYSTEM, ASKED], {"messages": [FOLDED]}, "system messages (their words go")
MIDDLE = [ASKED, SAID, SYSTEM, ASKED]


def says(words: str, status: int = 400) -> Refuses:
    """Refuses a system message in these words."""
    return lambda body: error(words, status) if body["messages"][0]["role"] == "system" else None


CASES: list[tuple[Refuses, list[dict[str, Any]], dict[str, Any], str]] = [
    (no_system, [SYSTEM, ASKED], {"messages": [FOLDED]}, "system messages (their words go"),
    (no_system, MIDDLE, {"messages": [FOLDED, SAID, ASKED]}, "system messages (their words go"),
    (says("Developer instruction is not enabled for models/gemma-3-27b-it"), *NO_SYSTEM),
    (says("System instruction is not enabled for this model"), *NO_SYSTEM),
    (says("`system_instruction` isn't supported"), *NO_SYSTEM),
    (says("messages.0.role: Input should be 'user' or 'assistant'"), *NO_SYSTEM),
    (says("messages.0.role: Input should be 'user' or 'assistant'", 422), *NO_SYSTEM),
    (alternates, TWICE, {"messages": [ASKED, SAID, JOINED]}, "this order of roles"),
    (system_first, MIDDLE, {"messages": [SYSTEM, ASKED, SAID, ASKED]}, "in the middle"),
    (no_developer, [DEVELOPER, ASKED], {"messages": [SYSTEM, ASKED]}, "system messages"),
    (newer, [ASKED], {"max_completion_tokens": 64}, "max_tokens (it gets max_completion_tokens)"),
    (no_seed, [ASKED], {}, "seed (left out)"),
    (cold, [ASKED], {}, "temperature (left out)"),
    (all_of_it, [SYSTEM, ASKED], {"messages": [FOLDED], "max_completion_tokens": 64}, "seed (left out)"),
]


@pytest.mark.parametrize(("refuses", "messages", "sent", "told"), CASES)
async def test_what_is_refused_is_said_in_another_way_once_and_from_then_on(
    refuses: Refuses, messages: list[dict[str, Any]], sent: dict[str, Any], told: str
) -> None:
    async with strict(refuses) as server, started(OpenAIServer(None, parts(server.url))) as driver:
        assert "refuses" not in driver.trouble()
        first = await ask(driver, *messages)
        assert first.text == "Green."
        assert {name: server.got[-1][name] for name in sent} == sent
        tries = len(server.got)
        assert tries >= 2
        assert (await ask(driver, *messages)).form == first.form
        assert len(server.got) == tries + 1  # it is remembered
        assert server.got[-1] == server.got[-2]
        assert told in driver.trouble()
        assert "the server refuses: " in driver.trouble()
        # Training reads what the server got.
        stored = with_form(messages, first.form)
        assert formed(stored) == server.got[-1]["messages"]
        assert without_form(stored)[0] == messages


async def test_a_filter_that_is_left_out_is_not_said_to_have_been_applied() -> None:
    async with strict(no_top_p) as server, started(OpenAIServer(None, parts(server.url))) as driver:
        assert (await ask(driver, ASKED)).filters == Filters()
        assert "top_p" not in server.got[-1]


MAKERS = Filters(top_p=0.95, top_k=20, min_p=0.05, repetition_penalty=1.05)
OTHERS = {"top_k": 20, "min_p": 0.05, "repetition_penalty": 1.05}


def openais(body: dict[str, Any]) -> web.Response | None:
    """As api.openai.com says it: it names one."""
    named = next((name for name in OTHERS if name in body), "")
    return error(f"Unrecognized request argument supplied: {named}") if named else None


def openais_all(body: dict[str, Any]) -> web.Response | None:
    named = [name for name in OTHERS if name in body]
    return error(f"Unrecognized request arguments supplied: {', '.join(named)}") if named else None


async def drawn(driver: OpenAIServer) -> Filters:
    request = GenerateRequest(messages=[ASKED], max_tokens=64, temperature=0.7, seed=1, filters=MAKERS)
    *_, last = [piece async for piece in driver.generate(request)]
    assert isinstance(last, Generated)
    return last.filters


async def test_what_the_makers_recommend_is_sent_to_any_server() -> None:
    async with strict(lambda _: None) as server, started(OpenAIServer(None, parts(server.url))) as driver:
        assert await drawn(driver) == MAKERS
        assert server.got[-1].items() >= {"top_p": 0.95, **OTHERS}.items()
        await ask(driver, ASKED)
        assert not server.got[-1].keys() & OTHERS, "what changes nothing is not sent"


@pytest.mark.parametrize("refuses", [openais, openais_all])
async def test_what_openai_does_not_know_is_left_out_of_requests_and_of_what_is_stored(
    refuses: Refuses,
) -> None:
    async with strict(refuses) as server, started(OpenAIServer(None, parts(server.url))) as driver:
        assert await drawn(driver) == Filters(top_p=0.95)
        tries = len(server.got)
        assert await drawn(driver) == Filters(top_p=0.95)
        assert len(server.got) == tries + 1, "it is remembered"
        assert not server.got[-1].keys() & OTHERS
        assert all(f"{name} (left out)" in driver.trouble() for name in OTHERS)


REFUSALS = [
    "This model's maximum context length is 8192 tokens. However, you requested 9000 tokens in max_tokens.",
    "max_tokens must be at most 4096",
    "Invalid 'max_tokens': integer above maximum value. Expected a value <= 4096, but got 9000 instead.",
    "max_tokens: 9000 > 8192, which is the maximum allowed number of output tokens for this model",
    "Invalid value for max_tokens: must be between 1 and 4096",
    "max_tokens is out of range: it is not supported",
    "The system is overloaded: it cannot answer.",
    "Bad request",
    "images are not supported",
    "tools is not supported",
]


@pytest.mark.parametrize("words", REFUSALS)
async def test_what_no_other_way_helps_is_told_and_changes_nothing(words: str) -> None:
    refused = [error(words)]
    async with (
        strict(lambda _: refused.pop() if refused else None) as server,
        started(OpenAIServer(None, parts(server.url))) as driver,
    ):
        with pytest.raises(StatusError):
            await ask(driver, SYSTEM, ASKED)
        assert len(server.got) == 1
        assert f"the server refuses: what it was asked last: {words[:40]}" in driver.trouble()
        assert (await ask(driver, SYSTEM, ASKED)).text == "Green."
        assert "refuses" not in driver.trouble()
        assert server.got[-1]["messages"] == [SYSTEM, ASKED]


async def test_what_did_not_help_is_forgotten() -> None:
    def nothing(_: dict[str, Any]) -> web.Response:
        return error("Unexpected role: only tools are supported")

    async with strict(nothing) as server, started(OpenAIServer(None, parts(server.url))) as driver:
        with pytest.raises(StatusError, match="Unexpected role"):
            await ask(driver, SYSTEM, ASKED)
        assert server.got[0] != server.got[-1]
        with pytest.raises(StatusError):
            await ask(driver, SYSTEM, ASKED)
        assert [one["messages"] for one in server.got].count([SYSTEM, ASKED]) == 2


def test_what_one_request_learns_neither_changes_nor_undoes_what_another_does() -> None:
    manners, body = Manners(), {"messages": [SYSTEM, ASKED], "seed": 1}
    first, second, third = (Attempt(manners, body) for _ in range(3))
    for one in (first, second):
        assert one.again(400, "System role not supported")
        assert one.sent["messages"] == [FOLDED]
    assert third.again(400, "'seed' is not supported")
    assert third.sent["messages"] == [SYSTEM, ASKED]
    assert manners.told() == ""  # nothing is known before the server takes it
    first.taken()
    assert not third.again(400, "No.")
    assert manners.form == "without_system"
    assert "seed" in manners.fitted(body)
    second.taken()
    assert manners.told() == "the server refuses: system messages (their words go with the first question)"


async def test_an_answer_says_how_it_was_asked_for_whatever_is_learnt_meanwhile() -> None:
    async with strict(lambda _: None) as server, started(OpenAIServer(None, parts(server.url))) as driver:
        request = GenerateRequest(
            messages=[SYSTEM, ASKED], max_tokens=64, temperature=0.7, seed=1, filters=Filters(top_p=0.9)
        )
        pieces = driver.generate(request)
        assert await anext(pieces) == "Green."
        for words in ("System role not supported", "top_p is not supported", "temperature: extra"):
            attempt = Attempt(driver.upstream.manners, {"messages": [SYSTEM], "top_p": 1, "temperature": 1})
            assert attempt.again(400, words)
            attempt.taken()
        [whole] = [piece async for piece in pieces]
    assert isinstance(whole, Generated)
    assert (whole.form, whole.filters, whole.temperature) == ("", Filters(top_p=0.9), None)


async def test_a_temperature_that_is_left_out_is_not_said_to_have_been_applied() -> None:
    async with strict(cold) as server, started(OpenAIServer(None, parts(server.url))) as driver:
        assert (await ask(driver, ASKED)).temperature == 1.0
        assert "temperature" not in server.got[-1]


async def test_of_a_list_of_errors_each_is_told_without_what_people_wrote() -> None:
    def refuses(_: dict[str, Any]) -> web.Response:
        told = [
            {"loc": ["body", "messages", 0, "content"], "msg": "too long", "input": "my secret"},
            {"loc": ["body", "model"], "msg": "unknown", "ctx": {"given": "my secret"}},
        ]
        return web.json_response({"detail": told}, status=422)

    async with strict(refuses) as server, started(OpenAIServer(None, parts(server.url))) as driver:
        with pytest.raises(StatusError) as refused:
            await ask(driver, ASKED)
    assert "messages.0.content: too long; model: unknown" in str(refused.value)
    assert "secret" not in str(refused.value)


def test_tools_stay_with_a_prompt_in_another_form() -> None:
    tools = [{"type": "function", "function": {"name": "add"}}]
    stored = with_form(with_tools([SYSTEM, ASKED], tools), "without_system")
    assert formed(stored) == [{**FOLDED, "tools": tools}]


def test_pictures_stay_with_the_words_that_go_before_them() -> None:
    url = {"type": "image_url", "image_url": {"url": "data:x"}}
    body = {"messages": [SYSTEM, {"role": "user", "content": [url]}]}
    manners = Manners(form="without_system")
    words = {"type": "text", "text": "Be terse.\n\n"}
    assert manners.fitted(body)["messages"] == [{"role": "user", "content": [words, url]}]


@pytest.mark.parametrize(
    ("status", "told"),
    [(400, "refuses it"), (422, "refuses it"), (404, "is not running"), (503, "is not running")],
)
async def test_who_asks_is_told_that_the_server_refuses_it(status: int, told: str) -> None:
    event = Event(event_id="e", order=OrderKey(1), user=OWNER, channel=CHANNEL)
    async with (
        strict(lambda _: error("No.", status)) as server,
        started(OpenAIServer(None, parts(server.url))) as driver,
    ):
        with pytest.raises(StatusError) as refused:
            await ask(driver, ASKED)
    assert told in words(replies._told(refused.value, event))
    assert "my model is not running" in words(replies._told(ServerError("down"), event))


async def test_the_server_s_own_words_are_all_that_is_sent() -> None:
    """The form is for our own store: no server gets it."""
    async with strict(lambda _: None) as server, started(OpenAIServer(None, parts(server.url))) as driver:
        await ask(driver, *with_form([SYSTEM, ASKED], "plainer"))
        assert server.got[-1]["messages"] == [SYSTEM, ASKED]
