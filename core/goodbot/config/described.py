# SPDX-License-Identifier: Apache-2.0
"""What can be set in a section of the config: its dataclass says it, with the words below each field."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import textwrap
import types
import typing
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import Any

KINDS = {bool: "switch", int: "whole", float: "number", str: "text"}
"""What a setting's value is; others are a `choice`, `texts` (a list), or a `section`."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Described:
    """One setting. `key` is `section.name`."""

    key: str
    told: str
    kind: str
    default: Any
    choices: tuple[str, ...] = ()


def described(section: str, cls: type[Any]) -> Iterator[Described]:
    """Every setting of a section, also of those within it, in the order in which they are written."""
    hints, told = typing.get_type_hints(cls, include_extras=True), docstrings(cls)
    for field in dataclasses.fields(cls):
        key, hint = f"{section}.{field.name}", _bare(hints[field.name])
        if dataclasses.is_dataclass(hint):
            yield from described(key, typing.cast("type[Any]", hint))
            continue
        default = field.default
        if field.default_factory is not dataclasses.MISSING:
            default = field.default_factory()
        choices = typing.get_args(hint) if typing.get_origin(hint) is typing.Literal else ()
        kind = "choice" if choices else _kind(hint)
        if default is dataclasses.MISSING:
            default = None
        yield Described(key=key, told=told.get(field.name, ""), kind=kind, default=default, choices=choices)


@cache
def docstrings(cls: type[Any]) -> Mapping[str, str]:
    """What stands below each attribute of a class and of those that it extends, on one line."""
    told: dict[str, str] = {}
    for one in reversed(cls.__mro__):
        try:
            [body] = ast.parse(textwrap.dedent(inspect.getsource(one))).body
        except (OSError, TypeError, SyntaxError):
            continue  # made while it ran, or of another language
        told |= dict(_below(body.body if isinstance(body, ast.ClassDef) else []))
    return told


def _below(lines: list[ast.stmt]) -> Iterator[tuple[str, str]]:
    for before, after in pairwise(lines):
        match before, after:
            case (
                ast.AnnAssign(target=ast.Name(id=name)) | ast.Assign(targets=[ast.Name(id=name)]),
                ast.Expr(value=ast.Constant(value=str(text))),
            ):
                yield name, " ".join(text.split())
            case _:
                pass


def _bare(hint: Any) -> Any:
    """The type without its checks, and without None."""
    if typing.get_origin(hint) is typing.Annotated:
        return _bare(typing.get_args(hint)[0])
    if typing.get_origin(hint) in (types.UnionType, typing.Union):
        return _bare(next(one for one in typing.get_args(hint) if one is not type(None)))
    return hint


def _kind(hint: Any) -> str:
    origin = typing.get_origin(hint)
    if origin is tuple:
        return "texts"
    return KINDS.get(hint, "section")
