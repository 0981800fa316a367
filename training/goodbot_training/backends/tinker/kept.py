# SPDX-License-Identifier: Apache-2.0
"""What is remembered here of what lies on the server: in a version's config, and in a checkpoint."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from goodbot.base import durable

from goodbot_training.backends.adapters import CONFIG_FILE
from goodbot_training.backends.state import damaged

_KEY = "goodbot_tinker"
_CHECKPOINT = "tinker.json"


def mark(directory: Path, host: str, weights: str) -> None:
    """Say in an adapter's config where its server keeps it. Whoever changes its weights writes it anew."""
    path = directory / CONFIG_FILE
    config = json.loads(path.read_bytes())
    _write(path, {**config, _KEY: {"host": host, "weights": weights}})


def marked(directory: Path, host: str) -> str:
    """Where that server keeps the adapter; empty where it does not."""
    try:
        found: Any = json.loads((directory / CONFIG_FILE).read_bytes()).get(_KEY)
    except (OSError, ValueError, AttributeError):
        return ""
    known: Mapping[str, Any] = cast("Any", found) if isinstance(found, Mapping) else {}
    return str(known.get("weights", "")) if known.get("host") == host else ""


def write_checkpoint(directory: Path, weights: str, pace: Mapping[str, float]) -> None:
    """A checkpoint is a name there, and a few numbers here."""
    _write(directory / _CHECKPOINT, {"weights": weights, "pace": dict(pace)})


def read_checkpoint(directory: Path) -> tuple[str, dict[str, float]]:
    """As it was written. Raises TrainingError(kind="data")."""
    try:
        found = json.loads((directory / _CHECKPOINT).read_bytes())
        return str(found["weights"]), {str(name): float(one) for name, one in found["pace"].items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise damaged(directory) from error


def _write(path: Path, content: Mapping[str, Any]) -> None:
    durable.write(path, (json.dumps(content, indent=2, sort_keys=True) + "\n").encode())
