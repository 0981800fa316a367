# SPDX-License-Identifier: Apache-2.0
"""`goodbot doctor serving` against servers that answer as the real ones do."""

from __future__ import annotations

import contextlib
import json
from collections.abc import AsyncGenerator, Mapping
from pathlib import Path
from typing import Any

import numpy
import pytest
from aiohttp import web
from goodbot.api.setup import CheckState
from goodbot.cli.doctor import model_server, serving
from goodbot.inference.models import servers
from goodbot.inference.servers.plugin import VllmSettings
from goodbot.inference.servers.vllm import VllmServer
from goodbot.testing import server_parts
from safetensors.numpy import save_file

from tests.core.cli.doctor.examining import examined
from tests.training.test_presets import DENSE, MIXTURE

Answers = Mapping[str, tuple[int, Any]]
"""`METHOD /path` → status and JSON."""


def models(owner: str | None, name: str = "Qwen/Qwen3-4B") -> tuple[int, Any]:
    entry = {"id": name, "object": "model"} | ({"owned_by": owner} if owner else {})
    return 200, {"object": "list", "data": [entry]}


@contextlib.asynccontextmanager
async def server(answers: Answers, asked: list[tuple[str, bytes]]) -> AsyncGenerator[int]:
    async def answer(request: web.Request) -> web.Response:
        asked.append((f"{request.method} {request.path}", await request.read()))
        code, body = answers.get(f"{request.method} {request.path}", (404, {"detail": "Not Found"}))
        return web.json_response(body, status=code)

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", answer)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        yield site._server.sockets[0].getsockname()[1]
    finally:
        await runner.cleanup()


def url(port: int) -> str:
    return f"http://127.0.0.1:{port}"


VLLM = {"GET /v1/models": models("vllm"), "GET /version": (200, {"version": "0.33.0"})}
NAMED = (200, {"data": [{"id": "bot", "owned_by": "vllm", "root": "Qwen/Qwen3-4B"}]})
LOAD = "POST /v1/load_lora_adapter"
ON = {"model_path": "Qwen/Qwen3-4B", "enable_lora": True}
SGLANG = {"GET /v1/models": models("sglang")}
OLLAMA = {"GET /api/tags": (200, {"models": [{"name": "qwen3:4b"}]})}
SEVERAL = {"GET /api/tags": (200, {"models": [{"name": "qwen3:4b"}, {"name": "llama3.2:3b"}]})}
LOADED = {"data": [{"id": "qwen3-4b", "type": "llm", "state": "loaded"}]}
LLAMA = {
    "GET /v1/models": models("llamacpp", "gpt-3.5-turbo"),
    "GET /props": (200, {"model_path": "models/qwen3-4b-q8.gguf"}),
    "GET /lora-adapters": (200, [{"id": 0, "path": "v1.gguf", "scale": 1.0}]),
}


@pytest.mark.parametrize(
    ("answers", "state", "text", "fix"),
    [
        ({}, CheckState.OK, "no model server", ""),
        (
            VLLM,
            CheckState.WARN,
            "vLLM 0.33.0 takes no adapters while it runs",
            "VLLM_ALLOW_RUNTIME_LORA_UPDATING=True vllm serve Qwen/Qwen3-4B --enable-lora "
            "--max-lora-rank 16 --max-loras 2 --logprobs-mode processed_logprobs --port PORT",
        ),
        (
            {**VLLM, "GET /v1/models": NAMED},
            CheckState.WARN,
            "takes no adapters while it runs",
            "VLLM_ALLOW_RUNTIME_LORA_UPDATING=True vllm serve Qwen/Qwen3-4B --enable-lora "
            "--max-lora-rank 16 --max-loras 2 --logprobs-mode processed_logprobs --served-model-name bot "
            "--port PORT",
        ),
        (
            {**VLLM, LOAD: (422, {})},
            CheckState.OK,
            'takes adapters while it runs: [serving] server = "vllm", url = "http://127.0.0.1:PORT"',
            "",
        ),
        ({**VLLM, LOAD: (400, {})}, CheckState.OK, "takes adapters while it runs", ""),
        ({**VLLM, LOAD: (401, {})}, CheckState.WARN, "asks for a key", ""),
        ({"GET /v1/models": (401, {})}, CheckState.WARN, "asks for a key", ""),
        (
            {"GET /v1/models": models("vllm", "a b; rm")},
            CheckState.WARN,
            "vLLM takes no",
            "VLLM_ALLOW_RUNTIME_LORA_UPDATING=True vllm serve MODEL --enable-lora "
            "--max-lora-rank 16 --max-loras 2 --logprobs-mode processed_logprobs --port PORT",
        ),
        (
            {**SGLANG, "GET /server_info": (200, {**ON, "version": "0.5.23"})},
            CheckState.OK,
            'SGLang 0.5.23 takes adapters while it runs: [serving] server = "sglang"',
            "",
        ),
        (
            {**SGLANG, "GET /get_server_info": (200, {**ON, "max_lora_rank": 8})},
            CheckState.WARN,
            "only up to rank 8",
            "python -m sglang.launch_server --model-path Qwen/Qwen3-4B --enable-lora "
            "--max-lora-rank 16 --lora-target-modules all --max-loras-per-batch 2 "
            "--max-loaded-loras 3 --port PORT",
        ),
        (
            LLAMA,
            CheckState.OK,
            "only when it starts (1 from its start); goodbot can start one of its own "
            'for each version: [serving] server = "llamacpp"',
            "",
        ),
        (
            {**OLLAMA, "GET /api/version": (200, {"version": "0.29.1"})},
            CheckState.WARN,
            "does not run them",
            "update Ollama to 0.30 or newer",
        ),
        (
            {**OLLAMA, "GET /api/version": (200, {"version": "0.31.0-rc1"})},
            CheckState.OK,
            'as a model of its own: [serving] server = "ollama", url = "http://127.0.0.1:PORT"',
            "",
        ),
        (
            {**SEVERAL, "GET /api/version": (200, {"version": "0.34.1"})},
            CheckState.OK,
            "as a whole model "
            'of its own, with its adapter in it: [serving] server = "ollama", url = "http://127.0.0.1:PORT", '
            'model = "NAME"',
            "",
        ),
        (
            {"GET /v1/models": models("organization_owner"), "GET /api/v0/models": (200, LOADED)},
            CheckState.WARN,
            "LM Studio takes no adapters at all",
            "goodbot adapters export VERSION --format gguf-model --out MODEL.gguf",
        ),
        (
            {"GET /v1/models": models(None)},
            CheckState.WARN,
            '[serving] server = "mlx"',
            "pip install --upgrade 'mlx-lm>=0.32.2'",
        ),
        (
            {"GET /v1/models": models("somebody")},
            CheckState.WARN,
            'a model of its own, which learns nothing: [serving] server = "openai"',
            "",
        ),
        ({"GET /v1/models": (200, {"data": "nonsense"})}, CheckState.OK, "no model server", ""),
        ({"GET /v1/models": (200, [1, 2])}, CheckState.OK, "no model server", ""),
    ],
)
async def test_each_server(answers: Answers, state: CheckState, text: str, fix: str, tmp_path: Path) -> None:
    asked: list[tuple[str, bytes]] = []
    seen = examined(tmp_path, "[training.settings]\nrank = 12\n")
    async with server(answers, asked) as port:
        [check] = await serving.serving(seen, [url(port), url(9)])
    assert (check.state, text.replace("PORT", str(port)) in check.text) == (state, True), check
    assert check.fix == fix.replace("PORT", str(port))
    changing = [(what, body) for what, body in asked if not what.startswith("GET ")]
    assert changing in ([], [(LOAD, b"{}")]), "nothing that could change the server"


@pytest.mark.parametrize(("shape", "rank"), [(DENSE, 8), (MIXTURE, 16)])
async def test_the_rank_is_that_of_the_models_shape(shape: object, rank: int, tmp_path: Path) -> None:
    model = tmp_path / "model"
    model.mkdir()
    (model / "config.json").write_text(json.dumps(shape))
    save_file({"embed": numpy.zeros(4, numpy.float32)}, model / "model.safetensors")
    answers = {**SGLANG, "GET /server_info": (200, {**ON, "max_lora_rank": 8})}
    seen = examined(tmp_path, f'[model]\npath = "{model}"\n')
    async with server(answers, []) as port:
        [check] = await serving.serving(seen, [url(port)])
    assert check.state is (CheckState.OK if rank == 8 else CheckState.WARN), check
    assert (f"--max-lora-rank {rank} " in check.fix) == (rank > 8), check


async def test_only_a_vllm_gets_the_empty_request(tmp_path: Path) -> None:
    asked: list[tuple[str, bytes]] = []
    for answers in (SGLANG, LLAMA, {}):
        async with server(answers, asked) as port:
            await serving.serving(examined(tmp_path), [url(port)])
    assert [what for what, _ in asked if what.startswith("POST")] == []


async def test_a_server_that_says_too_much(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(servers, "_LARGEST", 1000)
    asked: list[tuple[str, bytes]] = []
    answers = {**VLLM, "GET /version": (200, {"version": "x" * 10_000})}
    async with server(answers, asked) as port:
        [check] = await serving.serving(examined(tmp_path), [url(port)])
    assert check.text == "vLLM takes no adapters while it runs"


async def test_nothing_listens_anywhere(tmp_path: Path) -> None:
    [check] = await serving.serving(examined(tmp_path), [url(9)])
    assert check.state is CheckState.OK


async def test_the_configured_server_is_looked_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GOODBOT_SERVER_PORTS", "9")
    async with server({**VLLM, LOAD: (400, {})}, []) as port:
        toml = f'[serving]\nserver = "vllm"\nurl = "{url(port)}/v1"\n'
        [check] = await serving.serving(examined(tmp_path, toml))
    assert (check.state, check.part) == (CheckState.OK, f"port {port}")


async def test_a_configured_server_that_does_not_answer_is_no_good_news(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GOODBOT_SERVER_PORTS", "9")
    monkeypatch.setattr(model_server, "_driver", lambda _: (deaf(tmp_path), True))
    toml = f'[serving]\nserver = "vllm"\nurl = "{url(9)}"\n'
    [check] = await serving.serving(examined(tmp_path, toml))
    assert check.state is CheckState.FAIL
    assert "goodbot serves the model itself" not in check.text


def deaf(home: Path) -> VllmServer:
    """A driver at a port where nobody listens."""
    return VllmServer(VllmSettings(), server_parts(home, url=url(9)))
