# SPDX-License-Identifier: Apache-2.0
"""The official Node clients against the proxy: before a fake upstream, and with our own model."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.agents import programs
from tests.connectors.api.proxy.ground import Ground, Scripted, proxied
from tests.connectors.api.proxy.upstream import TEXT, upstream
from tests.support import patience

pytestmark = pytest.mark.agents

SCRIPT = Path(__file__).with_name("proxy_clients.mjs")
CALLS = ('<tool_call>{"name": "add", "arguments": {"a": 1, "b": 2}}</tool_call>',)


class Calling(Scripted):
    """Calls a tool where it is given one."""

    def answer(self, question: Any) -> Any:
        tools = "tools" in question.messages[0]
        self.says = CALLS if tools else Scripted.says
        return super().answer(question)


@contextlib.asynccontextmanager
async def ground_of(way: str, home: Path) -> AsyncIterator[Ground]:
    if way == "own":
        async with proxied(home, model=Calling()) as ground:
            yield ground
    else:
        async with upstream() as fake, proxied(home, upstream=fake.url, upstream_dialect="both") as ground:
            yield ground


@pytest.mark.parametrize("way", ["upstream", "own"])
@pytest.mark.parametrize(("sdk", "package"), [("openai", "openai"), ("anthropic", "@anthropic-ai/sdk")])
async def test_the_node_clients(tmp_path: Path, way: str, sdk: str, package: str) -> None:
    folder = programs.package(package)
    async with ground_of(way, tmp_path) as ground:
        process = await asyncio.create_subprocess_exec(
            str(programs.node()),
            str(SCRIPT),
            str(folder),
            ground.url,
            ground.token,
            sdk,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env={"PATH": programs.path(), "HOME": str(tmp_path)},
        )
        out, err = await asyncio.wait_for(process.communicate(), patience(100))
        assert process.returncode == 0, err.decode()
        seen = json.loads(out)
        assert seen["whole"] == seen["streamed"] == TEXT
        assert seen["call"]["name"] == "add"
        assert json.loads(seen["call"]["arguments"]) == {"a": 1, "b": 2}
        assert seen["error"] == [401, "AuthenticationError"]
        kept = await ground.captured(5 if sdk == "openai" else 3)
        assert kept[0].message_id == seen["turn"]
        assert kept[0].version == (3 if way == "own" else None)
        if sdk == "openai":
            assert seen["responses"] == TEXT
            assert seen["response_deltas"] > 2
            assert seen["models"] >= 1
        else:
            assert seen["tokens"] > 3
