"""Whether a value is what a schema says: of JSON Schema, that part which our own schemas use."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from goodbot_connectors.bridge.body import RefusedError

_WORDS = {
    "object": "an object", "array": "a list", "string": "a text", "number": "a number",
    "integer": "a whole number", "boolean": "true or false", "null": "null",
}  # fmt: skip


def check(value: Any, schema: Mapping[str, Any], where: str = "") -> None:
    """Raises RefusedError (422) that says what is wrong with which part."""
    if wrong := _wrong(value, schema, where):
        raise RefusedError(422, f"{wrong}.")


def _wrong(value: Any, schema: Mapping[str, Any], where: str) -> str:
    """What is wrong, in a sentence without its full stop; empty for nothing."""
    if "enum" in schema and value not in schema["enum"]:
        return f"{_named(where)} must be {_either([f'“{one}”' for one in schema['enum']])}"
    if "oneOf" in schema:
        return _of_several(value, schema["oneOf"], where)
    kinds = schema.get("type", ())
    kinds = (kinds,) if isinstance(kinds, str) else kinds
    if kinds and not any(_is(value, kind) for kind in kinds):
        return f"{_named(where)} must be {_either([_WORDS[kind] for kind in kinds])}"
    if isinstance(value, str):
        return _wrong_text(value, schema, where)
    if isinstance(value, (int, float)):
        low, high = schema.get("minimum"), schema.get("maximum")
        if (low is not None and value < low) or (high is not None and value > high):
            return f"{_named(where)} must lie between {low} and {high}"
    if isinstance(value, dict):
        return _wrong_object(cast("dict[str, Any]", value), schema, where)
    if isinstance(value, list):
        return _wrong_list(cast("list[Any]", value), schema, where)
    return ""


def _of_several(value: Any, schemas: Sequence[Mapping[str, Any]], where: str) -> str:
    """What that one says which the value is meant for, by its `kind` or its type; or what they are."""
    if isinstance(value, dict):
        return _of_kinds(cast("dict[str, Any]", value), schemas, where)
    told = [_wrong(value, one, where) for one in schemas]
    if "" in told:
        return ""
    for one, said in zip(schemas, told, strict=True):
        if _is(value, one["type"]):
            return said
    return f"{_named(where)} must be {_either([_WORDS[one['type']] for one in schemas])}"


def _of_kinds(value: dict[str, Any], schemas: Sequence[Mapping[str, Any]], where: str) -> str:
    """Objects say by their `kind` what they are; without one they are the first."""
    kinds = [one.get("properties", {}).get("kind", {}).get("enum", [None])[0] for one in schemas]
    kind = value.get("kind", kinds[0])
    if kind is not None and kind in kinds:
        return _wrong(value, schemas[kinds.index(kind)], where)
    if kinds == [None] * len(kinds):
        return f"{_named(where)} must be {_either([_WORDS[one['type']] for one in schemas])}"
    return f"`kind` must be {_either([f'“{one}”' for one in kinds])}"


def _named(where: str) -> str:
    return f"`{where}`" if where else "the body"


def _wrong_text(value: str, schema: Mapping[str, Any], where: str) -> str:
    if len(value) > (most := schema.get("maxLength", len(value))):
        return f"{_named(where)} is too long: at most {most} characters"
    if len(value) < schema.get("minLength", 0) or ("pattern" in schema and not value.strip()):
        return f"{_named(where)} must not be empty"
    return ""


def _wrong_object(value: dict[str, Any], schema: Mapping[str, Any], where: str) -> str:
    known: Mapping[str, Any] = schema.get("properties", {})
    for key in schema.get("required", ()):
        if key not in value:
            return f"{_named(where)} needs `{key}`"
    for key, inner in value.items():
        if key in known:
            if wrong := _wrong(inner, known[key], f"{where}.{key}" if where else key):
                return wrong
        elif schema.get("additionalProperties", True) is False:
            return f"`{key[:40]}` is not known here: {_either(list(known))}"
    several: Sequence[Mapping[str, Any]] = schema.get("anyOf", ())
    if several and not any(all(key in value for key in one["required"]) for one in several):
        wanted = [f"`{one['required'][0]}`" for one in several]
        return f"the body needs {_either(wanted)}"
    return ""


def _wrong_list(value: list[Any], schema: Mapping[str, Any], where: str) -> str:
    if len(value) < schema.get("minItems", 0):
        return f"`{where}` must not be empty"
    if (items := schema.get("items")) is not None:
        for number, inner in enumerate(value):
            if wrong := _wrong(inner, items, f"{where}[{number}]"):
                return wrong
    return ""


def _is(value: Any, kind: str) -> bool:
    if isinstance(value, bool):
        return kind == "boolean"
    match kind:
        case "object":
            return isinstance(value, dict)
        case "array":
            return isinstance(value, list)
        case "string":
            return isinstance(value, str)
        case "number":
            return isinstance(value, (int, float))
        case "integer":
            return isinstance(value, int) or (isinstance(value, float) and value.is_integer())
        case "null":
            return value is None
        case _:
            return False


def _either(words: Sequence[str]) -> str:
    *first, last = words
    return f"{', '.join(first)} or {last}" if first else last
