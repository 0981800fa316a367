# SPDX-License-Identifier: Apache-2.0
"""A model server that dies in the middle of a thought: who asked is told so, and nothing is kept of it."""

from __future__ import annotations

import contextlib
import json
from collections.abc import AsyncGenerator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from goodbot.api.chat_answers import Completion
from goodbot.base.errors import ServerError
from goodbot.config import ServingConfig
from goodbot.config.secrets import Secret
from goodbot.inference.servers import chat, llama_api
from goodbot.inference.servers.llama_api import PromptTokens
from goodbot.inference.servers.upstream import Upstream
from goodbot_fakes.openai_server import FakeOpenAI
from goodbot_fakes.policy import Policy

from tests.core.builders import open_bot, rows
from tests.core.inference.servers.test_thinking import ASKED, chunk, serving

DIED = {"message": "EngineCore died", "code": 500}
ABORTED = {"choices": [{"index": 0, "delta": {}, "finish_reason": "abort"}]}
THEN: dict[str, Sequence[str]] = {
    "the stream ends": (),
    "somebody ends it all the same": ("[DONE]",),
    "it says so": (json.dumps({"error": DIED}), "[DONE]"),
    "it says so as it used to": (json.dumps({"object": "error", **DIED}), "[DONE]"),
    "it gives no reason": (json.dumps(ABORTED), "[DONE]"),
}


class Dying(FakeOpenAI):
    """Its answers end within a thought, where `then` says how."""

    then: Sequence[str] | None = None

    async def _events(self, body: Mapping[str, Any], policy: Policy) -> AsyncGenerator[str]:
        if self.then is None:
            async for event in super()._events(body, policy):
                yield event
            return
        for words in ("<think>", "\nHm, gr"):
            choice = {"index": 0, "delta": {"content": words}, "finish_reason": None}
            yield json.dumps(self.chunk(body, choice, None))
        for event in self.then:
            yield event


@pytest.mark.parametrize("how", THEN)
async def test_half_a_thought_is_no_answer_in_a_chat(how: str, tmp_path: Path) -> None:
    server = Dying()
    async with server:
        serving_there = ServingConfig(server="openai", url=server.url, ask="never", max_tokens=20)
        async with open_bot(tmp_path, sections={"serving": serving_there}) as bot:
            server.then = THEN[how]
            said = (await bot.say("Hello?")).text
            assert said.startswith("I cannot answer right now")
            assert "Hm" not in said
            assert await rows(bot.store, "SELECT id FROM turns") == []
            server.then = None
            await bot.say("And now?")
            assert len(await rows(bot.store, "SELECT id FROM turns")) == 1


@pytest.mark.parametrize(
    "ends", [("[DONE]",), (json.dumps(chunk({}, "stop")),)], ids=["no reason", "no mark"]
)
async def test_a_whole_answer_is_one_however_its_server_ends_it(ends: Sequence[str]) -> None:
    lines = [f"data: {one}\n\n".encode() for one in (json.dumps(chunk({"content": "Green."})), *ends)]
    async with serving(lines, chat.PATH) as url:
        upstream = Upstream("the server", url, Secret(""))
        await upstream.open()
        try:
            *words, whole = [piece async for piece in chat.stream(upstream, {})]
        finally:
            await upstream.close()
    assert isinstance(whole, Completion)
    assert (words, whole.text, whole.finish) == (["Green."], "Green.", "stop")


async def test_what_is_held_back_of_a_thought_is_not_shown_as_its_answer() -> None:
    """Its mark is a word that answers begin with, too: only its end tells which it was."""
    delta = {"choices": [{"index": 0, "delta": {"content": "analysisHm, gr"}, "finish_reason": None}]}
    await _shows_nothing(chat.PATH, delta, lambda there: chat.stream(there, {}))


async def test_nor_of_llama_cpps() -> None:
    given = PromptTokens(tokens=(1,), opened=None, form="")
    delta = {"content": "analysisHm, gr", "tokens": [5], "stop": False}
    await _shows_nothing("/completion", delta, lambda there: llama_api.write(there, given, ASKED))


async def _shows_nothing(path: str, delta: Mapping[str, Any], asked: Any) -> None:
    async with serving([f"data: {json.dumps(delta)}\n\n".encode()], path) as url:
        upstream = Upstream("the server", url, Secret(""))
        await upstream.open()
        told: list[object] = []

        async def all_() -> None:
            async with contextlib.aclosing(asked(upstream)) as pieces:
                async for piece in pieces:
                    told.append(piece)

        try:
            with pytest.raises(ServerError, match="broke its answer off"):
                await all_()
        finally:
            await upstream.close()
    assert [piece for piece in told if isinstance(piece, str)] == []
