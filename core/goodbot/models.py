"""Which directory holds the model's weights. Nothing is ever downloaded here."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from goodbot.errors import ConfigError

_HUB_NAME = re.compile(r"[\w.-]{1,96}/[\w.-]{1,96}", re.ASCII)


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelSpec:
    """A model that a plugin ships. A `demo` model never answers people unasked and unlabelled."""

    name: str
    path: Path
    demo: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class ResolvedModel:
    """A checked model directory. `label` precedes every answer of a demo model."""

    name: str
    path: Path
    label: str = ""


def resolve(wanted: str, shipped: Mapping[str, ModelSpec], *, demo: bool) -> ResolvedModel:
    """The directory of the configured model. Raises ConfigError with what to do.

    `wanted` is a directory, or a name in the hub's local cache; with `demo` and nothing
    wanted, the model that a plugin ships for demonstrations.
    """
    if not wanted:
        demos = [spec for spec in shipped.values() if spec.demo]
        if demo and demos:
            return ResolvedModel(name=demos[0].name, path=demos[0].path, label="[demo model] ")
        raise ConfigError(
            "no model is configured: set `path` under [model] to a model directory, "
            "or try goodbot with --demo-model"
        )
    path = Path(wanted).expanduser()
    if path.is_dir():
        path = path.resolve()
        name = path.name
    elif _HUB_NAME.fullmatch(wanted):
        path, name = _cached(wanted), wanted
    else:
        raise ConfigError(f"the model directory {wanted} does not exist")
    check(path)
    return ResolvedModel(name=name, path=path)


def check(path: Path) -> None:
    """Refuse a directory that is no model of safetensors. Raises ConfigError."""
    try:
        config = json.loads((path / "config.json").read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ConfigError(f"{path} is no model directory: it has no config.json") from None
    except (OSError, ValueError, RecursionError) as error:
        raise ConfigError(f"{path}/config.json cannot be read: {error}") from error
    if not isinstance(config, dict) or "model_type" not in config:
        raise ConfigError(f"{path}/config.json is no model's: it names no model_type")
    if not any(path.glob("*.safetensors")):
        raise ConfigError(
            f"{path} holds no *.safetensors; goodbot loads no other format of weights"
        )


def _cached(name: str) -> Path:
    """The newest complete snapshot of a hub model on this disk."""
    home = Path(os.environ.get("HF_HOME") or Path.home() / ".cache" / "huggingface")
    hub = Path(os.environ.get("HF_HUB_CACHE") or home / "hub")
    folder = hub / f"models--{name.replace('/', '--')}"
    try:
        revision = (folder / "refs" / "main").read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError):
        revision = ""
    snapshot = folder / "snapshots" / revision
    if not revision or not re.fullmatch(r"[0-9a-f]{40}", revision) or not snapshot.is_dir():
        raise ConfigError(
            f"the model {name} is not on this machine: download it first (`hf download {name}`)"
        )
    return snapshot
