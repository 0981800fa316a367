# SPDX-License-Identifier: Apache-2.0
"""The embedded server keeps the contract: on a fake child, and on the tiny model with both backends."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from goodbot.api.backend import BackendSpec
from goodbot.api.server import BASE, Server
from goodbot.inference.servers.embedded import EmbeddedServer
from goodbot.testing import ServingContract

from tests.core import fake_worker
from tests.core.builders import SPEC, Fake, server_parts
from tests.core.inference.servers import tiny
from tests.support import require


class TestOnAFakeChild(ServingContract):
    @pytest.fixture
    async def server(self, tmp_path: Path) -> AsyncIterator[Server]:
        server = EmbeddedServer(None, server_parts(SPEC, Fake(tmp_path / "fake").path))
        await server.start()
        yield server
        await server.stop()

    @pytest.fixture
    def adapters(self, tmp_path: Path) -> tuple[Path, Path]:
        one, two = tmp_path / "one", tmp_path / "two"
        for number, directory in enumerate((one, two)):
            directory.mkdir()
            weights = fake_worker.safetensors(number + 0.5)
            (directory / "adapter_model.safetensors").write_bytes(weights)
            (directory / "adapter_config.json").write_text(json.dumps({"peft_type": "LORA"}))
        return one, two


class OnTheTinyModel(ServingContract):
    """One child for a class, since loading a framework takes seconds.

    So one restart is enough; the rest of a server's life is seen on the fake child.
    """

    test_it_is_healthy_until_it_is_stopped_and_once_it_is_started_again = None
    test_while_it_makes_room_questions_wait = None

    @pytest.fixture(scope="class")
    @classmethod
    def backend(cls) -> BackendSpec:
        raise NotImplementedError

    @pytest_asyncio.fixture(scope="class", loop_scope="class")
    @classmethod
    async def running(
        cls, backend: BackendSpec, adapters: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory
    ) -> AsyncIterator[Server]:
        home = tmp_path_factory.mktemp("serving")
        parts = server_parts(backend, tiny.model(), home=home, adapters=adapters[0].parent)
        server = EmbeddedServer(None, parts)
        await server.start()
        yield server
        await server.stop()

    @pytest_asyncio.fixture(loop_scope="class")
    async def server(self, running: Server) -> AsyncIterator[Server]:
        yield running
        if not running.healthy():
            await running.start()
        await running.activate(BASE)
        for version in (1, 2):
            await running.unload(version)

    @pytest.fixture(scope="class")
    @classmethod
    def adapters(cls, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
        return tiny.two(tmp_path_factory.mktemp("adapters"))


@pytest.mark.asyncio(loop_scope="class")
class TestOnTorch(OnTheTinyModel):
    """Importing torch takes seconds: what restarts the child is seen on the other backend."""

    test_after_a_restart_it_says_truly_what_it_serves = None

    @pytest.fixture(scope="class")
    @classmethod
    def backend(cls) -> BackendSpec:
        for module in ("torch", "transformers", "peft"):
            require(module)
        from goodbot_training.backends import torch

        return torch.register_backend()


@pytest.mark.asyncio(loop_scope="class")
class TestOnMlx(OnTheTinyModel):
    @pytest.fixture(scope="class")
    @classmethod
    def backend(cls) -> BackendSpec:
        require("mlx.core")
        from goodbot_training.backends import mlx

        return mlx.register_backend()
