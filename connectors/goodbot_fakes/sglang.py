# SPDX-License-Identifier: Apache-2.0
"""A loopback SGLang, after its sources (entrypoints/http_server.py, openai/serving_chat.py, lora/)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from aiohttp import web
from goodbot.api.adapters.manifest import WEIGHTS
from goodbot.api.adapters.weights import check_weights
from goodbot.base.errors import AdapterError

from goodbot_fakes.openai_server import FakeOpenAI
from goodbot_fakes.policy import Policy, Token
from goodbot_fakes.vllm import seen

_NOT_STREAMED = ("return_prompt_token_ids", "return_token_ids", "return_meta_info")


class FakeSglang(FakeOpenAI):
    """The switches are its options and environment variables."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.enable_lora = True
        self.max_lora_rank = 16
        self.max_loaded_loras: int | None = None
        """Adapters that it keeps; unset: all."""
        self.puts_out = True
        """As since 0.5: the one that nobody used for the longest time makes room. Before, none is taken."""
        self.original_logprob = False
        """SGLANG_RETURN_ORIGINAL_LOGPROB: log-probs at temperature 1, whatever the request's is."""
        self.sglext = True
        """Whether it is new enough to tell token ids in a stream."""
        self.mounts: dict[str, str] = {}
        self.loaded: dict[str, tuple[str, Policy]] = {}
        """The last used one stands at the end."""
        self.read_again: list[str] = []
        """Adapters that were asked for when others had put them out."""
        self._known: dict[str, str] = {}
        """The paths of all that were ever loaded: who asks for one has it read again."""
        self._caches: dict[str, Policy] = {}

    async def restart(self) -> None:
        """Its owner starts it anew: it has forgotten every adapter."""
        await self.down()
        self.loaded, self._caches, self._known = {}, {}, {}
        await self.up()

    def routes(self) -> list[web.RouteDef]:
        return [
            *super().routes(),
            web.get("/health", self._ok),
            web.get("/server_info", self._info),
            web.post("/load_lora_adapter", self._load),
            web.post("/unload_lora_adapter", self._unload),
        ]

    def listed(self) -> list[dict[str, Any]]:
        base = {"id": self.name, "object": "model", "owned_by": "sglang", "root": self.name}
        return [base] + [
            {"id": name, "object": "model", "owned_by": "sglang", "root": path, "parent": self.name}
            for name, (path, _) in self.loaded.items()
        ]

    def policy(self, body: Mapping[str, Any]) -> Policy | web.Response:
        for flag in _NOT_STREAMED:
            if body.get("stream") and body.get(flag):
                return self.refused(400, f"{flag} is not supported with streaming.")
        model, _, adapter = str(body.get("model")).partition(":")
        name = adapter or body.get("lora_path")
        if not name:
            return super().policy({**body, "model": model})
        if why := self._found(name):
            return self.refused(400, why)
        if self.faults.ignores_adapters:
            return Policy(self._base)
        found = self.loaded[name][1]
        return self._caches.setdefault(name, found) if self.faults.stale_cache else found

    def _found(self, name: str) -> str:
        """Why no adapter of that name answers; empty once one does."""
        if name in self.loaded:
            self.loaded[name] = self.loaded.pop(name)
            return ""
        names = ", ".join(self.loaded)
        if not self.puts_out:
            return f"The following requested LoRA adapters are not loaded: {name}\nLoaded adapters: {names}."
        if name not in self._known:
            return f"Got LoRA adapter that has never been loaded: {name}\nAll loaded adapters: {names}."
        try:
            policy = self.adapted(seen(self._known[name], self.mounts))
        except OSError as error:
            return f"Failed to implicitly load LoRA adapter {name}: {error}"
        self.read_again.append(name)
        self._put(name, self._known[name], policy)
        return ""

    def _put(self, name: str, path: str, policy: Policy) -> None:
        self.loaded[name], self._known[name] = (path, policy), path
        while self.max_loaded_loras is not None and len(self.loaded) > self.max_loaded_loras:
            del self.loaded[next(iter(self.loaded))]

    def refused(self, status: int, message: str) -> web.Response:
        told = {"object": "error", "message": message, "type": "BadRequest", "code": status}
        return web.json_response(told, status=status)

    def processed(self, body: Mapping[str, Any]) -> bool:
        return not self.original_logprob

    def extras(self, body: Mapping[str, Any], said: Sequence[Token]) -> list[dict[str, Any]]:
        extension: dict[str, Any] = {}
        if self.sglext and body.get("return_input_ids_in_sglext"):
            extension["input_ids"] = self.prompt(body)
        if self.sglext and body.get("return_output_ids_in_sglext"):
            extension["output_ids"] = [[self.id_of(token) for token in said]]
        told: list[dict[str, Any]] = [{"choices": [], "sglext": extension}] if extension else []
        return [*told, *super().extras(body, said)]

    async def _ok(self, _: web.Request) -> web.Response:
        return web.Response()

    async def _info(self, _: web.Request) -> web.Response:
        return web.json_response(
            {
                "model_path": "weights",
                "version": "0.5.23",
                "enable_lora": self.enable_lora,
                "max_lora_rank": self.max_lora_rank,
                "max_loaded_loras": self.max_loaded_loras,
            }
        )

    async def _load(self, request: web.Request) -> web.Response:
        body = await request.json()
        name, path = str(body["lora_name"]), str(body["lora_path"])
        if not self.enable_lora:
            return self._done("LoRA is not enabled. Please set `--enable-lora` to enable LoRA.")
        if name in self.loaded:
            return self._done(f"LoRA adapter {name} is already loaded.")
        most = self.max_loaded_loras
        if most is not None and len(self.loaded) >= most and not self.puts_out:
            return self._done(
                f"Cannot load LoRA adapter {name} at path {path}. Maximum number of loaded LoRA adapters is "
                f"{most}. Please unload some LoRA adapters before loading new ones."
            )
        here = seen(path, self.mounts)
        if not Path(here).is_dir():
            return self._done(
                f"Failed to load LoRA adapter {name}: Repo id must be in the form 'repo_name' or "
                f"'namespace/repo_name': '{path}'."
            )
        try:
            config = json.loads(Path(here, "adapter_config.json").read_bytes())
            policy = self.adapted(here)
            check_weights(Path(here, WEIGHTS))
        except (OSError, AdapterError) as error:
            return self._done(f"Failed to load LoRA adapter {name}: {error}")
        if config.get("r", 0) > self.max_lora_rank:
            return self._done(
                f"LoRA adapter {name} with rank {config['r']} is incompatible with the current LoRA "
                "memory pool configuration."
            )
        if not self.faults.loads_nothing:
            self._put(name, path, policy)
        return self._done()

    async def _unload(self, request: web.Request) -> web.Response:
        name = str((await request.json())["lora_name"])
        if name not in self.loaded:
            return self._done(f"LoRA adapter {name} is not loaded.")
        del self.loaded[name]
        return self._done()

    def _done(self, error: str = "") -> web.Response:
        told = {
            "success": not error,
            "error_message": error,
            "loaded_adapters": {name: path for name, (path, _) in self.loaded.items()},
        }
        return web.json_response(told, status=400 if error else 200)
