# SPDX-License-Identifier: Apache-2.0
"""vLLM, started by its owner with `--enable-lora` and VLLM_ALLOW_RUNTIME_LORA_UPDATING=True.

Each version is loaded under a name that was never used. `load_inplace` is left alone: with it, answers may
come out of the old version's cache, and the files are read again at every step. Token ids and log-probs come
with every answer; they are at the temperature of the request with `--logprobs-mode processed_logprobs`, else
at temperature 1, and then only answers at that temperature keep them.
"""

from __future__ import annotations

import contextlib
import secrets
from pathlib import Path
from typing import Any, ClassVar

from goodbot.api.server import GenerateRequest, ServerParts
from goodbot.base.errors import ServerError
from goodbot.base.worded import Worded
from goodbot.inference.servers.lora_endpoints import NOT_NOW, LoraServer
from goodbot.inference.servers.plugin import VllmSettings

_MOST_TOP = 20
"""`--max-logprobs`, if nobody has set it."""
_DRAIN_SECONDS = 120.0
_WAKE_SECONDS = 120.0
_INFO = "vllm:lora_requests_info{"
_LIMIT = 'max_lora="'


class VllmServer(LoraServer):
    """One vLLM of the owner's."""

    load_path: ClassVar[str] = "/v1/load_lora_adapter"
    unload_path: ClassVar[str] = "/v1/unload_lora_adapter"
    slots_option: ClassVar[tuple[str, int]] = ("--max-loras", 2)

    def __init__(self, settings: VllmSettings, parts: ServerParts) -> None:
        super().__init__(parts, "vLLM")
        self._may_sleep = settings.sleep
        self._salts: dict[str, str] = {}

    async def look(self) -> str:
        if await self._is_asleep():
            await self._wake()  # goodbot was killed while it slept
        return await super().look()

    async def lacks(self) -> str:
        """An empty load is refused as malformed, or there is nobody who could refuse it."""
        reply = await self.upstream.ask(self.load_path, {}, seconds=30.0)
        if reply.status in (401, 403):
            raise self.upstream.refused(reply)
        return NOT_NOW if reply.status in (404, 405) else ""

    async def slots(self) -> int | None:
        """`--max-loras`, as its metrics have it once an adapter has answered."""
        with contextlib.suppress(ServerError):
            reply = await self.upstream.ask("/metrics", seconds=30.0)
            for line in reply.text.splitlines() if reply.ok else ():
                told = line.partition(_LIMIT)[2].partition('"')[0]
                if line.startswith(_INFO) and told.isascii() and told.isdecimal() and len(told) < 9:
                    return int(told)
        return None

    async def attach(self, name: str, directory: Path) -> None:
        await super().attach(name, directory)
        self._salts[name] = secrets.token_hex(8)

    async def detach(self, name: str) -> None:
        await super().detach(name)
        self._salts.pop(name, None)

    def body(self, name: str, request: GenerateRequest) -> dict[str, Any]:
        body = super().body(name, request)
        if self.tells_logprobs(request):
            body["return_token_ids"] = True
        if salt := self._salts.get(name):  # its prefix cache knows an adapter by its name alone
            body["cache_salt"] = salt
        return body

    async def first(self, name: str, request: GenerateRequest, top: int) -> dict[str, float]:
        return dict(await super().first(name, request, min(top, _MOST_TOP)))

    async def make_room(self) -> bool:
        if not self._may_sleep or not await self.quiet(_DRAIN_SECONDS):
            return False
        try:
            reply = await self.upstream.ask("/sleep?level=1", {}, seconds=_WAKE_SECONDS)
        except ServerError:
            await super().come_back()
            raise
        if reply.ok:
            return True
        how = (
            "{place} cannot sleep: start it with VLLM_SERVER_DEV_MODE=1 and --enable-sleep-mode, "
            "or take sleep out of [serving.settings]"
        )
        self.complaint = Worded(how, place=self.upstream.place)
        await super().come_back()
        return False

    async def come_back(self) -> None:
        try:
            if not self._awake.is_set():
                await self._wake()
        finally:
            await super().come_back()

    async def _is_asleep(self) -> bool:
        if not self._may_sleep:
            return False
        reply = await self.upstream.ask("/is_sleeping", seconds=30.0)
        return reply.ok and reply.body.get("is_sleeping") is True

    async def _wake(self) -> None:
        reply = await self.upstream.ask("/wake_up", {}, seconds=_WAKE_SECONDS)
        if not reply.ok:
            raise self.upstream.refused(reply)
