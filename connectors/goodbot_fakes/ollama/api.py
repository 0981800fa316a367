# SPDX-License-Identifier: Apache-2.0
"""What Ollama tells of itself and its models, and how it answers in general."""

from __future__ import annotations

import json
from collections.abc import AsyncIterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from aiohttp import web

from goodbot_fakes.ollama import gguf
from goodbot_fakes.ollama.store import ModelManifest, whole

if TYPE_CHECKING:
    from goodbot_fakes.ollama.runners import Runner
    from goodbot_fakes.ollama.server import FakeOllama

STARTED = datetime(2026, 11, 1, tzinfo=UTC)


def routes(ollama: FakeOllama) -> list[web.RouteDef]:
    """version, tags, show, ps, copy, delete, and OpenAI's list of models."""

    async def version(_: web.Request) -> web.Response:
        return web.json_response({"version": ollama.called})

    async def tags(_: web.Request) -> web.Response:
        listed = [_listed(name, model) for name, model in ollama.store.models.items()]
        return web.json_response({"models": listed})

    async def show(request: web.Request) -> web.Response:
        name = whole(str((await request.json()).get("model", "")))
        model = ollama.store.models.get(name)
        return unknown(name) if model is None else web.json_response(_shown(ollama, model))

    async def ps(_: web.Request) -> web.Response:
        now = ollama.runners.clock.monotonic()
        runners = ollama.runners.running().values()
        return web.json_response({"models": [_running(runner, now) for runner in runners]})

    async def copy(request: web.Request) -> web.Response:
        body = await request.json()
        model = ollama.store.models.get(whole(str(body.get("source", ""))))
        if model is None:
            return refused(f'model "{body.get("source")}" not found', 404)
        ollama.store.models[whole(str(body["destination"]))] = model
        return web.Response()

    async def delete(request: web.Request) -> web.Response:
        name = whole(str((await request.json()).get("model", "")))
        if ollama.store.models.pop(name, None) is None:
            return unknown(name)
        ollama.store.prune()
        return web.Response()

    async def openai(_: web.Request) -> web.Response:
        told = {"object": "model", "created": 1, "owned_by": "library"}
        listed = [{"id": name, **told} for name in ollama.store.models]
        return web.json_response({"object": "list", "data": listed})

    return [
        web.get("/api/version", version),
        web.get("/api/tags", tags),
        web.post("/api/show", show),
        web.get("/api/ps", ps),
        web.post("/api/copy", copy),
        web.delete("/api/delete", delete),
        web.get("/v1/models", openai),
    ]


def refused(error: str, status: int = 400) -> web.Response:
    """An error, as JSON."""
    return web.json_response({"error": error}, status=status)


def unknown(name: str) -> web.Response:
    """The model is not there."""
    return refused(f"model '{name}' not found", 404)


async def streamed(
    request: web.Request, lines: AsyncIterable[Mapping[str, Any]], *, whole: bool = False
) -> web.StreamResponse:
    """Newline-delimited JSON. `whole`: only the last line, as an object (`"stream": false`).

    An error that comes before anything else is the answer, with its status; a later one is a line.
    """
    response = web.StreamResponse(headers={"Content-Type": "application/x-ndjson"})
    last: Mapping[str, Any] = {}
    async for line in lines:
        last = line
        if "error" in line and (whole or not response.prepared):
            return refused(str(line["error"]), int(line.get("status", 500)))
        if whole:
            continue
        if not response.prepared:
            await response.prepare(request)
        await response.write(json.dumps(dict(line), ensure_ascii=False).encode() + b"\n")
    return web.json_response(dict(last)) if whole else response


def created_at() -> str:
    """When, as Ollama writes it."""
    return STARTED.isoformat()


def _listed(name: str, model: ModelManifest) -> dict[str, Any]:
    return {
        "name": name,
        "model": name,
        "modified_at": created_at(),
        "size": 2620788260,
        "digest": model.digest,
        "details": _details(model),
    }


def _running(runner: Runner, now: float) -> dict[str, Any]:
    told = _listed(runner.name, runner.manifest)
    del told["modified_at"]
    expires = STARTED + timedelta(seconds=max(runner.expires, now))
    return {**told, "size_vram": 0, "context_length": 4096, "expires_at": expires.isoformat()}


def _details(model: ModelManifest) -> dict[str, Any]:
    config = model.config
    return {
        "parent_model": config.get("parent_model", ""),
        "format": config["model_format"],
        "family": config["model_family"],
        "families": [config["model_family"]],
        "parameter_size": config["model_type"],
        "quantization_level": config["file_type"],
    }


def _parameters(model: ModelManifest) -> Mapping[str, Any]:
    return model.config.get("parameters", {})


def _shown(ollama: FakeOllama, model: ModelManifest) -> dict[str, Any]:
    def path(found: str) -> str:
        return f"/root/.ollama/models/blobs/{found.replace(':', '-')}"

    lines = [f"FROM {path(model.of('model')[0])}"]
    lines += [f"ADAPTER {path(found)}" for found in model.of("adapter")]
    blob = ollama.store.blobs[model.of("model")[0]]
    info = gguf.metadata(blob) if blob.startswith(gguf.MAGIC) else {}
    template = "".join(ollama.store.blobs[found].decode() for found in model.of("template"))
    return {
        "modelfile": '# Modelfile generated by "ollama show"\n' + "\n".join(lines),
        "parameters": "\n".join(f"{name:<30} {value}" for name, value in _parameters(model).items()),
        "template": template,
        "details": _details(model),
        "model_info": info,
        "capabilities": ["completion"],
        "modified_at": created_at(),
        **{key: told for key, told in model.config.items() if key.startswith("remote_")},
    }
