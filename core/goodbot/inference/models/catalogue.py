# SPDX-License-Identifier: Apache-2.0
"""The dated list of open chat models in `catalogue.toml`, and the names under which they are served."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from functools import cache
from pathlib import Path
from typing import Any

from goodbot.api.model_shape import Architecture, read

_FILE = Path(__file__).with_name("catalogue.toml")
_QUANTIZATIONS = ("-q", "-iq", "-fp16", "-bf16", "-f16", "-mxfp")
_PACKAGINGS = (
    "-gguf",
    ".gguf",
    "-mlx",
    "-4bit",
    "-6bit",
    "-8bit",
    "-bf16",
    "-fp16",
    "-dwq",
    "-awq",
    "-gptq",
    "-fp8",
)


@dataclass(frozen=True, kw_only=True, slots=True)
class CatalogueEntry:
    """One model of the catalogue; `catalogue.toml` says where its figures come from."""

    name: str
    """On the hub: `owner/name`."""
    parameters: int
    bytes: int
    """Of all weight files, as stored."""
    licence: str
    gated: bool
    """Whether the hub asks for an account and a click on the licence."""
    aliases: tuple[str, ...]
    """Names under which local servers offer the same model, in lower case."""
    config: Mapping[str, Any]
    """The part of its `config.json` that the estimates need."""

    @property
    def architecture(self) -> Architecture:
        return read(self.config)


@cache
def entries() -> tuple[CatalogueEntry, ...]:
    """All models, the smallest first."""
    data = _data()
    found = [
        CatalogueEntry(
            name=model["name"],
            parameters=model["parameters"],
            bytes=model["bytes"],
            licence=model["licence"],
            gated=model["gated"],
            aliases=tuple(model["aliases"]),
            config=model["architecture"],
        )
        for model in data["model"]
    ]
    return tuple(sorted(found, key=lambda entry: entry.parameters))


def dated() -> date:
    """The day on which the catalogue was made."""
    return _data()["date"]


@cache
def _data() -> dict[str, Any]:
    return tomllib.loads(_FILE.read_text(encoding="utf-8"))


def find(name: str) -> CatalogueEntry | None:
    """The entry for a name on the hub, or for a name under which a server offers the model."""
    wanted = name.strip().lower()
    for entry in entries():
        if wanted in (entry.name.lower(), *entry.aliases):
            return entry
    for entry in entries():  # qwen3:4b-q4_K_M is qwen3:4b
        for alias in entry.aliases:
            if ":" in alias and wanted.startswith(alias):
                rest = wanted.removeprefix(alias)
                if rest.startswith(_QUANTIZATIONS):
                    return entry
    bare = _bare(wanted)
    return next((e for e in entries() if _bare(e.name.lower()) == bare), None)


def _bare(name: str) -> str:
    """`unsloth/qwen3-4b-gguf:q4_k_m` and `qwen3-4b-q4_k_m.gguf` without what packaging adds."""
    name = name.rpartition("/")[2].partition("@")[0]
    base, colon, tag = name.partition(":")
    if colon and f"-{tag}".startswith(_QUANTIZATIONS):
        name = base
    shorter = True
    while shorter:
        shorter = False
        for ending in _PACKAGINGS:
            if name.endswith(ending):
                name, shorter = name.removesuffix(ending), True
        head, dash, last = name.rpartition("-")
        if dash and f"-{last}".startswith(("-q", "-iq")) and last.strip("iq")[:1].isdigit():
            name, shorter = head, True
    return name
