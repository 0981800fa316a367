# SPDX-License-Identifier: Apache-2.0
"""A statement of the store, which is in SQLite's words, in those of PostgreSQL.

sqlglot reads it and writes it down again; in between stand the rules of `rules`. They are told from the
statement alone, never from what people said: that goes beside it, as values. So each statement is
translated once.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from goodbot.store.postgres import rules
from goodbot.store.postgres.rules import MARK, Computed, Tables

_VALUES = re.compile(r"'(?:[^']|'')*'| INDEXED BY [a-z_]+|\?|:[a-z_]+")
"""What is looked at of a statement before it is read: strings stay, the others are values, or go."""
_MARKED = re.compile(rf"\b{MARK}([0-9]+)\b")
_OR = re.compile(r"INSERT OR (IGNORE|REPLACE) INTO ([a-z_]+)")
_TYPES = {str: "text", int: "bigint", float: "double precision", bytes: "bytea"}
_PLAIN = ("BEGIN", "COMMIT", "ROLLBACK", "SAVEPOINT", "RELEASE")


@dataclass(frozen=True, slots=True)
class Translated:
    """A statement with marks in the places of its values."""

    sql: str
    values: tuple[int | str | Computed, ...]
    """By number of the mark: which of the parameters, by place or by name, or what is computed of them."""
    order: tuple[int, ...]
    """The marks as they stand in the statement, each once."""


def translate(sql: str, tables: Tables) -> Translated:
    """Put a statement into PostgreSQL's words. Raises what sqlglot does of what it cannot read."""
    marked, names = _mark(sql)
    conflict = ""
    if found := _OR.match(marked):
        marked = _OR.sub(f"INSERT INTO {found[2]}", marked, count=1)
        conflict = rules.conflict(found[1], tables[found[2]])
    written, computed = rules.written(marked, len(names))
    order = dict.fromkeys(int(found) for found in _MARKED.findall(written))
    return Translated(f"{written}{conflict}", (*names, *computed), tuple(order))


def _mark(sql: str) -> tuple[str, list[int | str]]:
    """The statement with names in the places of its values, and what stands in each."""
    names: list[int | str] = []

    def mark(found: re.Match[str]) -> str:
        said = found[0]
        if said.startswith("'"):
            return said
        if said.startswith(" "):  # the planner finds its index itself
            return ""
        name = sum(isinstance(one, int) for one in names) if said == "?" else said[1:]
        if name not in names:
            names.append(name)
        return f"{MARK}{names.index(name)}"

    return _VALUES.sub(mark, sql), names


def is_plain(sql: str) -> bool:
    """Whether a statement is the same in both, and has no values."""
    return sql.startswith(_PLAIN)


@functools.lru_cache(4096)
def bound(translated: Translated, kinds: tuple[type | None, ...]) -> str:
    """The statement for values of these types; None for one that is NULL."""
    places: dict[int, int] = {}

    def place(found: re.Match[str]) -> str:
        number = int(found[1])
        kind = kinds[number]
        if kind is None:
            return "NULL"
        return f"${places.setdefault(number, len(places) + 1)}::{_TYPES[kind]}"

    return _MARKED.sub(place, translated.sql)


def used(translated: Translated, values: Sequence[Any]) -> list[Any]:
    """Those of the values that `bound` has left a place for, in its order."""
    return [values[number] for number in translated.order if values[number] is not None]


def plain(value: Any) -> Any:
    """A value as PostgreSQL takes it: truth is a number as in SQLite, and no text holds a NUL there."""
    match value:
        case None | bytes() | float():
            return value
        case int():
            return int(value)
        case str():
            text = str.__str__(value)
            return text.replace("\0", "\u2400") if "\0" in text else text
        case _:
            raise TypeError(f"no value for a database: {type(value).__name__}")


def kind(value: Any) -> type | None:
    """The type of what `plain` gives."""
    return None if value is None else next(one for one in _TYPES if isinstance(value, one))


def given(translated: Translated, parameters: Iterable[Any] | Mapping[str, Any]) -> list[Any]:
    """The values of a statement, in the order of its marks, without what is computed."""
    if isinstance(parameters, Mapping):
        return [plain(parameters[one]) for one in translated.values if isinstance(one, str)]
    listed = list(parameters)
    return [plain(listed[one]) for one in translated.values if isinstance(one, int)]
