# SPDX-License-Identifier: Apache-2.0
"""A loopback server that speaks Tinker's protocol, after SkyRL's (skyrl/tinker/api.py) and Tinker's own SDK.

Whoever uses it brings the arithmetic, an `Engine`: this is sessions, models, futures, checkpoints and
archives, and what goes wrong with them.
"""

from __future__ import annotations

import io
import json
import math
import tarfile
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any, Protocol

from aiohttp import web

_INPUTS = {
    "cross_entropy": {"target_tokens", "weights"},
    "importance_sampling": {"target_tokens", "logprobs", "advantages"},
}
_OF_MODELS = (
    *("forward", "forward_backward", "optim_step", "save_weights"),
    *("save_weights_for_sampler", "load_weights", "unload_model"),
)


class Engine(Protocol):
    """What computes. A model is whatever `create` makes."""

    def create(self, rank: int, seed: int) -> Any:
        """A fresh adapter on the base."""
        ...

    def logprobs(self, model: Any, data: list[dict[str, Any]]) -> list[list[float]]:
        """Of the target tokens of each datum."""
        ...

    def backward(self, model: Any, data: list[dict[str, Any]], loss: str) -> list[list[float]]:
        """Add a gradient up; the log-probs that it was taken at."""
        ...

    def step(self, model: Any, adam: Mapping[str, float]) -> float:
        """Go one step; the norm of the gradient."""
        ...

    def state(self, model: Any) -> Any:
        """What `restore` needs."""
        ...

    def restore(self, model: Any, state: Any, *, optimizer: bool) -> None:
        """Weights as they were, and the moments too."""
        ...

    def export(self, model: Any, directory: Path, wrong: str) -> None:
        """The adapter's two files, in PEFT's layout; with what is `wrong` with them, if anything is."""
        ...


@dataclass(kw_only=True, slots=True)
class TinkerFaults:
    """What goes wrong. All off."""

    pending: int = 0
    """How often each result is not there yet."""
    never: str = ""
    """The kind of request that never comes to a result."""
    busy: int = 0
    """How many requests are told to come again."""
    retry_after: str = "0"
    """When."""
    fails: dict[str, int] = field(default_factory=dict[str, int])
    """Kind of request → how many of them are a 500."""
    hangs_up: str = ""
    """The kind of request that is taken, and never answered, once."""
    dies_after: int | None = None
    """After so many steps all models are gone, once; checkpoints are not."""
    nan: bool = False
    """Log-probs are no numbers."""
    adapter: str = ""
    """What is wrong with the adapter: `missing`, `cut`, or what the engine knows."""
    elsewhere: str = ""
    """Where archives are said to be."""
    slots: int = 100
    """How many models there may be at once."""


class FakeTinker:
    """Use `async with FakeTinker(engine) as server`; `server.url` is where it listens."""

    def __init__(self, engine: Engine, *, key: str = "", base: str = "base-model") -> None:
        self.engine, self.key, self.base = engine, key, base
        self.faults = TinkerFaults()
        self.asked: list[tuple[str, dict[str, Any]]] = []
        """Path's end and body of each request but those for results."""
        self.keys: list[str] = []
        self.models: dict[str, Any] = {}
        self.saved: dict[str, Any] = {}
        """Path → state of the model then."""
        self.steps = 0
        self._archives: dict[str, bytes] = {}
        self._results: dict[str, tuple[str, dict[str, Any] | web.Response]] = {}
        self._looks: dict[str, int] = {}
        self._numbers = count(1)
        self._sequence: dict[str, set[int]] = {}
        self._runner: web.AppRunner | None = None
        self.url = ""

    async def __aenter__(self) -> FakeTinker:
        application = web.Application(client_max_size=64 << 20)
        application.router.add_post("/api/v1/{what}", self._post)
        for rest in ("{name}", "sampler_weights/{name}"):
            application.router.add_get(
                f"/api/v1/training_runs/{{run}}/checkpoints/{rest}/archive", self._archive
            )
        application.router.add_get("/files/{run}/{name}", self._file)
        self._runner = web.AppRunner(application, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}"
        return self

    async def __aexit__(self, *error: object) -> None:
        if self._runner is not None:
            await self._runner.cleanup()

    async def _post(self, request: web.Request) -> web.StreamResponse:
        what, faults = request.match_info["what"], self.faults
        self.keys.append(request.headers.get("X-API-Key", ""))
        if self.key and self.keys[-1] != self.key:
            return _refused(401, "Invalid API key")
        body: dict[str, Any] = await request.json()
        if what == "retrieve_future":
            return self._result(str(body["request_id"]))
        if faults.busy:
            faults.busy -= 1
            return _refused(429, "Too many requests", {"Retry-After": faults.retry_after})
        self.asked.append((what, body))
        if faults.fails.get(what, 0):
            faults.fails[what] -= 1
            return _refused(500, "CUDA error")
        answer = self._made(what, body)
        if faults.hangs_up == what:
            faults.hangs_up = ""
            if request.transport is not None:
                request.transport.close()
        return answer

    def _made(self, what: str, body: dict[str, Any]) -> web.Response:
        if what == "create_session":
            return web.json_response({"session_id": f"session_{next(self._numbers)}", "type": what})
        if what == "session_heartbeat":
            return web.json_response({"type": what})
        if what == "create_model":
            return self._create(body)
        if what not in _OF_MODELS:
            return _refused(404, "Not Found")
        model = body.get("model_id")
        if model not in self.models:
            return _refused(404, "Model not found")
        if what != "unload_model":
            known = self._sequence.setdefault(str(model), set())
            if body.get("seq_id") in known:
                return _refused(409, "Training request sequence number was reused")
            known.add(int(body["seq_id"]))
        return self._future(what, self._computed(what, str(model), body))

    def _create(self, body: dict[str, Any]) -> web.Response:
        if body.get("base_model") != self.base:
            return _refused(400, "Unknown base model")
        if len(self.models) >= self.faults.slots:
            return self._future("create_model", _refused(400, "Maximum number of LoRA adapters reached"))
        lora, name = body["lora_config"], f"model_{next(self._numbers)}"
        self.models[name] = self.engine.create(int(lora["rank"]), int(lora.get("seed") or 0))
        return self._future("create_model", {"model_id": name, "type": "create_model"})

    def _computed(self, what: str, model: str, body: dict[str, Any]) -> dict[str, Any] | web.Response:
        of = self.models[model]
        match what:
            case "forward" | "forward_backward":
                return self._passed(of, body[f"{what}_input"], gradient=what == "forward_backward")
            case "optim_step":
                norm = self.engine.step(of, body["adam_params"])
                self.steps += 1
                if self.faults.dies_after is not None and self.steps >= self.faults.dies_after:
                    self.faults.dies_after = None
                    self.models.clear()
                return {"metrics": {"skyrl.ai/grad_norm": norm}, "type": what}
            case "load_weights":
                if body["path"] not in self.saved:
                    return _refused(404, "Checkpoint not found")
                kept = self.saved[body["path"]]
                self.engine.restore(of, kept, optimizer=bool(body.get("optimizer")))
                return {"type": what}
            case "unload_model":
                del self.models[model]
                return {"model_id": model, "type": what}
            case _:
                return self._saved(what, model, str(body["path"]))

    def _passed(self, model: Any, given: dict[str, Any], *, gradient: bool) -> dict[str, Any] | web.Response:
        loss, data = given["loss_fn"], given["data"]
        for datum in data:
            if set(datum["loss_fn_inputs"]) != _INPUTS.get(loss):
                return _refused(400, f"{loss} takes other inputs")
        found = self.engine.backward(model, data, loss) if gradient else self.engine.logprobs(model, data)
        if self.faults.nan:
            found = [[math.nan] * len(row) for row in found]
        outputs = [{"logprobs": {"data": row, "dtype": "float32", "shape": [len(row)]}} for row in found]
        return {"loss_fn_output_type": "TensorData", "loss_fn_outputs": outputs, "metrics": {}}

    def _saved(self, what: str, model: str, name: str) -> dict[str, Any]:
        kind = "weights" if what == "save_weights" else "sampler_weights"
        path = f"tinker://{model}/{kind}/{name}"
        if kind == "weights":
            self.saved[path] = self.engine.state(self.models[model])
        else:
            with tempfile.TemporaryDirectory() as scratch:
                self.engine.export(self.models[model], Path(scratch), self.faults.adapter)
                self._archives[f"{model}/{name}"] = self._packed(Path(scratch))
        return {"path": path, "type": what}

    def _packed(self, directory: Path) -> bytes:
        if self.faults.adapter == "missing":
            (directory / "adapter_model.safetensors").unlink()
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w:gz") as tar:
            tar.add(directory, arcname=".")
        whole = packed.getvalue()
        return whole[: len(whole) // 2] if self.faults.adapter == "cut" else whole

    def _future(self, what: str, result: dict[str, Any] | web.Response) -> web.Response:
        name = str(next(self._numbers))
        self._results[name] = (what, result)
        return web.json_response({"future_id": name, "status": "pending", "request_id": name})

    def _result(self, name: str) -> web.Response:
        if name not in self._results:
            return _refused(404, "Future not found")
        what, result = self._results[name]
        looks = self._looks[name] = self._looks.get(name, 0) + 1
        if what == self.faults.never or looks <= self.faults.pending:
            if looks % 2:
                return web.json_response({"type": "try_again", "request_id": name, "queue_state": "active"})
            return _refused(408, "Timeout waiting for result")
        if isinstance(result, web.Response):
            return web.Response(status=result.status, body=result.body, content_type="application/json")
        return web.Response(text=json.dumps(result), content_type="application/json")

    async def _archive(self, request: web.Request) -> web.Response:
        run, name = request.match_info["run"], request.match_info["name"]
        if f"{run}/{name}" not in self._archives:
            return _refused(404, "Checkpoint not found")
        place = self.faults.elsewhere or f"{self.url}/files/{run}/{name}"
        return web.Response(status=302, headers={"Location": place})

    async def _file(self, request: web.Request) -> web.Response:
        run, name = request.match_info["run"], request.match_info["name"]
        return web.Response(body=self._archives[f"{run}/{name}"], content_type="application/octet-stream")


def _refused(status: int, detail: str, headers: Mapping[str, str] | None = None) -> web.Response:
    return web.json_response({"detail": detail}, status=status, headers=headers)
