# SPDX-License-Identifier: Apache-2.0
"""`/api/chat`: answers, loading and unloading."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncGenerator, Mapping
from typing import TYPE_CHECKING, Any

from aiohttp import web

from goodbot_fakes.ollama import api, gguf
from goodbot_fakes.ollama.store import ModelManifest, whole
from goodbot_fakes.policy import END, Policy, Token, cutting

if TYPE_CHECKING:
    from goodbot_fakes.ollama.server import FakeOllama

MOST_LOGPROBS = 20
RUNS_ADAPTERS_SINCE = (0, 30)
OUT_OF_MEMORY = "llama-server reported out-of-memory during startup: cudaMalloc failed"


def routes(ollama: FakeOllama) -> list[web.RouteDef]:
    """chat."""

    async def chat(request: web.Request) -> web.StreamResponse:
        body = await request.json()
        name = whole(str(body.get("model", "")))
        model = ollama.store.models.get(name)
        if model is None:
            return api.unknown(name)
        if not 0 <= int(body.get("top_logprobs", 0)) <= MOST_LOGPROBS:
            return api.refused("top_logprobs must be between 0 and 20")
        if not body.get("messages") and body.get("keep_alive") == 0:
            ollama.runners.expire(model)
            return web.json_response(_end(name, "unload"))
        if refusal := _not_loadable(ollama, model):
            return api.refused(refusal, 500)
        async with ollama.runners.use(name, model, body.get("keep_alive")):
            if not body.get("messages"):
                return web.json_response(_end(name, "load"))
            if _options(model, body).get("repeat_last_n", 0) < 0:  # its llama-server refuses it
                return api.refused(
                    "Field 'repeat_last_n': Value must be between 0 <= value <= 2147483647", 400
                )
            lines = _answer(ollama, name, model, body)
            if body.get("stream", True):
                return await api.streamed(request, lines)
            return web.json_response(_joined([line async for line in lines]))

    return [web.post("/api/chat", chat)]


def _not_loadable(ollama: FakeOllama, model: ModelManifest) -> str:
    if model.of("adapter") and ollama.numbers < RUNS_ADAPTERS_SINCE:
        return "error loading model: loras are not yet implemented"
    if len({_architecture(ollama, model, kind) for kind in ("model", "adapter")} - {""}) > 1:
        return "llama-server process has terminated: model arch and LoRA arch mismatch"
    there = ollama.runners.running().get(model.of("model")[0])
    fresh = there is None or there.manifest.policy != model.policy
    return OUT_OF_MEMORY if fresh and ollama.faults.out_of_memory else ""


def _architecture(ollama: FakeOllama, model: ModelManifest, kind: str) -> str:
    blobs = [ollama.store.blobs[key] for key in model.of(kind)]
    told = [gguf.metadata(blob) for blob in blobs if blob.startswith(gguf.MAGIC)]
    return "".join(str(info.get("general.architecture", "")) for info in told)


async def _answer(
    ollama: FakeOllama, name: str, model: ModelManifest, body: Mapping[str, Any]
) -> AsyncGenerator[dict[str, Any]]:
    policy = model.policy
    # MLX runs safetensors, and reads no adapter.
    if ollama.faults.adapters_ignored or model.config["model_format"] == "safetensors":
        policy = Policy(policy.model)
    options = _options(model, body)
    tokens = policy.answer(
        body["messages"],
        temperature=float(options.get("temperature", 0.8)),
        seed=int(options.get("seed", 0)),
        most=int(options.get("num_predict", -1)),
        cut=cutting(options),
    )
    reason, count = "length", 0
    for count, token in enumerate(tokens, start=1):
        await asyncio.sleep(ollama.pace)
        if ollama.faults.breaks_off and count > 3:
            yield {"error": "an error was encountered while running the model: unexpected EOF"}
            return
        ended = token.text == END
        if ended:
            reason = "stop"
        line = _line(name, "" if ended else token.text)
        if body.get("logprobs"):
            line["logprobs"] = [_logprob(token, int(body.get("top_logprobs", 0)))]
        if not ended or body.get("logprobs"):
            yield line
    yield {**_end(name, reason), "prompt_eval_count": 12, "eval_count": count}


def _options(model: ModelManifest, body: Mapping[str, Any]) -> Mapping[str, Any]:
    return {**model.config.get("parameters", {}), **(body.get("options") or {})}


def _line(name: str, text: str) -> dict[str, Any]:
    return {
        "model": name,
        "created_at": api.created_at(),
        "message": {"role": "assistant", "content": text},
        "done": False,
    }


def _end(name: str, reason: str) -> dict[str, Any]:
    return {**_line(name, ""), "done": True, "done_reason": reason}


def _logprob(token: Token, top: int) -> dict[str, Any]:
    told: dict[str, Any] = {"token": token.text, "logprob": token.logprob}
    if top:
        likeliest = itertools.islice(token.top.items(), top)
        told["top_logprobs"] = [{"token": t, "logprob": logprob} for t, logprob in likeliest]
    return told


def _joined(lines: list[dict[str, Any]]) -> dict[str, Any]:
    whole_line = dict(lines[-1])
    if "error" in whole_line:
        return whole_line
    content = "".join(line["message"]["content"] for line in lines)
    whole_line["message"] = {"role": "assistant", "content": content}
    if logprobs := [told for line in lines for told in line.get("logprobs", [])]:
        whole_line["logprobs"] = logprobs
    return whole_line
