# SPDX-License-Identifier: Apache-2.0
"""What a connector has in memory: who was forgotten is to stand nowhere there."""

from __future__ import annotations

import dataclasses
from collections import deque
from collections.abc import Mapping
from typing import Any

_NOT_OURS = ("host", "_host")
_TOLD = ("_left",)
"""Where somebody was, for as long as this process lives: they are still told that they are forgotten."""


def holds(connector: Any, word: str) -> list[str]:
    """The places that have `word` in a text, or in a key: the attributes that lead there."""
    found, seen, left = list[str](), set[int](), [("", connector)]
    while left:
        name, one = left.pop()
        if isinstance(one, str):
            found += [name] if word in one else []
        elif id(one) not in seen:
            seen.add(id(one))
            left += [(f"{name}{step}", part) for step, part in _within(one)]
    return found


def _within(one: Any) -> list[tuple[str, Any]]:
    if isinstance(one, Mapping):
        return [("[]", part) for pair in one.items() for part in pair] + _attributes(one)
    if isinstance(one, (list, tuple, set, frozenset, deque)):
        return [("[]", part) for part in one]
    return _attributes(one)


def _attributes(one: Any) -> list[tuple[str, Any]]:
    """Of what is the connector's or an event's: a library's and the loop's own things are not walked."""
    if not type(one).__module__.startswith(("goodbot_connectors.", "goodbot.api.")):
        return []
    names = [*vars(one)] if hasattr(one, "__dict__") else []
    if dataclasses.is_dataclass(one):
        names += [field.name for field in dataclasses.fields(one)]
    kept = [name for name in names if name not in (*_NOT_OURS, *_TOLD)]
    return [(f".{name}", getattr(one, name, None)) for name in kept]
