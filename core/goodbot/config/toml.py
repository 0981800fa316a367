# SPDX-License-Identifier: Apache-2.0
"""TOML tables → frozen dataclasses, with errors that name the line and the nearest key."""

from __future__ import annotations

import dataclasses
import re
import types
import typing
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from goodbot.base.errors import ConfigError
from goodbot.base.suggest import instead
from goodbot.base.worded import Worded, said_by

T = TypeVar("T")
_BACKSLASH = Worded("a backslash begins a sign in \"…\": write / in paths, or put them in '…'")
_WANTED: Mapping[Any, str] = {
    str: "{key} must be a text in quotes, not {value}",
    int: "{key} must be a whole number, not {value}",
    float: "{key} must be a number, not {value}",
    bool: "{key} must be true or false, not {value}",
}
_LIST = "{key} must be a list in [ ], not {value}"
_CONTROLS = frozenset(map(chr, (*range(32), 127)))
_SECRET = ("token", "secret", "password", "api_key", "apikey")


def read(path: Path) -> str:
    """The text of a config file. Raises FileNotFoundError, and ConfigError when it is no UTF-8.

    Windows' editors put a byte order mark before it, which is no part of the text.
    """
    try:
        return path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise
    except OSError as error:
        raise ConfigError(Worded("cannot be read: {why}", why=error.strerror), path=path) from error
    except UnicodeDecodeError as error:
        raise ConfigError(Worded("cannot be read: save it as UTF-8"), path=path) from error


def invalid(error: Exception, source: str, path: Path | None) -> ConfigError:
    """What to raise for a text that is no TOML."""
    said = re.search(r"\(at line (\d+),", str(error))
    line = source.splitlines()[int(said[1]) - 1 : int(said[1])] if said else []
    wrong = Worded("is not valid TOML: {why}", why=str(error))
    if any(re.search(r"=\s*\"[^\"]*\\", one) for one in line):
        wrong = Worded("{wrong}; {hint}", wrong=wrong, hint=_BACKSLASH)
    return ConfigError(wrong, path=path)


@dataclass(frozen=True)
class Where:
    """A section of a file, for error messages."""

    path: Path | None
    source: str
    section: str

    def error(self, key: str, message: str) -> ConfigError:
        return ConfigError(message, path=self.path, line=self._line(key))

    def unknown(self, key: str, known: list[str]) -> ConfigError:
        place = f"[{self.section}]" if self.section else ""
        platform = self.section.removeprefix("connectors.")
        if platform != self.section and key.lower().endswith(_SECRET):
            kept = (
                "tokens are not kept in the config: take {key} out, and type `goodbot connect {platform}`, "
                "which asks for it"
            )
            wrong = Worded(kept, key=repr(key), platform=platform)
        else:
            hint = instead(key, known, cutoff=0.5)
            wrong = Worded("unknown key {key}; {hint}", key=repr(key), hint=hint)
        return self.error(key, Worded("{place} {wrong}", place=place, wrong=wrong) if place else wrong)

    def _line(self, key: str) -> int | None:
        """The line where `key` is set; TOML's parser does not tell."""
        section = ""
        for number, line in enumerate(self.source.splitlines(), start=1):
            text = line.strip()
            if text.startswith("["):
                section = text.strip("[] ").split("]")[0]
                full = f"{self.section}.{key}" if self.section else key
                if section == full or section.startswith(full + "."):
                    return number
            elif section == self.section and text.split("=")[0].strip().strip("\"'") == key:
                return number
        return None


def section(cls: type[T], table: Mapping[str, Any], where: Where, also: Iterable[str] = ()) -> T:
    """One TOML table as a frozen dataclass; its field types are the schema."""
    hints = typing.get_type_hints(cls, include_extras=True)
    names = [f.name for f in dataclasses.fields(typing.cast("Any", cls))]
    values: dict[str, Any] = {}
    for key, value in table.items():
        if key not in names:
            raise where.unknown(key, [*names, *also])
        values[key] = _value(value, hints[key], where, key)
    try:
        return cls(**values)
    except ValueError as error:
        raise where.error(next(iter(table), ""), said_by(error)) from error


def _value(value: Any, hint: Any, where: Where, key: str) -> Any:
    origin = typing.get_origin(hint)
    if origin in (typing.Annotated, typing.Literal):
        return _checked(value, hint, where, key)
    if _is_section(hint) and isinstance(value, dict):
        inner = Where(where.path, where.source, f"{where.section}.{key}")
        return section(hint, typing.cast("dict[str, Any]", value), inner)
    if origin in (types.UnionType, typing.Union):
        hint = next(arg for arg in typing.get_args(hint) if arg is not type(None))
        origin = typing.get_origin(hint)
    if origin is tuple and isinstance(value, list):
        item = typing.get_args(hint)[0]
        items = typing.cast("list[Any]", value)
        # Platform ids are often numbers; a number in a list of texts is taken as its exact digits.
        return tuple(
            str(entry) if item is str and type(entry) is int else _value(entry, item, where, key)
            for entry in items
        )
    if origin in (dict, Mapping) or (isinstance(origin, type) and issubclass(origin, Mapping)):
        if isinstance(value, dict):
            return _table(typing.cast("dict[str, Any]", value), hint, where, key)
    elif hint is float and type(value) in (int, float):
        return float(value)
    elif isinstance(hint, type) and type(value) is hint:
        if (
            "path" in key and isinstance(value, str) and not _CONTROLS.isdisjoint(value)
        ):  # "C:\new": a new line
            wrong = Worded("{key} holds a sign that no path has: {hint}", key=key, hint=_BACKSLASH)
            raise where.error(key, wrong)
        return value
    wanted = _WANTED.get(hint, _LIST if origin is tuple else "{key} must be a section, not {value}")
    raise where.error(key, Worded(wanted, key=key, value=repr(value)))


def _table(value: dict[str, Any], hint: Any, where: Where, key: str) -> dict[str, Any]:
    """Values by any name; where each is a section, it is read as one."""
    kind = typing.get_args(hint)[1]
    if not _is_section(kind):
        return value
    inner = Where(where.path, where.source, f"{where.section}.{key}")
    return {name: _value(table, kind, inner, name) for name, table in value.items()}


def _checked(value: Any, hint: Any, where: Where, key: str) -> Any:
    """A value that is one of some words, or fits the checks beside its type (`goodbot.base.checks`)."""
    if typing.get_origin(hint) is typing.Literal:
        words = typing.get_args(hint)
        if value in words:
            return value
        *others, last = (f'"{word}"' for word in words)
        wrong = Worded("{key} must be {others} or {last}", key=key, others=", ".join(others), last=last)
        raise where.error(key, wrong)
    kind, *checks = typing.get_args(hint)
    value = _value(value, kind, where, key)
    try:
        for check in checks:
            check(key, value)
    except ValueError as error:
        raise where.error(key, said_by(error)) from error
    return value


def _is_section(hint: Any) -> bool:
    return dataclasses.is_dataclass(hint)
