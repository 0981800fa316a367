# SPDX-License-Identifier: Apache-2.0
"""An answer of the inbox as a page has it."""

from __future__ import annotations

from typing import Any

from goodbot.api.events import Waiting


def shown(waiting: Waiting) -> dict[str, Any]:
    """One answer of the inbox."""
    return {
        "turn": waiting.turn,
        "connector": waiting.connector,
        "kind": waiting.kind.value,
        "question": waiting.question,
        "answer": waiting.answer,
        "at": int(waiting.created_at * 1000),
        "version": waiting.version,
        "said": said(waiting),
    }


def said(waiting: Waiting) -> dict[str, int]:
    """Label and stars as a page says them: `thumb` is 1 or -1, `stars` 1 to 5."""
    found: dict[str, int] = {}
    if waiting.stars is not None:
        found["stars"] = round((waiting.stars + 1) * 2) + 1
    if waiting.label is not None:
        found["thumb"] = 1 if waiting.label > 0 else -1
    return found
