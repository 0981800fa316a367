# SPDX-License-Identifier: Apache-2.0
"""Streams of chat completions, from a server that is bent in every way."""

from __future__ import annotations

from typing import Any

import pytest
from goodbot.api.chat_answers import Completion, ids
from goodbot.base.errors import ServerError
from goodbot.config.secrets import Secret
from goodbot.inference.servers import chat
from goodbot.inference.servers.upstream import StatusError, Unreachable, Upstream
from goodbot_fakes.openai_server import FakeOpenAI
from goodbot_fakes.vllm import FakeVllm

from tests.core.inference.servers.remote import until

BODY: dict[str, Any] = {
    "model": "base-model",
    "messages": [{"role": "user", "content": "Hello"}],
    "max_tokens": 12,
    "temperature": 0.0,
}


async def answered(server: FakeOpenAI, **changes: Any) -> tuple[list[str], Completion]:
    upstream = Upstream("the server", server.url, Secret(""))
    await upstream.open()
    try:
        *pieces, whole = [piece async for piece in chat.stream(upstream, {**BODY, **changes})]
    finally:
        await upstream.close()
    assert isinstance(whole, Completion)
    return [piece for piece in pieces if isinstance(piece, str)], whole


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize("piece", [0, 1, 7])
async def test_an_answer_is_the_same_however_it_is_cut(newline: str, piece: int) -> None:
    async with FakeOpenAI() as plain, FakeOpenAI(newline=newline, piece=piece) as server:
        pieces, whole = await answered(server, temperature=1.0, seed=11, max_tokens=40)
        assert "".join(pieces) == whole.text
        assert (pieces, whole) == await answered(plain, temperature=1.0, seed=11, max_tokens=40)


async def test_text_in_many_languages_arrives(monkeypatch: pytest.MonkeyPatch) -> None:
    async with FakeOpenAI(piece=1) as server:
        texts = [(await answered(server, temperature=2.0, seed=seed))[1].text for seed in range(4)]
    assert any("東京" in text or "☕" in text or "über" in text for text in texts)


async def test_it_says_why_it_ended() -> None:
    async with FakeOpenAI() as server:
        assert (await answered(server, max_tokens=2))[1].finish == "length"
        assert (await answered(server, max_tokens=80))[1].finish == "stop"


async def test_the_end_may_go_unsaid() -> None:
    async with FakeOpenAI() as server:
        whole = await answered(server)
        server.faults.no_end = True
        assert await answered(server) == whole


async def test_a_server_that_does_not_stream_is_understood(monkeypatch: pytest.MonkeyPatch) -> None:
    async with FakeOpenAI() as server:
        _, streamed = await answered(server)
        monkeypatch.setattr(server, "_streamed", lambda _, body, policy: server._whole(body, policy))
        pieces, whole = await answered(server)
    assert (pieces, whole.text, whole.finish) == ([streamed.text], streamed.text, "length")


async def test_half_an_answer_is_none() -> None:
    async with FakeOpenAI(delay=0.001) as server:
        server.faults.breaks_off = True
        with pytest.raises(Unreachable, match="hung up in the middle"):
            await answered(server)


async def test_an_error_in_the_stream_is_told() -> None:
    async with FakeOpenAI() as server:
        server.faults.error_in_stream = True
        with pytest.raises(ServerError, match="failed: EngineCore died"):
            await answered(server)


async def test_an_error_status_is_told() -> None:
    async with FakeOpenAI() as server:
        server.faults.fails = True
        with pytest.raises(StatusError, match="status 500: EngineDeadError"):
            await answered(server)


@pytest.mark.parametrize(
    "data",
    [
        "{",
        "[1]",
        "null",
        "{}",
        '{"choices": 7}',
        '{"choices": [7]}',
        '{"choices": [{"delta": []}]}',
        '{"choices": [{"delta": {"content": 7}, "logprobs": {"content": [[]]}, "token_ids": ["x"]}]}',
        '{"choices": [{"finish_reason": "abort", "delta": {}}]}',
        "[" * 100_000,
    ],
)
async def test_nonsense_is_an_error(data: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async def events(*_: object) -> Any:
        yield data

    async with FakeOpenAI() as server:
        monkeypatch.setattr(server, "_events", events)
        with pytest.raises(ServerError, match=r"no answer|broke its answer off"):
            await answered(server)


async def test_who_leaves_early_hangs_up() -> None:
    async with FakeOpenAI(delay=0.02) as server:
        upstream = Upstream("the server", server.url, Secret(""))
        await upstream.open()
        pieces = chat.stream(upstream, BODY)
        await anext(pieces)
        await anext(pieces)
        await pieces.aclose()
        await until(lambda: server.hung_up == 1)
        await upstream.close()


async def test_token_ids_come_with_log_probs_or_not_at_all() -> None:
    asked = {"logprobs": True, "return_token_ids": True}
    async with FakeVllm() as server:
        _, whole = await answered(server, **asked)
        assert len(whole.tokens) == len(whole.logprobs) == 12
        assert len(whole.prompt_tokens) > 5
        for left_out in asked:
            _, whole = await answered(server, **{**asked, left_out: False})
            assert whole.tokens == whole.logprobs == ()


@pytest.mark.parametrize("token", [-1, 1 << 31, 10**40, True, 1.0, "1"])
def test_what_is_no_token_id_is_not_kept(token: object) -> None:
    assert ids([7, (1 << 31) - 1]) == (7, (1 << 31) - 1)
    assert ids([7, token]) == ()


async def test_first_tokens_are_the_likeliest() -> None:
    async with FakeVllm() as server:
        upstream = Upstream("the server", server.url, Secret(""))
        await upstream.open()
        first = await chat.first_tokens(upstream, BODY, 5)
        [asked] = server.asked(chat.PATH)
        await upstream.close()
    assert len(first) == 5
    assert [*first.values()] == sorted(first.values(), reverse=True)
    assert (asked["max_tokens"], asked["temperature"], asked["top_logprobs"]) == (1, 1.0, 5)
