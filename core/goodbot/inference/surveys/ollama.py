# SPDX-License-Identifier: Apache-2.0
"""Ollama, and from which version on it takes what."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast
from urllib.parse import urlsplit

from goodbot.api.setup import Check, ok, warn
from goodbot.api.survey import Ask, FoundServer, ListedModel, Survey, listed, size, text

RUNS_ADAPTERS_SINCE = (0, 30)
TAKES_WHOLE_MODELS_SINCE = (0, 34, 1)
_VERSION, _TAGS = "/api/version", "/api/tags"


class OllamaSurvey(Survey):
    """Known by its own API."""

    kind, title = "ollama", "Ollama"
    ports = (11434,)
    moved_by = "OLLAMA_HOST"
    questions = (_VERSION, _TAGS)
    priority = 50

    def recognize(self, url: str, said: Mapping[str, Mapping[str, Any]]) -> FoundServer | None:
        version, tags = said[_VERSION], said[_TAGS]
        if not isinstance(tags.get("models"), list) or "version" not in version:
            return None
        models = tuple(model for model in map(_model, listed(tags, "models")) if model.name)
        return FoundServer(survey=self, url=url, models=models, version=text(version["version"]))

    def adapts(self, found: FoundServer) -> bool:
        return not too_old(found.version)

    def otherwise(self, found: FoundServer) -> str:
        return f"Ollama {found.version} runs no adapters: 0.30 and newer can go on answering."

    async def origin(self, ask: Ask, found: FoundServer, name: str) -> list[str]:
        _, shown = await ask("/api/show", {"model": name})
        told = shown.get("model_info")
        info: Mapping[str, Any] = cast("Mapping[str, Any]", told) if isinstance(told, dict) else {}
        urls = ("general.base_model.0.repo_url", "general.repo_url", "general.source.repo_url")
        parts = ("general.basename", "general.size_label", "general.finetune")
        names = [urlsplit(text(info.get(key))).path.strip("/") for key in urls]
        names.append("-".join(filter(None, (text(info.get(key)) for key in parts))))
        return [one for one in names if one]

    async def examine(self, ask: Ask, found: FoundServer, line: str, rank: int) -> Check:
        version = found.version
        if too_old(version):
            lacks = f"Ollama {version} makes models with adapters and does not run them"
            return warn(found.part, lacks, "update Ollama to 0.30 or newer")
        whole = numbered(version) >= TAKES_WHOLE_MODELS_SINCE
        takes = "a whole model of its own, with its adapter in it" if whole else "a model of its own"
        return ok(found.part, f"Ollama {version} takes each version as {takes}: {line}")


def _model(entry: Mapping[str, Any]) -> ListedModel:
    details = entry.get("details")
    told: Mapping[str, Any] = cast("Mapping[str, Any]", details) if isinstance(details, dict) else {}
    notes = (text(told.get(name)) for name in ("parameter_size", "quantization_level", "format"))
    return ListedModel(
        name=text(entry.get("name")),
        parent=text(told.get("parent_model")),
        note=" ".join(filter(None, notes)),
        bytes=size(entry.get("size")),
    )


def too_old(version: str) -> bool:
    """Whether that Ollama makes models with adapters and does not run them."""
    numbers = numbered(version)
    return bool(numbers) and numbers < RUNS_ADAPTERS_SINCE


def numbered(version: str) -> tuple[int, ...]:
    """`0.34.1-rc1` → (0, 34, 1); empty for one that is none, or of somebody's own making (`0.0.0`)."""
    parts = version.partition("-")[0].split(".")
    numbers = tuple(int(part) for part in parts if part.isdecimal() and len(part) < 6)
    return numbers if len(numbers) == len(parts) and any(numbers) else ()
