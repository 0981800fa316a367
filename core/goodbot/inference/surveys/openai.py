# SPDX-License-Identifier: Apache-2.0
"""Servers that are known by OpenAI's API alone: `mlx_lm.server`, which names no owner, and all others."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from goodbot.api.setup import Check, warn
from goodbot.api.survey import MODELS, Ask, FoundServer, Survey, openai_models, owners


class MlxSurvey(Survey):
    """Known by what it leaves out."""

    kind, title = "mlx", "mlx_lm.server"
    ports = (8080,)
    priority = 5

    def recognize(self, url: str, said: Mapping[str, Mapping[str, Any]]) -> FoundServer | None:
        named = owners(said[MODELS])
        if named is None or named - {""}:
            return None
        return FoundServer(survey=self, url=url, models=openai_models(said[MODELS]))

    def adapts(self, found: FoundServer) -> bool:
        return True

    async def examine(self, ask: Ask, found: FoundServer, line: str, rank: int) -> Check:
        return warn(
            found.part,
            "a server like mlx_lm.server: from 0.32.2 on it takes an adapter with a request, and loads "
            f"the whole model again for it ({line}); before that it ignored --adapter-path",
            "pip install --upgrade 'mlx-lm>=0.32.2'",
        )


class OpenAISurvey(Survey):
    """Whatever answers so."""

    kind, title = "openai", "a server that speaks OpenAI's API"
    priority = 0

    def recognize(self, url: str, said: Mapping[str, Mapping[str, Any]]) -> FoundServer | None:
        if owners(said[MODELS]) is None:
            return None
        return FoundServer(survey=self, url=url, models=openai_models(said[MODELS]))

    async def examine(self, ask: Ask, found: FoundServer, line: str, rank: int) -> Check:
        return warn(
            found.part, f"{found.title}: it can answer with a model of its own, which learns nothing: {line}"
        )
