# SPDX-License-Identifier: Apache-2.0
"""Uploading blobs and making models of them, with the rules that changed over the versions."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING, Any

from aiohttp import web

from goodbot_fakes.ollama import gguf
from goodbot_fakes.ollama.api import refused, streamed
from goodbot_fakes.ollama.store import LAYER, ModelManifest, whole

if TYPE_CHECKING:
    from goodbot_fakes.ollama.server import FakeOllama

NO_ADAPTERS_SINCE = (0, 34, 1)
NO_ADAPTERS = "LoRA adapters are no longer supported"


def routes(ollama: FakeOllama) -> list[web.RouteDef]:
    """blobs, create."""

    async def head(request: web.Request) -> web.Response:
        known = request.match_info["digest"] in ollama.store.blobs
        return web.Response(status=200 if known else 404)

    async def upload(request: web.Request) -> web.Response:
        key = request.match_info["digest"]
        if key in ollama.store.blobs:  # it does not read what it has
            return web.Response(status=200)
        blob = await request.read()
        got = f"sha256:{hashlib.sha256(blob).hexdigest()}"
        if got != key:
            return refused(f'digest mismatch, expected "{key}", got "{got}"')
        if ollama.faults.lost_blobs:
            ollama.faults.lost_blobs -= 1
        else:
            ollama.store.blobs[key] = blob
        return web.Response(status=201)

    async def create(request: web.Request) -> web.StreamResponse:
        body = await request.json()
        lines = _create(ollama, body)
        return await streamed(request, lines, whole=body.get("stream") is False)

    return [
        web.route("HEAD", "/api/blobs/{digest}", head),
        web.post("/api/blobs/{digest}", upload),
        web.post("/api/create", create),
    ]


async def _create(ollama: FakeOllama, body: dict[str, Any]) -> AsyncGenerator[dict[str, Any]]:
    store = ollama.store
    adapters: dict[str, str] = body.get("adapters") or {}
    files: dict[str, str] = body.get("files") or {}
    if wrong := _wrong(ollama, body, adapters, files):
        yield {"error": wrong, "status": 400}
        return
    layers: list[tuple[str, str]] = []
    config: dict[str, Any] = {"model_format": "gguf", "model_type": "1B", "file_type": "Q8_0"}
    if body.get("from"):
        base = store.models.get(whole(str(body["from"])))
        if base is None:  # the real one goes and pulls it
            yield {"status": "pulling manifest"}
            yield {"error": "pull model manifest: file does not exist"}
            return
        layers, config = [*base.layers], {**base.config, "parent_model": body["from"]}
    config["parameters"] = {**config.get("parameters", {}), **body.get("parameters", {})}
    yield {"status": "parsing GGUF"}
    try:
        for kind, key in [("adapter", k) for k in adapters.values()] + [("model", k) for k in files.values()]:
            layers.append((LAYER + kind, key))
            config |= _read(store.blobs[key], kind)
    except ValueError as error:
        yield {"error": str(error), "status": 400}
        return
    for _, key in layers:
        yield {"status": f"using existing layer {key}"}
    yield {"status": "writing manifest"}
    if ollama.faults.create_drops_adapter:
        layers = [layer for layer in layers if layer[0] != LAYER + "adapter"]
    if not ollama.faults.create_does_nothing:
        name = whole(str(body.get("model", "")))
        store.models[name] = ModelManifest(layers=tuple(layers), config=config)
    yield {"status": "success"}


def _wrong(ollama: FakeOllama, body: dict[str, Any], adapters: dict[str, str], files: dict[str, str]) -> str:
    """Why nothing is begun."""
    if adapters and ollama.numbers >= NO_ADAPTERS_SINCE:
        return NO_ADAPTERS
    for key in (*adapters.values(), *files.values()):
        if key not in ollama.store.blobs:
            return f"blob not found for model (digest {key})"
    return "" if body.get("from") or files else "neither 'from' or 'files' was specified"


def _read(blob: bytes, kind: str) -> dict[str, Any]:
    """What a blob adds to the config. Raises ValueError where it is of another kind."""
    info = gguf.metadata(blob)
    if (info.get("general.type") == "adapter") != (kind == "adapter"):
        raise ValueError(f"{NO_ADAPTERS}: model.gguf is a LoRA adapter")
    return {"model_family": info.get("general.architecture", "")} if kind == "model" else {}
