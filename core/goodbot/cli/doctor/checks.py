# SPDX-License-Identifier: Apache-2.0
"""How a probe says what it found, and the few words that several probes share."""

from __future__ import annotations

from pathlib import Path

from goodbot.api.setup import Check, fail
from goodbot.api.texts import reworded
from goodbot.api.texts.terminal import here
from goodbot.base.errors import GoodbotError


def failed(part: str, error: GoodbotError, fix: str = "") -> Check:
    """An error of goodbot's own, with its exit code."""
    return fail(part, reworded(error, here()), fix, exit_code=error.exit_code)


def short(path: Path) -> str:
    """A path as people write it."""
    try:
        return f"~/{path.relative_to(Path.home())}"
    except (ValueError, RuntimeError):
        return str(path)


def size(count: float) -> str:
    """Bytes for people: `1.4 GB`."""
    for unit in ("bytes", "kB", "MB", "GB"):
        if abs(count) < 1000:
            return f"{count:.0f} {unit}" if count >= 10 or unit == "bytes" else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:.1f} TB"
