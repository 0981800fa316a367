# SPDX-License-Identifier: Apache-2.0
"""Reading JSON that may hold anything: a field of another type counts as absent."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, cast

Json = Mapping[str, Any]


def as_json(value: object) -> Json:
    """`value` if it is an object, else an empty one."""
    return cast("Json", value) if isinstance(value, dict) else {}


def sub(json: Json, *names: str) -> Json:
    """The object in a field, or in a field of that one's, and so on."""
    for name in names:
        json = as_json(json.get(name))
    return json


def items(json: Json, name: str) -> Iterator[Json]:
    """The objects of the list in a field."""
    value = json.get(name)
    if isinstance(value, list):
        for item in cast("list[object]", value):
            if isinstance(item, dict):
                yield cast("Json", item)


def string(json: Json, name: str) -> str:
    """The text in a field."""
    value = json.get(name)
    return value if isinstance(value, str) else ""


def strings(json: Json, name: str) -> Iterator[str]:
    """The texts of the list in a field."""
    value = json.get(name)
    if isinstance(value, list):
        yield from (item for item in cast("list[object]", value) if isinstance(item, str))
