# SPDX-License-Identifier: Apache-2.0
"""Answers: streamed, many at once, cancelled; and the life of a server."""

from __future__ import annotations

import asyncio

import pytest

from goodbot.api.server import BASE, Server
from goodbot.base.errors import AdapterError, ServerError
from goodbot.testing.patience import patience
from goodbot.testing.serving_base import (
    PATIENCE,
    QUESTION,
    TOKENS,
    Answering,
    ServingGround,
    answered,
    asking,
)

QUESTIONS = (QUESTION, "Hello!", "Tell me a story.", "What is 2 + 2?", "Who are you?", "Why?")


class AnswersContract(ServingGround):
    """start, stop, generate, healthy."""

    async def test_an_answer_streams_and_its_pieces_add_up_to_it(self, server: Server) -> None:
        async with Answering(server, asking()) as answer:
            whole = await answer.rest()
        assert whole.text.strip()
        assert "".join(answer.pieces) == whole.text

    async def test_an_answer_says_who_wrote_it_and_why_it_ended(self, server: Server) -> None:
        whole = await answered(server)
        assert whole.version == BASE
        assert whole.finish in ("stop", "length")

    async def test_an_answer_is_no_longer_than_it_may_be(self, server: Server) -> None:
        short, long = await answered(server, max_tokens=3), await answered(server)
        assert len(short.text) <= len(long.text)
        assert len(short.tokens) <= 3
        assert len(long.tokens) <= TOKENS

    async def test_what_is_told_of_tokens_fits_together(self, server: Server) -> None:
        """Nothing, or an id and a log-prob of each; training takes them at their word."""
        whole = await answered(server)
        assert len(whole.tokens) == len(whole.logprobs)
        assert bool(whole.tokens) <= bool(whole.prompt_tokens)
        assert all(logprob <= 1e-4 for logprob in whole.logprobs)

    async def test_many_are_answered_at_once_and_each_gets_its_own_answer(self, server: Server) -> None:
        alone = [(await answered(server, text, max_tokens=6)).text for text in QUESTIONS]
        async with asyncio.timeout(patience(PATIENCE)):
            together = await asyncio.gather(*(answered(server, text, max_tokens=6) for text in QUESTIONS))
        assert [whole.text for whole in together] == alone

    async def test_an_answer_that_nobody_wants_any_more_is_in_nobodys_way(self, server: Server) -> None:
        async with Answering(server, asking(max_tokens=400)) as answer:
            await answer.begun()
        async with asyncio.timeout(patience(PATIENCE)):
            assert (await answered(server)).text == (await answered(server)).text

    async def test_a_version_that_is_not_there_is_answered_by_no_other(self, server: Server) -> None:
        with pytest.raises((ServerError, AdapterError)):
            await answered(server, version=77)
        assert (await answered(server)).version == BASE

    async def test_it_is_healthy_until_it_is_stopped_and_once_it_is_started_again(
        self, server: Server
    ) -> None:
        assert server.healthy()
        before = await answered(server)
        await server.stop()
        await server.stop()
        assert not server.healthy()
        with pytest.raises(ServerError):
            await answered(server)
        with pytest.raises(ServerError):
            await server.served()
        await server.start()
        assert server.healthy()
        assert (await answered(server)).text == before.text

    async def test_while_it_makes_room_questions_wait(self, server: Server) -> None:
        if not await server.make_room():
            assert (await answered(server)).text
            return
        waiting = asyncio.create_task(answered(server))
        await asyncio.sleep(0.2)
        assert not waiting.done()
        await server.come_back()
        async with asyncio.timeout(patience(PATIENCE)):
            assert (await waiting).version == BASE
