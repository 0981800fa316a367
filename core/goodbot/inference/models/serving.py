"""Which of the servers that run here goodbot can answer through, and the settings that say so."""

from __future__ import annotations

import json
from collections.abc import Mapping

from goodbot.api.plugins import missing_modules
from goodbot.api.server import ServerSpec
from goodbot.inference.models.servers import FoundServer
from goodbot.inference.servers.plugin import SPECS

OLLAMA_RUNS_ADAPTERS_SINCE = (0, 30)
OLLAMA_TAKES_WHOLE_MODELS_SINCE = (0, 34, 1)
_TAKES_ADAPTERS = ("ollama", "vllm", "mlx", "sglang")
"""Kinds that take an adapter while they run; our drivers have the same names."""


def settings(kind: str, url: str, model: str = "") -> dict[str, str]:
    """`[serving]` for a server; `model` is the base's name there, where it must be said."""
    spec = driver(kind)
    found = {"server": kind}
    if spec is None or url != spec.url:
        found["url"] = url
    if model:
        found["model"] = model
    return found


def written(values: Mapping[str, str]) -> str:
    """Settings of `[serving]` in one line, to copy."""
    return "[serving] " + ", ".join(f"{key} = {json.dumps(value)}" for key, value in values.items())


def proposed(server: FoundServer, model: str) -> dict[str, str]:
    """`[serving]` for one that takes goodbot's adapters as it is; empty for all others."""
    if server.kind not in _TAKES_ADAPTERS or too_old(server.version):
        return {}
    return settings(server.kind, server.url, model)


def ready(values: Mapping[str, str]) -> bool:
    """Whether what that driver needs is installed."""
    spec = driver(values.get("server", ""))
    return spec is not None and not missing_modules(spec.requires)


def driver(name: str) -> ServerSpec | None:
    """Ours of that name."""
    return next((spec for spec in SPECS if spec.name == name), None)


def too_old(version: str) -> bool:
    """Whether that Ollama makes models with adapters and does not run them."""
    numbers = numbered(version)
    return bool(numbers) and numbers < OLLAMA_RUNS_ADAPTERS_SINCE


def numbered(version: str) -> tuple[int, ...]:
    """`0.34.1-rc1` → (0, 34, 1); empty for one that is none, or of somebody's own making (`0.0.0`)."""
    parts = version.partition("-")[0].split(".")
    numbers = tuple(int(part) for part in parts if part.isdecimal() and len(part) < 6)
    return numbers if len(numbers) == len(parts) and any(numbers) else ()
