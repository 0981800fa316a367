# SPDX-License-Identifier: Apache-2.0
"""Any compatible server: it answers, takes no adapters, and says so."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from goodbot.api.server import Server
from goodbot.base.errors import AdapterError, ServerError
from goodbot.inference.servers.openai import OpenAIServer
from goodbot.testing import ServingContract
from goodbot.testing.serving_base import answered
from goodbot_fakes.openai_server import FakeOpenAI

from tests.core.inference.servers.remote import parts, started


def driver(server: FakeOpenAI, **changes: Any) -> OpenAIServer:
    return OpenAIServer(None, parts(server.url, **changes))


class TestContract(ServingContract):
    takes_adapters = False

    @pytest.fixture
    async def server(self) -> AsyncIterator[Server]:
        async with FakeOpenAI() as openai, started(driver(openai)) as server:
            yield server


async def test_it_says_that_training_is_for_nothing(tmp_path: Path) -> None:
    async with FakeOpenAI() as openai, started(driver(openai)) as server:
        assert "takes no adapters" in server.trouble()
        assert "goodbot adapters export" in server.trouble()
        with pytest.raises(AdapterError, match=r"server = \"embedded\""):
            await server.load(1, tmp_path)


async def test_a_server_that_lists_nothing_needs_the_models_name() -> None:
    class Silent(FakeOpenAI):
        def routes(self) -> list[web.RouteDef]:
            return [route for route in super().routes() if route.path != "/v1/models"]

    async with Silent() as openai:
        with pytest.raises(ServerError, match=r"set \[serving\] model"):
            await driver(openai).start()
        async with started(driver(openai, served_model="base-model")) as server:
            assert (await answered(server)).text


async def test_only_what_every_server_knows_is_asked() -> None:
    async with FakeOpenAI() as openai, started(driver(openai)) as server:
        await answered(server)
        [asked] = openai.asked("/v1/chat/completions")
    assert set(asked) == {"model", "messages", "max_tokens", "temperature", "top_p", "seed", "stream"}


async def test_what_the_config_names_is_asked_also_where_it_is_off() -> None:
    """A server that reads the model's own generation_config would draw with that."""
    named = {"top_k": 0, "min_p": 0.0, "top_p": 0.5}
    async with FakeOpenAI() as openai, started(driver(openai, drawn_with=named)) as server:
        await answered(server)
        [asked] = openai.asked("/v1/chat/completions")
    assert (asked["top_k"], asked["min_p"]) == (-1, 0)
    assert "repetition_penalty" not in asked
