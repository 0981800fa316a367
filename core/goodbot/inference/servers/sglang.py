# SPDX-License-Identifier: Apache-2.0
"""SGLang, started by its owner with `--enable-lora`, a rank and `--lora-target-modules`.

Its caches know an adapter by an id of each load, so names are safe there; ours are new each time anyway.
Token ids come with a streamed answer in its `sglext` field (older versions have none), log-probs at the
temperature of the request, unless it was started with SGLANG_RETURN_ORIGINAL_LOGPROB.
"""

from __future__ import annotations

from typing import Any, ClassVar

from goodbot.api.server import BASE, GenerateRequest, ServerParts
from goodbot.inference.servers.lora_endpoints import NEVER, LoraServer
from goodbot.inference.servers.upstream import StatusError, UpstreamResponse

_UNKNOWN = ("not loaded", "never been loaded")
"""What it says of a name that it does not know: before 0.5, and since."""


class SglangServer(LoraServer):
    """One SGLang of the owner's."""

    load_path: ClassVar[str] = "/load_lora_adapter"
    unload_path: ClassVar[str] = "/unload_lora_adapter"
    slots_option: ClassVar[tuple[str, int]] = ("--max-loaded-loras", 3)

    def __init__(self, _: object, parts: ServerParts) -> None:
        super().__init__(parts, "SGLang")

    async def lacks(self) -> str:
        info = await self._info()
        if info.status in (401, 403):
            raise self.upstream.refused(info)
        if info.ok and info.body.get("enable_lora") is False:
            return NEVER
        return ""

    async def slots(self) -> int | None:
        """`--max-loaded-loras`. A newer one puts out what is beyond it, and reads it again for who asks."""
        info = await self._info()
        told = info.body.get("max_loaded_loras") if info.ok else None
        return told if isinstance(told, int) and not isinstance(told, bool) else None

    async def _info(self) -> UpstreamResponse:
        """`/server_info`, which was called `/get_server_info` before 0.5."""
        reply = await self.upstream.ask("/server_info", seconds=30.0)
        if reply.status in (404, 405):
            reply = await self.upstream.ask("/get_server_info", seconds=30.0)
        return reply

    def forgotten(self, error: StatusError) -> bool:
        return any(sign in error.reply.words for sign in _UNKNOWN)

    def body(self, name: str, request: GenerateRequest) -> dict[str, Any]:
        base = self.names.get(BASE, name)
        body = {**super().body(base, request)}
        if name != base:
            body["lora_path"] = name
        if self.tells_logprobs(request):
            body["return_input_ids_in_sglext"] = True
            body["return_output_ids_in_sglext"] = True
        return body
