# SPDX-License-Identifier: Apache-2.0
"""SGLang."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from goodbot.api.setup import Check, ok, warn
from goodbot.api.survey import MODELS, Ask, FoundServer, Survey, openai_models, owners
from goodbot.inference.surveys import command_line


class SglangSurvey(Survey):
    """It says that it owns its models."""

    kind, title = "sglang", "SGLang"
    ports = (30000,)
    priority = 40

    def recognize(self, url: str, said: Mapping[str, Mapping[str, Any]]) -> FoundServer | None:
        if "sglang" not in (owners(said[MODELS]) or ()):
            return None
        return FoundServer(survey=self, url=url, models=openai_models(said[MODELS]))

    def adapts(self, found: FoundServer) -> bool:
        return True

    async def examine(self, ask: Ask, found: FoundServer, line: str, rank: int) -> Check:
        code, info = await ask("/server_info")
        if code != 200:
            _, info = await ask("/get_server_info")
        version = f"SGLang {info.get('version', '')}".strip()
        rank = command_line.rank(rank)
        most = info.get("max_lora_rank")
        if info.get("enable_lora") and not (isinstance(most, int) and most < rank):
            return ok(found.part, f"{version} takes adapters while it runs: {line}")
        start = (
            f"python -m sglang.launch_server --model-path {command_line.model(found)} --enable-lora "
            f"--max-lora-rank {rank} --lora-target-modules all --max-loras-per-batch 2 "
            f"--max-loaded-loras 3{command_line.port(found, 30000)}"
        )
        lacks = f"adapters only up to rank {most}" if info.get("enable_lora") else "no adapters"
        return warn(found.part, f"{version} takes {lacks} while it runs", start)
