# SPDX-License-Identifier: Apache-2.0
"""An answer whose writer dies under it: the program is told so in its own API's way, and nothing is kept."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import AsyncGenerator, Sequence
from pathlib import Path
from typing import Any

import aiohttp
import anthropic
import openai
import pytest
from goodbot.api.completions import CompletionRequest
from goodbot.base.errors import ServerError
from goodbot.base.thoughts import Thought
from goodbot_connectors.api.proxy.dialects import chat
from goodbot_connectors.api.proxy.own.asking import answer

from tests.connectors.api.proxy import requests, schemas
from tests.connectors.api.proxy.ground import Ground, Scripted, far_side, proxied
from tests.connectors.api.proxy.upstream import Upstream, data
from tests.support import patience

CHAT, RESPONSES, MESSAGES = "/v1/chat/completions", "/v1/responses", "/v1/messages"
WANTED: dict[str, dict[str, Any]] = {
    CHAT: {"reasoning_effort": "low"},
    RESPONSES: {"reasoning": {"effort": "medium"}},
    MESSAGES: {"thinking": {"type": "enabled", "budget_tokens": 1024}},
}
DONE = b"data: [DONE]\n\n"
DIED = {"message": "EngineCore died", "type": "x", "code": 500}
ABORTED = {"index": 0, "delta": {}, "logprobs": None, "finish_reason": "abort"}
HEAD = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "m-1"}
THEN: dict[str, Sequence[bytes] | None] = {
    "it hangs up": None,
    "the stream ends": (),
    "somebody ends it all the same": (DONE,),
    "it says so": (data({"error": DIED}), DONE),
    "it says so as it used to": (data({"object": "error", **DIED}), DONE),
    "it gives no reason": (data({**HEAD, "choices": [ABORTED]}), DONE),
}
"""How a server dies in the middle of an answer."""


def dying(fake: Upstream, how: str) -> None:
    fake.then = THEN[how]
    fake.broken = fake.then is None


def dying_late(fake: Upstream, how: str) -> None:
    """Once the first of it is read, so that it is no answer with an error's status."""
    dying(fake, how)
    fake.waits = True


async def _streamed(
    ground: Ground, fake: Upstream | None, web: aiohttp.ClientSession, path: str, **more: Any
) -> tuple[str, bool]:
    """What comes, and whether the connection was whole to its end."""
    body = {**requests.BODIES[path], "stream": True, **more}
    got = bytearray()
    async with web.post(ground.url + path, json=body, headers=ground.bearer) as response:
        assert response.status == 200
        try:
            async with asyncio.timeout(patience(30)):
                async for piece in response.content.iter_any():
                    got.extend(piece)
                    if fake is not None:
                        fake.goes_on.set()
        except aiohttp.ClientError:
            return got.decode(), False
    return got.decode(), True


def _told(path: str, stream: str) -> str:
    """The words of the error that a stream ends with, in the shape that clients of its API read."""
    events = [event for event in stream.split("\n\n") if "data: {" in event]
    [failed] = [event for event in events if '"error": {' in event or "event: error" in event]
    assert not [end for end in ("message_stop", "response.completed", '"stop"') if end in stream]
    value = json.loads(failed.partition("data: ")[2])
    if path == RESPONSES:
        [*_, last] = schemas.events(path, stream.encode())
        assert last.type in ("response.failed", "error")
        assert last.sequence_number == len(events) - 1
        return last.message if last.type == "error" else last.response.error.message
    assert failed.startswith("event: error\n") is (path == MESSAGES)
    assert path != MESSAGES or value["type"] == "error"
    return value["error"]["message"]


@pytest.mark.parametrize("path", WANTED)
@pytest.mark.parametrize("wanted", [False, True])
@pytest.mark.parametrize("how", THEN)
async def test_a_server_of_ours_that_dies_in_the_middle_of_a_thought(
    tmp_path: Path, fake: Upstream, web: aiohttp.ClientSession, path: str, wanted: bool, how: str
) -> None:
    fake.says = "<think>\nHm, gr"
    dying_late(fake, how)
    async with proxied(tmp_path, model=Scripted(far=far_side(fake.url))) as ground:
        stream, whole = await _streamed(ground, fake, web, path, **(WANTED[path] if wanted else {}))
        assert whole
        words = _told(path, stream)
        assert [one for one in ("broke its answer off", "EngineCore died", "failed in the") if one in words]
        assert "think>" not in stream
        shown = wanted and path != RESPONSES  # there a thought is told as a whole
        assert ("Hm, gr" in stream) is shown or how == "it hangs up", "its last words may be lost"
        assert shown or "Hm, gr" not in stream
        assert ground.host.attempts == []


@pytest.mark.parametrize("path", [RESPONSES, MESSAGES])
@pytest.mark.parametrize("how", THEN)
async def test_who_gets_it_whole_gets_a_status(
    tmp_path: Path, fake: Upstream, web: aiohttp.ClientSession, path: str, how: str
) -> None:
    fake.says = "<think>\nHm, gr"
    dying(fake, how)
    async with proxied(tmp_path, model=Scripted(far=far_side(fake.url))) as ground:
        async with web.post(ground.url + path, json=requests.BODIES[path], headers=ground.bearer) as response:
            told = await response.json()
            assert response.status == 503
        words = told["error"]["message"]
        assert words.endswith(("broke its answer off.", "failed in the middle of an answer."))
        assert ground.host.attempts == []


THOUGHT = {"role": "assistant", "content": "<think>\nHm, gr"}
WHOLE: dict[str, Any] = {
    "it says so": {"error": DIED},
    "it gives no reason": {"choices": [{"index": 0, "message": THOUGHT, "finish_reason": "abort"}]},
    "nobody gives one": {"choices": [{"index": 0, "message": THOUGHT, "finish_reason": None}]},
}


@pytest.mark.parametrize("how", WHOLE)
async def test_what_comes_whole_and_is_half_a_thought_is_no_answer(
    tmp_path: Path, fake: Upstream, web: aiohttp.ClientSession, how: str
) -> None:
    async with proxied(tmp_path, model=Scripted(far=far_side(fake.url))) as ground:
        fake.refuses = [(200, WHOLE[how])]
        async with web.post(ground.url + CHAT, json=requests.CHAT, headers=ground.bearer) as response:
            assert response.status == 503
            assert "broke its answer off" in (await response.json())["error"]["message"]
        assert ground.host.attempts == []


STOP = data({**HEAD, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
COUNT = data({**HEAD, "choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 4}})
ENDS: dict[str, Sequence[bytes]] = {
    "no reason": (DONE,),
    "a count, and no reason": (COUNT, DONE),
    "no mark": (STOP,),
    "a count, and no mark": (STOP, COUNT),
    "no empty line": (STOP.rstrip(),),
    "no space": (STOP.replace(b": ", b":"), b"data:[DONE]\r\n\r\n"),
}
"""How a server ends an answer that is whole."""


@pytest.mark.parametrize("how", ENDS)
@pytest.mark.parametrize("capture", [True, False, None], ids=["kept", "not kept", "our own"])
async def test_a_whole_answer_is_one_however_its_server_ends_it(
    tmp_path: Path, fake: Upstream, web: aiohttp.ClientSession, how: str, capture: bool | None
) -> None:
    fake.then = ENDS[how]
    given: dict[str, Any] = {"model": Scripted(far=far_side(fake.url))}
    if capture is not None:
        given = {"upstream": fake.url, "capture": capture}
    async with proxied(tmp_path, **given) as ground:
        stream, whole = await _streamed(ground, fake, web, CHAT)
        assert whole
        assert '"error"' not in stream
        assert capture is None or stream == b"".join([*fake.sent, *fake.then]).decode()
        kept = "no reason" not in how and capture is not False
        assert len(ground.host.attempts) == kept


async def test_what_is_held_back_of_a_thought_is_not_told_as_its_answer(fake: Upstream) -> None:
    """Its mark is a word that answers begin with, too: only its end tells which it was."""
    fake.says, fake.then = "analysisHm, gr", ()
    asked = chat.asked(requests.CHAT)
    async with (
        aiohttp.ClientSession() as web,
        web.post(f"{fake.url}{CHAT}", json={**requests.CHAT, "stream": True}) as response,
    ):
        told: list[Any] = []

        async def all_() -> None:
            async for delta in answer(far_side(fake.url), response, asked):
                told.append(delta)

        with pytest.raises(ServerError, match="broke its answer off"):
            await all_()
    assert [one for one in told if not isinstance(one, Thought)] == []


class Leaving(Scripted):
    """A model whose answer stops without an end."""

    async def answer(self, question: CompletionRequest) -> AsyncGenerator[Any, None]:
        yield Thought("Hm, gr")
        yield "Gre"


@pytest.mark.parametrize("path", requests.BODIES)
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
async def test_our_own_model_that_comes_to_no_end(
    tmp_path: Path, web: aiohttp.ClientSession, path: str, stream: bool
) -> None:
    async with proxied(tmp_path, model=Leaving()) as ground:
        if stream:
            told, whole = await _streamed(ground, None, web, path)
            assert whole
            assert "half way" in _told(path, told)
        else:
            body = requests.BODIES[path]
            async with web.post(ground.url + path, json=body, headers=ground.bearer) as response:
                assert response.status == 503
        assert ground.host.attempts == []


async def test_the_official_clients_raise_or_say_so(tmp_path: Path, fake: Upstream) -> None:
    fake.says, fake.then = "<think>\nHm, gr", ()
    async with (
        proxied(tmp_path, model=Scripted(far=far_side(fake.url))) as ground,
        openai.AsyncOpenAI(api_key=ground.token, base_url=f"{ground.url}/v1", max_retries=0) as one,
        anthropic.AsyncAnthropic(api_key=ground.token, base_url=ground.url, max_retries=0) as two,
    ):
        with pytest.raises(openai.APIError, match="broke its answer off"):
            async for _ in await one.chat.completions.create(**requests.CHAT, stream=True):
                pass
        *_, last = [event async for event in await one.responses.create(**requests.RESPONSES, stream=True)]
        assert last.type == "response.failed"
        with pytest.raises(anthropic.APIError, match="broke its answer off"):
            async for _ in await two.messages.create(**requests.MESSAGES, stream=True):
                pass


@pytest.mark.parametrize("path", requests.BODIES)
@pytest.mark.parametrize("how", ["it hangs up", "the stream ends"])
@pytest.mark.parametrize("capture", [True, False])
async def test_an_upstream_that_dies_is_told_behind_what_it_said(
    tmp_path: Path, fake: Upstream, web: aiohttp.ClientSession, path: str, how: str, capture: bool
) -> None:
    """Also where nothing is kept."""
    if path != "/v1/completions":  # which has no thoughts
        fake.says = "<think>\nHm, gr"
    dying_late(fake, how)
    async with proxied(tmp_path, upstream=fake.url, upstream_dialect="both", capture=capture) as ground:
        stream, whole = await _streamed(ground, fake, web, path)
        assert whole is (how == "the stream ends")
        sent = fake.sent if whole else fake.sent[:1]  # the last ones may be lost with the connection
        assert stream.startswith(b"".join(sent).decode()), "what came goes through as it is"
        assert _told(path, stream) == "The upstream broke its answer off: try again."
        assert ground.host.attempts == []


@pytest.mark.parametrize("how", ["it says so", "it gives no reason", "somebody else's word"])
async def test_what_an_upstream_says_of_its_end_goes_through_and_is_no_answer(
    tmp_path: Path, fake: Upstream, web: aiohttp.ClientSession, how: str
) -> None:
    erred = {**HEAD, "error": DIED, "choices": [{**ABORTED, "finish_reason": "error"}]}
    fake.then = THEN.get(how, (data(erred), DONE))
    async with proxied(tmp_path, upstream=fake.url) as ground:
        stream, whole = await _streamed(ground, fake, web, CHAT)
        assert whole
        assert stream == b"".join([*fake.sent, *(fake.then or ())]).decode()
        assert ground.host.attempts == []


async def test_a_compressed_stream_without_an_end_must_not_look_whole(
    tmp_path: Path, fake: Upstream, web: aiohttp.ClientSession
) -> None:
    fake.packs = "gzip", lambda body: gzip.compress(body[: len(body) // 2])
    async with proxied(tmp_path, upstream=fake.url) as ground:
        body = {**requests.CHAT, "stream": True}
        async with web.post(ground.url + CHAT, json=body, headers=ground.bearer) as response:
            with pytest.raises(aiohttp.ClientError):
                await asyncio.wait_for(response.read(), patience(30))
        assert ground.host.attempts == []
