# SPDX-License-Identifier: Apache-2.0
"""vLLM."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from goodbot.api.setup import Check, ok, warn
from goodbot.api.survey import MODELS, Ask, FoundServer, Survey, openai_models, owners
from goodbot.inference.surveys import command_line


class VllmSurvey(Survey):
    """It says that it owns its models."""

    kind, title = "vllm", "vLLM"
    ports = (8000,)
    priority = 40

    def recognize(self, url: str, said: Mapping[str, Mapping[str, Any]]) -> FoundServer | None:
        if "vllm" not in (owners(said[MODELS]) or ()):
            return None
        return FoundServer(survey=self, url=url, models=openai_models(said[MODELS]))

    def adapts(self, found: FoundServer) -> bool:
        return True

    async def examine(self, ask: Ask, found: FoundServer, line: str, rank: int) -> Check:
        """The one request that is no GET is empty, so that it can load nothing."""
        _, said = await ask("/version")
        version = f"vLLM {said.get('version', '')}".strip()
        code, _ = await ask("/v1/load_lora_adapter", {})
        if code in (401, 403):
            return warn(found.part, f"{version} asks for a key: it cannot be looked at")
        if code in (400, 422):
            return ok(found.part, f"{version} takes adapters while it runs: {line}")
        start = (
            f"VLLM_ALLOW_RUNTIME_LORA_UPDATING=True vllm serve {command_line.model(found)} --enable-lora "
            f"--max-lora-rank {command_line.rank(rank)} --max-loras 2 --logprobs-mode processed_logprobs"
            f"{command_line.called(found)}{command_line.port(found, 8000)}"
        )
        return warn(found.part, f"{version} takes no adapters while it runs", start)
