"""Reading JSON that may hold anything: a field of another type counts as absent."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, cast

Json = Mapping[str, Any]


def as_json(value: object) -> Json:
    """`value` if it is an object, else an empty one."""
    return cast("Json", value) if isinstance(value, dict) else {}


def sub(json: Json, name: str) -> Json:
    """The object in a field."""
    return as_json(json.get(name))


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


def integer(json: Json, name: str) -> int | None:
    """The whole number in a field; Telegram's have at most 52 significant bits."""
    value = json.get(name)
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**53:
        return value
    return None
