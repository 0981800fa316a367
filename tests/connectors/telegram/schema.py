# SPDX-License-Identifier: Apache-2.0
"""Telegram's own types as JSON Schema, from the specification that lies beside the project."""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import Any

import jsonschema

from tests.support import missing

SPECS = Path(__file__).parents[3].parent / "shared" / "specs"
_BASIC = {"Integer": "integer", "String": "string", "Boolean": "boolean", "Float": "number"}


@functools.cache
def _spec() -> dict[str, Any]:
    path = SPECS / "telegram-bot-api.json"
    if not path.exists():
        missing("there is no ../shared/specs/telegram-bot-api.json beside the project")
    return json.loads(path.read_text(encoding="utf-8"))


@functools.cache
def _definitions() -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, kind in _spec()["types"].items():
        if "subtypes" in kind:
            found[name] = {"anyOf": [_type(subtype) for subtype in kind["subtypes"]]}
        else:
            found[name] = _object(kind.get("fields", []))
    return found


@functools.cache
def _validator(kind: str, method: str) -> jsonschema.Draft202012Validator:
    schema = _type(kind) if kind else _object(_spec()["methods"][method].get("fields", []))
    return jsonschema.Draft202012Validator({**schema, "$defs": _definitions()})


def check_type(name: str, value: object) -> None:
    """Fail unless `value` is what Telegram calls a `name`."""
    _validator(name, "").validate(value)


def check_call(method: str, params: dict[str, Any]) -> None:
    """Fail unless these are parameters that a Bot API method takes."""
    _validator("", method).validate(params)


def check_result(method: str, result: object) -> None:
    """Fail unless this is what a Bot API method returns."""
    schema = _any_of(_spec()["methods"][method]["returns"])
    jsonschema.Draft202012Validator({**schema, "$defs": _definitions()}).validate(result)


def specified() -> bool:
    """Whether the specification lies beside the project."""
    return (SPECS / "telegram-bot-api.json").exists()


def standard_emoji() -> str:
    """The text that lists every emoji of Telegram's standard reaction set."""
    return " ".join(field["description"] for field in _spec()["types"]["ReactionTypeEmoji"]["fields"])


def update_kinds() -> list[str]:
    """What an `Update` can hold."""
    return [field["name"] for field in _spec()["types"]["Update"]["fields"][1:]]


def _object(fields: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {field["name"]: _any_of(field["types"]) for field in fields},
        "required": [field["name"] for field in fields if field["required"]],
        "additionalProperties": False,
    }


def _any_of(types: list[str]) -> dict[str, Any]:
    return _type(types[0]) if len(types) == 1 else {"anyOf": [_type(name) for name in types]}


def _type(name: str) -> dict[str, Any]:
    if name.startswith("Array of "):
        return {"type": "array", "items": _type(name.removeprefix("Array of "))}
    return {"type": _BASIC[name]} if name in _BASIC else {"$ref": f"#/$defs/{name}"}
