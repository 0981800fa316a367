# SPDX-License-Identifier: Apache-2.0
"""A loopback vLLM, after its sources (entrypoints/openai/models/serving.py, serve/lora, serve/dev/sleep)."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from aiohttp import web
from goodbot.api.adapters.manifest import WEIGHTS
from goodbot.api.adapters.weights import check_weights
from goodbot.base.errors import AdapterError

from goodbot_fakes.openai_server import FakeOpenAI
from goodbot_fakes.policy import Policy, Token, cutting

_MOST_TOP = 20
_GONE = -9999.0
"""Its JSON for -inf."""


class FakeVllm(FakeOpenAI):
    """The switches are its options and environment variables."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.enable_lora = True
        self.runtime_updating = True
        """VLLM_ALLOW_RUNTIME_LORA_UPDATING; read when it comes up."""
        self.max_lora_rank = 16
        self.max_loras = 2
        """Adapters that write in one step; answers by others wait. Unset, vLLM has 1."""
        self.max_cpu_loras: int | None = None
        """Adapters that it keeps in memory, the last used ones; unset, as many as `max_loras`."""
        self.processed_logprobs = True
        """`--logprobs-mode processed_logprobs`."""
        self.refuses_logprobs = False
        """As some engines behind this API do."""
        self.salts = True
        """Whether it knows `cache_salt`."""
        self.dev_mode = False
        """VLLM_SERVER_DEV_MODE with `--enable-sleep-mode`; read when it comes up."""
        self.mounts: dict[str, str] = {}
        """Directories as it sees them → where they are; empty: all as they are."""
        self.loaded: dict[str, tuple[str, Policy]] = {}
        """The path and the weights of each adapter, by name."""
        self.read_again: list[str] = []
        """Adapters that were asked for when others had pushed them out of memory."""
        self._kept: list[str] = []
        """Those in memory, the last used one at the end."""
        self.together = 0
        """The most adapters that have written in the same moment."""
        self._writing: Counter[str] = Counter()
        self._turn = asyncio.Condition()
        self._used = False
        """Whether an adapter has answered: before that it tells nothing of them."""
        self._caches: dict[tuple[str, str], Policy] = {}
        self._awake = asyncio.Event()
        self._awake.set()

    async def restart(self) -> None:
        """Its owner starts it anew: it has forgotten every adapter."""
        await self.down()
        self.loaded, self._caches, self._kept, self._used = {}, {}, [], False
        self._awake.set()
        await self.up()

    @property
    def asleep(self) -> bool:
        return not self._awake.is_set()

    def routes(self) -> list[web.RouteDef]:
        routes = [*super().routes(), web.get("/health", self._ok), web.get("/version", self._ok)]
        routes.append(web.get("/metrics", self._metrics))
        if self.runtime_updating:
            routes += [
                web.post("/v1/load_lora_adapter", self._load),
                web.post("/v1/unload_lora_adapter", self._unload),
            ]
        if self.dev_mode:
            routes += [
                web.post("/sleep", self._sleep),
                web.post("/wake_up", self._wake_up),
                web.get("/is_sleeping", self._is_sleeping),
            ]
        return routes

    def listed(self) -> list[dict[str, Any]]:
        base = {"id": self.name, "object": "model", "owned_by": "vllm", "root": "weights", "parent": None}
        return [base] + [
            {"id": name, "object": "model", "owned_by": "vllm", "root": path, "parent": self.name}
            for name, (path, _) in self.loaded.items()
        ]

    def policy(self, body: Mapping[str, Any]) -> Policy | web.Response:
        if body.get("logprobs") and self.refuses_logprobs:
            return self.refused(400, "logprobs are not supported")
        if (body.get("top_logprobs") or 0) > _MOST_TOP:
            return self.refused(400, f"Requested sample logprobs is greater than max: {_MOST_TOP}")
        name = str(body.get("model"))
        if name not in self.loaded:
            return super().policy(body)
        if self.faults.ignores_adapters:
            return Policy(self._base)
        path, found = self.loaded[name]
        if name not in self._kept:
            self.read_again.append(name)
            try:
                found = self.adapted(seen(path, self.mounts))
            except OSError:
                return self.refused(500, f"Loading lora {name} failed: No adapter found for {path}")
        self._keep(name)
        if self.faults.stale_cache:
            salt = str(body.get("cache_salt", "")) if self.salts else ""
            found = self._caches.setdefault((name, salt), found)
        return found

    def told(self, body: Mapping[str, Any], token: Token) -> Mapping[str, float]:
        whole = super().told(body, token)
        if not self.processed_logprobs or body["temperature"] <= 0:
            return whole
        left = cutting(body)(whole)
        return {text: left.get(text, _GONE) for text in whole}

    def processed(self, body: Mapping[str, Any]) -> bool:
        return self.processed_logprobs

    def chunk(self, body: Mapping[str, Any], choice: dict[str, Any], token: Token | None) -> dict[str, Any]:
        chunk = super().chunk(body, choice, token)
        if body.get("return_token_ids"):
            choice["token_ids"] = None if token is None else [self.id_of(token)]
            chunk["prompt_token_ids"] = self.prompt(body) if token is None else None
        return chunk

    def gone(self, body: Mapping[str, Any]) -> bool:
        return body["model"] != self.name and body["model"] not in self.loaded

    async def ready(self, body: Mapping[str, Any]) -> None:
        await self._awake.wait()
        if (name := body["model"]) in self.loaded:
            self._used = True
            async with self._turn:
                await self._turn.wait_for(
                    lambda: name in self._writing or len(self._writing) < self.max_loras
                )
                self._writing[name] += 1
                self.together = max(self.together, len(self._writing))

    async def over(self, body: Mapping[str, Any]) -> None:
        if (name := body["model"]) in self._writing:
            async with self._turn:
                self._writing -= Counter([name])  # which leaves no zero
                self._turn.notify_all()

    def _keep(self, name: str) -> None:
        """It is used now; what was not for the longest time goes out of memory, and stays in the list."""
        self._kept = [*(one for one in self._kept if one != name), name][
            -(self.max_cpu_loras or self.max_loras) :
        ]

    async def _metrics(self, _: web.Request) -> web.Response:
        text = "# TYPE vllm:lora_requests_info gauge\n"
        if self._used:
            labels = 'running_lora_adapters="",waiting_lora_adapters=""'
            text += f'vllm:lora_requests_info{{max_lora="{self.max_loras}",{labels}}} 1.7e+09\n'
        return web.Response(text=text)

    async def _ok(self, _: web.Request) -> web.Response:
        return web.json_response({"version": "0.33.0"}, status=503 if self.faults.fails else 200)

    async def _load(self, request: web.Request) -> web.Response:
        body = await request.json()
        name, path = body.get("lora_name"), body.get("lora_path")
        if not name or not path:
            return self.refused(400, "Both 'lora_name' and 'lora_path' must be provided.")
        if name in self.loaded and not body.get("load_inplace"):
            return self.refused(400, f"The lora adapter '{name}' has already been loaded.")
        if not self.enable_lora:
            return self.refused(500, "LoRA is not enabled. Use --enable-lora to enable LoRA.")
        here = seen(path, self.mounts)
        try:
            config = json.loads(Path(here, "adapter_config.json").read_bytes())
            policy = self.adapted(here)
        except PermissionError as error:
            return self.refused(500, f"[Errno 13] Permission denied: '{error.filename}'")
        except OSError:
            return self.refused(404, f"Loading lora {name} failed: No adapter found for {path}")
        if config.get("r", 0) > self.max_lora_rank:
            message = f"LoRA rank {config['r']} is greater than max_lora_rank {self.max_lora_rank}."
            return self.refused(400, message)
        try:
            check_weights(Path(here, WEIGHTS))
        except AdapterError:
            return self.refused(500, "Error while deserializing header: incomplete metadata")
        if not self.faults.loads_nothing:
            self.loaded[name] = path, policy
            self._keep(name)
        return web.Response(text=f"Success: LoRA adapter '{name}' added successfully.")

    async def _unload(self, request: web.Request) -> web.Response:
        name = (await request.json()).get("lora_name")
        if name not in self.loaded:
            return self.refused(404, f"The lora adapter '{name}' cannot be found.")
        del self.loaded[name]
        self._kept = [one for one in self._kept if one != name]
        return web.Response(text=f"Success: LoRA adapter '{name}' removed successfully.")

    async def _sleep(self, _: web.Request) -> web.Response:
        self._awake.clear()
        self._caches = {}
        return web.Response()

    async def _wake_up(self, _: web.Request) -> web.Response:
        self._awake.set()
        return web.Response()

    async def _is_sleeping(self, _: web.Request) -> web.Response:
        return web.json_response({"is_sleeping": self.asleep})


def seen(path: str, mounts: Mapping[str, str]) -> str:
    """Where a path of a server's container is on this machine."""
    if not mounts:
        return path
    for there, here in mounts.items():
        if path.startswith(f"{there}/"):
            return here + path[len(there) :]
    return "/nowhere"
