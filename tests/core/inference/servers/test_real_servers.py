# SPDX-License-Identifier: Apache-2.0
"""The contract on a real vLLM and a real SGLang, wherever a machine has one (`make test-serving`)."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from goodbot.api.server import Server
from goodbot.inference.servers.plugin import VllmSettings
from goodbot.inference.servers.sglang import SglangServer
from goodbot.inference.servers.vllm import VllmServer
from goodbot.testing import ServingContract

from tests.core.inference.servers.remote import parts, started

pytestmark = pytest.mark.serving


def setting(name: str) -> str:
    value = os.environ.get(name, "")
    if not value:
        pytest.skip(f"{name} is not set: see docs/serving.md")
    return value


class OnARealServer(ServingContract):
    @pytest.fixture
    def adapters(self) -> tuple[Path, Path]:
        root = Path(setting("GOODBOT_TEST_ADAPTERS"))
        return root / "one", root / "two"


class TestVllm(OnARealServer):
    @pytest.fixture
    async def server(self) -> AsyncIterator[Server]:
        url, key = setting("GOODBOT_TEST_VLLM_URL"), os.environ.get("GOODBOT_SERVER_KEY", "")
        async with started(VllmServer(VllmSettings(), parts(url, key=key))) as server:
            yield server


class TestSglang(OnARealServer):
    @pytest.fixture
    async def server(self) -> AsyncIterator[Server]:
        url, key = setting("GOODBOT_TEST_SGLANG_URL"), os.environ.get("GOODBOT_SERVER_KEY", "")
        async with started(SglangServer(None, parts(url, key=key))) as server:
            yield server
