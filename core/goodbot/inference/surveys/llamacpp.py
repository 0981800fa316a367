# SPDX-License-Identifier: Apache-2.0
"""llama.cpp's `llama-server`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from goodbot.api.setup import Check, ok
from goodbot.api.survey import MODELS, Ask, FoundServer, Survey, listed, openai_models, owners, text

_PROPS = "/props"
_LINE = '[serving] server = "llamacpp"'


class LlamaCppSurvey(Survey):
    """Known by its properties, else by what it says of its models."""

    kind, title = "llamacpp", "llama.cpp"
    ports = (8080,)
    questions = (MODELS, _PROPS)
    priority = 60

    def recognize(self, url: str, said: Mapping[str, Mapping[str, Any]]) -> FoundServer | None:
        props, models = said[_PROPS], said[MODELS]
        known = "build_info" in props or "default_generation_settings" in props
        if not known and "llamacpp" not in (owners(models) or ()):
            return None
        root = text(props.get("model_path")) if known else ""
        return FoundServer(survey=self, url=url, models=openai_models(models, root))

    def otherwise(self, found: FoundServer) -> str:
        return f"A llama-server of goodbot's own can answer instead: {_LINE}."

    async def examine(self, ask: Ask, found: FoundServer, line: str, rank: int) -> Check:
        code, loaded = await ask("/lora-adapters")
        count = len(listed(loaded, ""))
        has = f"{count} from its start" if code == 200 and count else "none now"
        return ok(
            found.part,
            f"llama.cpp reads an adapter only when it starts ({has}); goodbot can start one of its own "
            f"for each version: {_LINE}",
        )
