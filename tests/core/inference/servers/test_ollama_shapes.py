# SPDX-License-Identifier: Apache-2.0
"""Ollama's answers have the shapes that its documentation gives: the loopback one's, and a real one's.

A real one is asked when GOODBOT_TEST_OLLAMA_URL says where it is (`make test-serving`); it must have a small
chat model, the only one or that of GOODBOT_TEST_OLLAMA_MODEL. Nothing of its own is changed.
"""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import jsonschema
import pytest
from goodbot_fakes.ollama import FakeOllama, gguf
from goodbot_fakes.ollama.server import MODEL

SCHEMA: dict[str, Any] = json.loads((Path(__file__).parent / "ollama_schema.json").read_text())
HELLO = [{"role": "user", "content": "Say hello."}]
SHORT = {"num_predict": 5, "temperature": 0, "seed": 1}
NOBODY = "goodbot-has-no-such-model:v1"


class Asking:
    """Asks and checks."""

    def __init__(self, http: aiohttp.ClientSession, url: str, model: str) -> None:
        self.http, self.url, self.model = http, url, model

    async def ask(self, method: str, path: str, shape: str, body: Any = None, status: int = 200) -> list[Any]:
        """The objects of an answer, each of that shape."""
        async with self.http.request(method, self.url + path, json=body) as response:
            text = await response.text()
        assert response.status == status, text
        objects = [json.loads(line) for line in text.splitlines() if line.strip()]
        for found in objects:
            jsonschema.validate(found, {**SCHEMA, "$ref": f"#/{shape}"})
        return objects

    async def chat(self, **fields: Any) -> list[Any]:
        body = {"model": self.model, "messages": HELLO, "options": SHORT, "think": False, **fields}
        return await self.ask("POST", "/api/chat", "chat", body)


@pytest.fixture(params=["fake", pytest.param("real", marks=pytest.mark.serving)])
async def ollama(request: pytest.FixtureRequest) -> AsyncIterator[Asking]:
    async with aiohttp.ClientSession() as http, FakeOllama() as fake:
        url, model = fake.url, MODEL
        if request.param == "real":
            url = os.environ.get("GOODBOT_TEST_OLLAMA_URL", "").rstrip("/") or pytest.skip(
                "GOODBOT_TEST_OLLAMA_URL names no Ollama"
            )
            model = os.environ.get("GOODBOT_TEST_OLLAMA_MODEL", "")
            if not model:
                [listed] = await Asking(http, url, "").ask("GET", "/api/tags", "tags")
                model = listed["models"][0]["name"]
        yield Asking(http, url, model)


async def test_what_it_tells_of_itself(ollama: Asking) -> None:
    await ollama.ask("GET", "/api/version", "version")
    [tags] = await ollama.ask("GET", "/api/tags", "tags")
    assert ollama.model in [model["name"] for model in tags["models"]]
    [shown] = await ollama.ask("POST", "/api/show", "show", {"model": ollama.model})
    assert any(line.startswith("FROM ") for line in shown["modelfile"].splitlines())
    await ollama.ask("POST", "/api/show", "error", {"model": NOBODY}, 404)


async def test_an_answer_in_pieces_and_whole(ollama: Asking) -> None:
    *pieces, end = await ollama.chat()
    assert not any(piece["done"] for piece in pieces)
    assert end["done"]
    [whole] = await ollama.chat(stream=False)
    assert whole["message"]["content"] == "".join(p["message"]["content"] for p in [*pieces, end])
    await ollama.ask("POST", "/api/chat", "error", {"model": NOBODY, "messages": HELLO}, 404)


async def test_log_probs_are_those_at_temperature_1_whatever_is_drawn_with(ollama: Asking) -> None:
    tops = []
    for temperature in (0.0, 0.2, 1.5):
        options = {**SHORT, "num_predict": 1, "temperature": temperature}
        [whole] = await ollama.chat(stream=False, logprobs=True, top_logprobs=5, options=options)
        top = whole["logprobs"][0]["top_logprobs"]
        assert len(top) == 5
        tops.append({entry["token"]: entry["logprob"] for entry in top})
    assert tops[0] == pytest.approx(tops[1], abs=1e-2)
    assert tops[0] == pytest.approx(tops[2], abs=1e-2)
    too_many = {"model": ollama.model, "messages": HELLO, "logprobs": True, "top_logprobs": 21}
    await ollama.ask("POST", "/api/chat", "error", too_many, 400)


async def test_into_memory_and_out_of_it(ollama: Asking) -> None:
    empty = {"model": ollama.model, "messages": []}
    [loaded] = await ollama.ask("POST", "/api/chat", "chat", empty)
    assert loaded["done_reason"] == "load"
    [ps] = await ollama.ask("GET", "/api/ps", "ps")
    assert ollama.model in [model["name"] for model in ps["models"]]
    [gone] = await ollama.ask("POST", "/api/chat", "chat", {**empty, "keep_alive": 0})
    assert gone["done_reason"] == "unload"


async def test_what_cannot_be_made_is_an_error(ollama: Asking) -> None:
    blob = f"sha256:{'0' * 64}"
    async with ollama.http.head(f"{ollama.url}/api/blobs/{blob}") as response:
        assert response.status == 404
    async with ollama.http.post(f"{ollama.url}/api/blobs/{blob}", data=b"other") as response:
        assert response.status == 400
    body = {"model": NOBODY, "files": {"model.gguf": blob}, "stream": False}
    async with ollama.http.post(f"{ollama.url}/api/create", json=body) as response:
        assert response.status >= 400
        assert "error" in await response.json()
    gone = {"source": NOBODY, "destination": f"{NOBODY}-2"}
    await ollama.ask("POST", "/api/copy", "error", gone, 404)
    await ollama.ask("DELETE", "/api/delete", "error", {"model": NOBODY}, 404)


@pytest.mark.parametrize(("version", "refused"), [("0.34.0", False), ("0.34.1", True)])
async def test_making_a_model_with_an_adapter(version: str, refused: bool) -> None:
    """Of the loopback one alone: a real one would need an adapter of its model."""
    async with aiohttp.ClientSession() as http, FakeOllama(version=version) as fake:
        asking = Asking(http, fake.url, MODEL)
        blob = fake.store.put(gguf.written(general_type="adapter", general_architecture="llama"))
        body = {"model": "made:v1", "from": MODEL, "adapters": {"adapter.gguf": blob}}
        if refused:
            [error] = await asking.ask("POST", "/api/create", "error", body, 400)
            assert error["error"] == "LoRA adapters are no longer supported"
            return
        steps = await asking.ask("POST", "/api/create", "status", body)
        assert steps[-1] == {"status": "success"}
        [shown] = await asking.ask("POST", "/api/show", "show", {"model": "made:v1"})
        assert f"ADAPTER /root/.ollama/models/blobs/{blob.replace(':', '-')}" in shown["modelfile"]
