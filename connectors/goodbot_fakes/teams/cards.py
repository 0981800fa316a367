# SPDX-License-Identifier: Apache-2.0
"""Adaptive Cards as a person meets them: what they read, press and fill in."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

Json = dict[str, Any]
_NESTED = ("body", "items", "columns", "actions", "inlines", "card", "rows", "cells", "inlineAction")


def elements(node: Any) -> Iterator[Json]:
    """Every element of a card, in the order in which it is read; what is hidden is not there."""
    if isinstance(node, list):
        for part in cast("list[Any]", node):
            yield from elements(part)
    elif isinstance(node, dict):
        element = cast("Json", node)
        if element.get("isVisible", True) is not False:
            yield element
            for name in _NESTED:
                yield from elements(element.get(name))


def text(card: Json) -> str:
    """What is written on a card, a line a block."""
    found = [e["text"] for e in elements(card) if e.get("type") in ("TextBlock", "TextRun")]
    return "\n".join(found)


def actions(card: Json) -> list[Json]:
    """The buttons that come back to the bot."""
    return [e for e in elements(card) if e.get("type") in ("Action.Submit", "Action.Execute")]


def inputs(card: Json) -> list[Json]:
    """The fields to fill in."""
    return [e for e in elements(card) if str(e.get("type")).startswith("Input.")]


def filled(card: Json, given: Json) -> Json:
    """What the inputs of a card come to when somebody fills in some; each has a value then."""
    found = {field["id"]: field.get("value", "") for field in inputs(card)}
    assert given.keys() <= found.keys(), f"the card has the inputs {sorted(found)}"
    missing = [f["id"] for f in inputs(card) if f.get("isRequired") and not {**found, **given}[f["id"]]]
    assert not missing, f"Teams sends no card whose {missing} are empty"
    return found | given
