# SPDX-License-Identifier: Apache-2.0
"""LM Studio, for which there is no driver: it takes no adapters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from goodbot.api.setup import Check, warn
from goodbot.api.survey import Ask, FoundServer, ListedModel, Survey, listed, text

_MODELS = "/api/v0/models"


class LmStudioSurvey(Survey):
    """Known by its own API."""

    kind, title = "lmstudio", "LM Studio"
    ports = (1234,)
    questions = (_MODELS,)
    priority = 50

    def recognize(self, url: str, said: Mapping[str, Mapping[str, Any]]) -> FoundServer | None:
        models = listed(said[_MODELS], "data")
        if not any("state" in entry or "publisher" in entry for entry in models):
            return None
        chats = [self._model(entry) for entry in models if entry.get("type", "llm") in ("llm", "vlm")]
        return FoundServer(survey=self, url=url, models=tuple(model for model in chats if model.name))

    def _model(self, entry: Mapping[str, Any]) -> ListedModel:
        notes = (text(entry.get(name)) for name in ("quantization", "compatibility_type", "state"))
        return ListedModel(name=text(entry.get("id")), note=" ".join(filter(None, notes)))

    async def examine(self, ask: Ask, found: FoundServer, line: str, rank: int) -> Check:
        return warn(
            found.part,
            "LM Studio takes no adapters at all: let goodbot serve the model itself, or give it a "
            "version that you export",
            "goodbot adapters export VERSION --format gguf-model --out MODEL.gguf",
        )
