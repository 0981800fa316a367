# SPDX-License-Identifier: Apache-2.0
"""The proxy in a whole goodbot with the real tiny model: asked, called a tool, kept on-policy, rated."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import openai
from goodbot.config import parse
from goodbot.daemon.app import App, open_plugins
from goodbot.store import turns
from goodbot_connectors.kit.bridge import clients
from goodbot_training.tiny.chatml import tool_call
from goodbot_training.tiny.corpus import CALCULATOR

from tests.examples.support import require_backend
from tests.support import patience

CONFIG = """
[http]
port = {port}
[serving]
temperature = 0.05
[connectors.api]
owners = ["me"]
"""


async def test_the_tiny_model_is_a_model_like_any_other(tmp_path: Path, unused_tcp_port: int) -> None:
    require_backend()
    port = unused_tcp_port
    text = CONFIG.format(port=port)
    assert tomllib.loads(text)
    token = clients.create(tmp_path, "api", "me")
    config = parse(text, home=tmp_path)
    base = f"http://127.0.0.1:{port}/v1"
    async with (
        App.open(config, open_plugins(config), demo_model=True, grants={}) as app,
        openai.AsyncOpenAI(api_key=token, base_url=base, max_retries=0, timeout=patience(60.0)) as client,
    ):
        messages = [{"role": "user", "content": "What is 12+7?"}]
        raw = await client.chat.completions.with_raw_response.create(
            model="goodbot", messages=messages, tools=[CALCULATOR], max_tokens=60
        )
        answer = raw.parse().choices[0]
        assert answer.finish_reason == "tool_calls"
        [call] = answer.message.tool_calls or []
        assert call.function.name == "calculator"
        assert list(json.loads(call.function.arguments)) == ["expression"]
        turn = await app.store.read(lambda db: turns.get(db, raw.headers["x-goodbot-turn"]))
        assert turn is not None
        assert (turn.version, turn.origin, turn.answered_by) == (0, "captured", "")
        assert len(turn.tokens) == len(turn.logprobs) > 5
        assert turn.response == tool_call("calculator", json.loads(call.function.arguments))
        result = {"role": "tool", "tool_call_id": call.id, "content": "19"}
        more = [*messages, answer.message.model_dump(exclude_none=True), result]
        stream = await client.chat.completions.create(
            model="goodbot-v0", messages=more, tools=[CALCULATOR], stream=True, max_tokens=60
        )
        said = "".join([chunk.choices[0].delta.content or "" async for chunk in stream])
        assert "19" in said
        rated = await client.post("/feedback", cast_to=object, body={"turn": turn.id, "score": 1.0})
        assert rated
