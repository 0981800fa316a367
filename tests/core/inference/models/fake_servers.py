# SPDX-License-Identifier: Apache-2.0
"""Model servers on loopback: each answers what the real one does to the questions that we ask."""

from __future__ import annotations

import asyncio
from typing import Any

from aiohttp import web
from aiohttp.typedefs import Handler

from tests.core.inference.models.background import BackgroundServer, answering

OLLAMA_MODEL = {
    "name": "qwen3:4b",
    "model": "qwen3:4b",
    "modified_at": "2026-10-03T23:34:03.409490317-07:00",
    "size": 2620788260,
    "digest": "e55aed6fe643f9368b2f48f8aaa56ec787b75765da69f794c0a0c23bfe7c64b2",
    "details": {
        "parent_model": "",
        "format": "gguf",
        "family": "qwen3",
        "families": ["qwen3"],
        "parameter_size": "4.0B",
        "quantization_level": "Q4_K_M",
    },
}


LARGE = '{"data": [{"id": "x"}]}' + " " * 2_000_000


class FakeServer(BackgroundServer):
    """Answers each path with one JSON value; 404 for all others."""

    def __init__(self, answers: dict[str, Any], *, port: int = 0) -> None:
        super().__init__(port)
        self.answers = answers
        self.wait = 0.0
        """Seconds that it takes to answer anything."""

    def application(self) -> web.Application:
        app = web.Application(middlewares=[self._busy])
        for path, value in self.answers.items():
            if path == "/api/show":
                app.router.add_post(path, answering(value))
            else:
                app.router.add_get(path, answering(value))
        return app

    @web.middleware
    async def _busy(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        await asyncio.sleep(self.wait)
        return await handler(request)


def ollama(
    *models: dict[str, Any], show: dict[str, Any] | None = None, version: str = "0.30.2"
) -> FakeServer:
    listed = list(models) or [OLLAMA_MODEL]
    openai = [{"id": m["name"], "object": "model", "created": 1, "owned_by": "library"} for m in listed]
    return FakeServer(
        {
            "/api/version": {"version": version},
            "/api/tags": {"models": listed},
            "/v1/models": {"object": "list", "data": openai},
            "/api/show": show or {},
        }
    )


def lm_studio() -> FakeServer:
    models = [
        {
            "id": "meta-llama-3.1-8b-instruct",
            "object": "model",
            "type": "llm",
            "publisher": "lmstudio-community",
            "arch": "llama",
            "compatibility_type": "gguf",
            "quantization": "Q4_K_M",
            "state": "not-loaded",
            "max_context_length": 131072,
        },
        {
            "id": "text-embedding-nomic-embed-text-v1.5",
            "object": "model",
            "type": "embeddings",
            "publisher": "nomic-ai",
            "arch": "nomic-bert",
            "compatibility_type": "gguf",
            "quantization": "Q4_0",
            "state": "not-loaded",
            "max_context_length": 2048,
        },
    ]
    openai = [{"id": m["id"], "object": "model", "owned_by": "organization_owner"} for m in models]
    # It answers every path that it does not know with 200 and an error.
    unknown = {"error": "Unexpected endpoint or method. (GET /api/tags)"}
    return FakeServer(
        {
            "/api/v0/models": {"object": "list", "data": models},
            "/v1/models": {"object": "list", "data": openai},
            "/api/tags": unknown,
            "/api/version": unknown,
            "/props": unknown,
        }
    )


def vllm(name: str = "served", root: str = "Qwen/Qwen3-1.7B") -> FakeServer:
    model = {
        "id": name,
        "object": "model",
        "created": 1,
        "owned_by": "vllm",
        "root": root,
        "parent": None,
        "max_model_len": 40960,
        "permission": [],
    }
    return FakeServer({"/v1/models": {"object": "list", "data": [model]}, "/version": {"version": "0.15.1"}})


def llama_cpp(path: str = "/models/Qwen3-0.6B-Q8_0.gguf") -> FakeServer:
    model = {
        "id": path,
        "object": "model",
        "created": 1,
        "owned_by": "llamacpp",
        "meta": {
            "vocab_type": 2,
            "n_vocab": 151936,
            "n_ctx_train": 40960,
            "n_embd": 1024,
            "n_params": 596049920,
            "size": 633495552,
        },
    }
    listed = {"object": "list", "data": [model], "models": [{"name": path, "model": path}]}
    return FakeServer(
        {
            "/v1/models": listed,
            "/api/tags": listed,
            "/props": {
                "default_generation_settings": {"n_ctx": 4096},
                "total_slots": 1,
                "model_path": path,
                "build_info": "b8681-Debian",
                "chat_template": "",
            },
        }
    )


def mlx_lm(model: str = "mlx-community/Qwen3-0.6B-4bit") -> FakeServer:
    data = [{"id": model, "object": "model", "created": 1}]
    return FakeServer({"/v1/models": {"object": "list", "data": data}, "/health": {"status": "ok"}})


class Hostile(BackgroundServer):
    """Something else on the port: `kind` is html, garbage, list, deep, odd, large, endless, hang or names."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.kind = kind

    def application(self) -> web.Application:
        app = web.Application()
        app.router.add_get("/{path:.*}", self._answer)
        return app

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        if self.kind == "hang":
            await asyncio.Event().wait()  # for ever: who asks has to give up
        if self.kind == "endless":
            response = web.StreamResponse()
            await response.prepare(request)
            while True:
                await response.write(b" " * 65536)
        if self.kind == "names":
            long = "x" * 5000
            models: list[Any] = [{"id": "\x1b[2Jevil\n"}, {"id": long}, {"id": 7}, "text", None]
            return web.json_response({"data": models})
        text = {
            "html": "<html>hello</html>",
            "garbage": "\x00\xff{",
            "list": "[1, 2]",
            "deep": "[" * 100_000,
            "large": LARGE,
            "odd": '{"models": {}, "data": {"a": 1}, "version": 5}',
        }[self.kind]
        return web.Response(text=text, content_type="application/json")
