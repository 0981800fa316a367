# SPDX-License-Identifier: Apache-2.0
"""Which of the servers that run here goodbot can answer through, and the settings that say so."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

from goodbot.api.server import ServerSpec
from goodbot.api.survey import FoundServer
from goodbot.base.installed import missing_modules
from goodbot.inference.servers.plugin import SPECS


def settings(kind: str, url: str, model: str = "", specs: Iterable[ServerSpec] = SPECS) -> dict[str, str]:
    """`[serving]` for a server; `model` is the base's name there, where it must be said."""
    spec = driver(kind, specs)
    found = {"server": kind}
    if spec is None or url != spec.url:
        found["url"] = url
    if model:
        found["model"] = model
    return found


def written(values: Mapping[str, str]) -> str:
    """Settings of `[serving]` in one line, to copy."""
    return "[serving] " + ", ".join(f"{key} = {json.dumps(value)}" for key, value in values.items())


def proposed(server: FoundServer, model: str, specs: Iterable[ServerSpec] = SPECS) -> dict[str, str]:
    """`[serving]` for one that takes goodbot's adapters as it is; empty for all others."""
    if not server.survey.adapts(server):
        return {}
    return settings(server.kind, server.url, model, specs)


def ready(values: Mapping[str, str], specs: Iterable[ServerSpec] = SPECS) -> bool:
    """Whether what that driver needs is installed."""
    spec = driver(values.get("server", ""), specs)
    return spec is not None and not missing_modules(spec.requires)


def driver(name: str, specs: Iterable[ServerSpec] = SPECS) -> ServerSpec | None:
    """The one of that name."""
    return next((spec for spec in specs if spec.name == name), None)
