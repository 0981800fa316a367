# SPDX-License-Identifier: Apache-2.0
"""Parts of a JSON object that may be missing."""

from __future__ import annotations

from typing import Any

Json = dict[str, Any]


def sub(json: Json, *names: str) -> Json:
    """The object within objects; empty where one is missing."""
    for name in names:
        found: Json | None = json.get(name)
        json = found or {}
    return json


def items(json: Json, name: str) -> list[Json]:
    """A list of objects; empty where it is missing."""
    found: list[Json] | None = json.get(name)
    return found or []
