# SPDX-License-Identifier: Apache-2.0
"""Whether a value is what a schema says: of JSON Schema, that part which our own schemas use.

A schema is made into functions once; each request then only calls them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from goodbot_connectors.kit.bridge.body import HttpError

_WORDS = {
    "object": "an object",
    "array": "a list",
    "string": "a text",
    "number": "a number",
    "integer": "a whole number",
    "boolean": "true or false",
    "null": "null",
}
_CLASSES: Mapping[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "number": (int, float),
    "integer": (int,),
    "boolean": (bool,),
    "null": (type(None),),
}


class _Wrong(NamedTuple):
    """What is wrong with a part of a value, said without its full stop."""

    says: str
    where: str = ""
    """The part; empty for the value itself."""
    named: bool = True
    """The sentence begins with the part's name."""

    def under(self, part: str) -> _Wrong:
        """The same, told of what the value is a part of."""
        dot = "." if self.where and not self.where.startswith("[") else ""
        return self._replace(where=f"{part}{dot}{self.where}")

    def __str__(self) -> str:
        named = f"`{self.where}`" if self.where else "the body"
        return f"{named} {self.says}" if self.named else self.says


_Find = Callable[[Any], _Wrong | None]


def checker(schema: Mapping[str, Any]) -> Callable[[Any], None]:
    """A function of a parsed body; it raises HttpError (422) that says what is wrong with which part."""
    find = _made(schema)

    def check(value: Any) -> None:
        if (wrong := find(value)) is not None:
            raise HttpError(422, f"{wrong}.")

    return check


def _made(schema: Mapping[str, Any]) -> _Find:
    """Finds the first thing that is wrong with a value, None for nothing."""
    if "enum" in schema:
        return _one_of(schema["enum"])
    if "oneOf" in schema:
        return _of_several(schema["oneOf"])
    kinds = schema.get("type", ())
    kinds = (kinds,) if isinstance(kinds, str) else kinds
    classes = {cls for kind in kinds for cls in _CLASSES[kind]}
    whole = "integer" in kinds
    number = _number(schema)
    inner: Mapping[type, _Find] = {
        str: _text(schema),
        int: number,
        float: number,
        dict: _object(schema),
        list: _list(schema),
    }
    other = _Wrong(f"must be {_either([_WORDS[kind] for kind in kinds])}") if kinds else None

    def find(value: Any) -> _Wrong | None:
        cls = value.__class__
        if kinds and cls not in classes and not (whole and cls is float and value.is_integer()):
            return other
        return found(value) if (found := inner.get(cls)) else None

    return find


def _one_of(values: Sequence[Any]) -> _Find:
    wrong = _Wrong(f"must be {_either([f'“{one}”' for one in values])}")
    return lambda value: None if value in values else wrong


def _of_several(schemas: Sequence[Mapping[str, Any]]) -> _Find:
    """What that one says which the value is meant for, by its `kind` or its type; or what they are."""
    finds = [_made(one) for one in schemas]
    types = [set(_CLASSES[one["type"]]) for one in schemas]
    neither = _Wrong(f"must be {_either([_WORDS[one['type']] for one in schemas])}")
    of_kinds = _of_kinds(schemas, finds) if all(dict in some for some in types) else None

    def find(value: Any) -> _Wrong | None:
        cls = value.__class__
        if of_kinds is not None and cls is dict:
            return of_kinds(value)
        for classes, one in zip(types, finds, strict=True):
            if cls in classes:
                return one(value)
        return neither

    return find


def _of_kinds(schemas: Sequence[Mapping[str, Any]], finds: Sequence[_Find]) -> _Find:
    """Objects say by their `kind` what they are; without one they are the first."""
    kinds = [one["properties"]["kind"]["enum"][0] for one in schemas]
    by_kind = dict(zip(kinds, finds, strict=True))
    wrong = _Wrong(f"`kind` must be {_either([f'“{one}”' for one in kinds])}", named=False)

    def find(value: dict[str, Any]) -> _Wrong | None:
        kind = value.get("kind", kinds[0])
        one = by_kind.get(kind) if isinstance(kind, str) else None
        return wrong if one is None else one(value)

    return find


def _text(schema: Mapping[str, Any]) -> _Find:
    least, most = schema.get("minLength", 0), schema.get("maxLength")
    says_something = "pattern" in schema
    long = _Wrong(f"is too long: at most {most} characters")
    empty = _Wrong("must not be empty")

    def find(value: str) -> _Wrong | None:
        if most is not None and len(value) > most:
            return long
        if len(value) < least or (says_something and not value.strip()):
            return empty
        return None

    return find


def _number(schema: Mapping[str, Any]) -> _Find:
    low, high = schema.get("minimum"), schema.get("maximum")
    wrong = _Wrong(f"must lie between {low} and {high}")

    def find(value: float) -> _Wrong | None:
        below, above = low is not None and value < low, high is not None and value > high
        return wrong if below or above else None

    return find


def _object(schema: Mapping[str, Any]) -> _Find:
    known = {key: _made(one) for key, one in schema.get("properties", {}).items()}
    required = tuple(schema.get("required", ()))
    closed = schema.get("additionalProperties", True) is False
    several = [one["required"] for one in schema.get("anyOf", ())]

    def find(value: dict[str, Any]) -> _Wrong | None:
        for key in required:
            if key not in value:
                return _Wrong(f"needs `{key}`")
        for key, inner in value.items():
            if (look := known.get(key)) is not None:
                if (wrong := look(inner)) is not None:
                    return wrong.under(key)
            elif closed:
                return _Wrong(f"`{key[:40]}` is not known here: {_either(list(known))}", named=False)
        if several and not any(all(key in value for key in one) for one in several):
            wanted = [f"`{one[0]}`" for one in several]
            return _Wrong(f"the body needs {_either(wanted)}", named=False)
        return None

    return find


def _list(schema: Mapping[str, Any]) -> _Find:
    least = schema.get("minItems", 0)
    items = _made(schema["items"]) if "items" in schema else None

    def find(value: list[Any]) -> _Wrong | None:
        if len(value) < least:
            return _Wrong("must not be empty")
        for number, inner in enumerate(value if items else ()):
            if items and (wrong := items(inner)) is not None:
                return wrong.under(f"[{number}]")
        return None

    return find


def _either(words: Sequence[str]) -> str:
    *first, last = words
    return f"{', '.join(first)} or {last}" if first else last
