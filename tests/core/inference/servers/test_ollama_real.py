# SPDX-License-Identifier: Apache-2.0
"""Goodbot's tiny model and two adapters of it in a real Ollama: the whole contract (`make test-serving`).

GOODBOT_TEST_OLLAMA_URL says where it is. What this makes there is called `goodbot-test…` and removed again.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest
from goodbot.api.server import Server
from goodbot.base.spawn import child_environment
from goodbot.config.secrets import Secret
from goodbot.inference.servers.ollama import OllamaServer
from goodbot.inference.servers.ollama_api import OllamaApi, digest_of
from goodbot.inference.servers.ollama_tags import OllamaSettings
from goodbot.inference.servers.upstream import Upstream
from goodbot.learning.adapters.formats import Formats
from goodbot.testing import ServingContract

from tests.core.builders import SPEC, server_parts
from tests.core.inference.servers import tiny

BASE = "goodbot-test:base"
MADE = "goodbot-test-made"

pytestmark = [pytest.mark.serving, pytest.mark.slow]


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Adapters, and what they were converted to, for all tests."""
    return tmp_path_factory.mktemp("ollama")


@pytest.fixture(scope="module")
def adapters_made(root: Path) -> tuple[Path, Path]:
    return tiny.two(root)


class TestRealOllama(ServingContract):
    @pytest.fixture
    async def server(self, root: Path, tmp_path: Path) -> AsyncIterator[Server]:
        url = os.environ.get("GOODBOT_TEST_OLLAMA_URL", "").rstrip("/") or pytest.skip(
            "GOODBOT_TEST_OLLAMA_URL names no Ollama"
        )
        formats = Formats(root, tiny.model(), child_environment())
        upstream = Upstream("Ollama", url, Secret(""))
        await upstream.open()
        api = OllamaApi(upstream)
        try:
            if BASE not in await api.tags():
                file = root / "base.gguf"
                await formats.export(None, "gguf-base", file)
                await api.upload(digest_of(file), file)
                await api.create(BASE, {"files": {"model.gguf": digest_of(file)}})
            parts = server_parts(
                SPEC,
                tiny.model(),
                url=url,
                served_model=BASE,
                home=tmp_path / "home",
                convert=formats.convert,
            )
            server = OllamaServer(OllamaSettings(name=MADE), parts)
            await server.start()
            yield server
            await server.stop()
        finally:
            for name in await api.tags():
                if name.startswith(f"{MADE}:"):
                    await api.delete(name)
            await upstream.close()

    @pytest.fixture
    def adapters(self, adapters_made: tuple[Path, Path]) -> tuple[Path, Path]:
        return adapters_made


async def test_nothing_of_ours_is_left() -> None:
    """The last of this file: the base goes, too."""
    url = os.environ.get("GOODBOT_TEST_OLLAMA_URL", "").rstrip("/") or pytest.skip(
        "GOODBOT_TEST_OLLAMA_URL names no Ollama"
    )
    async with aiohttp.ClientSession() as http:
        async with http.delete(f"{url}/api/delete", json={"model": BASE}) as response:
            assert response.status in (200, 404)
        async with http.get(f"{url}/api/tags") as response:
            names = [model["name"] for model in (await response.json())["models"]]
    assert not [name for name in names if name.startswith("goodbot-test")]
