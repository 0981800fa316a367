# SPDX-License-Identifier: Apache-2.0
"""A fake upstream, the proxy before it, and the official clients."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest

from tests.connectors.api.proxy.ground import Ground, proxied
from tests.connectors.api.proxy.upstream import Upstream, upstream


@pytest.fixture
async def fake() -> AsyncIterator[Upstream]:
    async with upstream() as fake:
        yield fake


@pytest.fixture
async def ground(tmp_path: Path, fake: Upstream) -> AsyncIterator[Ground]:
    """The proxy before the fake, which speaks both APIs."""
    environ = {"UPSTREAM_API_KEY": "sk-upstream"}
    async with proxied(tmp_path, upstream=fake.url, upstream_dialect="both", environ=environ) as ground:
        yield ground


@pytest.fixture
async def web() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession(auto_decompress=False) as session:
        yield session
