# SPDX-License-Identifier: Apache-2.0
"""What the fake upstream sends, and what we write ourselves, is what the published schemas say."""

from __future__ import annotations

from pathlib import Path

import aiohttp
import pytest
from pydantic import ValidationError

from tests.connectors.api.proxy import requests, schemas
from tests.connectors.api.proxy.ground import Scripted, proxied
from tests.connectors.api.proxy.upstream import Upstream

CALLING = ("Let me see. <tool", '_call>{"name": "add", "argu', 'ments": {"a": 1, "b": 2}}</tool_call>\n')
BOTH = [*requests.BODIES.items(), *requests.TOOLS.items()]


@pytest.mark.parametrize(("path", "body"), BOTH, ids=lambda one: one if isinstance(one, str) else "")
async def test_the_fake_upstream_is_none_of_our_own_invention(
    fake: Upstream, web: aiohttp.ClientSession, path: str, body: dict[str, object]
) -> None:
    async with web.post(fake.url + path, json=body) as response:
        schemas.whole(path, await response.read())
    async with web.post(fake.url + path, json={**body, "stream": True}) as response:
        assert len(schemas.events(path, await response.read())) > 4


@pytest.mark.parametrize(("path", "body"), BOTH, ids=lambda one: one if isinstance(one, str) else "")
async def test_what_our_own_model_answers_is_of_the_api(
    tmp_path: Path, web: aiohttp.ClientSession, path: str, body: dict[str, object]
) -> None:
    model = Scripted(says=CALLING if "tools" in body else ("Good ", "dogs."))
    async with proxied(tmp_path, model=model) as ground:
        async with web.post(ground.url + path, json=body, headers=ground.bearer) as response:
            assert response.status == 200
            schemas.whole(path, await response.read())
        streamed = {**body, "stream": True}
        async with web.post(ground.url + path, json=streamed, headers=ground.bearer) as response:
            assert response.content_type == "text/event-stream"
            assert len(schemas.events(path, await response.read())) > 2


def test_the_schemas_can_refuse() -> None:
    with pytest.raises(ValidationError):
        schemas.whole("/v1/chat/completions", b'{"id": "x", "choices": [{}]}')
    with pytest.raises(ValidationError):
        schemas.events("/v1/messages", b'data: {"type": "content_block_delta"}\n\n')
