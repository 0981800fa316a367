# SPDX-License-Identifier: Apache-2.0
"""Changing the config file for a person: their comments and their order stay.

A change is checked as a whole before it replaces the file, and it replaces it in one step.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import tomlkit
from tomlkit.exceptions import TOMLKitError
from tomlkit.items import Array

from goodbot import config
from goodbot.base import durable
from goodbot.base.errors import ConfigError
from goodbot.base.worded import Worded
from goodbot.config.lock import changing, prepare_home
from goodbot.config.toml import invalid, read


class ConfigFile:
    """One config file, edited in memory until `save`."""

    def __init__(self, home: Path, path: Path | None = None, *, template: str = "") -> None:
        """Read `path`, by default `home/config.toml`, which need not exist. Raises ConfigError.

        `template` is what a new file begins as, with the comments that it shall have.
        """
        self.home = home
        self.path = path or home / "config.toml"
        try:
            self.before: str | None = read(self.path)
        except FileNotFoundError:
            self.before = None
        try:
            self._document = tomlkit.parse(template if self.before is None else self.before)
        except TOMLKitError as error:
            raise invalid(error, self.before or "", self.path) from error

    @property
    def exists(self) -> bool:
        """Whether there was a file."""
        return self.before is not None

    def get(self, key: str) -> Any:
        """The value at `section.key`, None if it is not set."""
        value = self._item(key)
        return value.unwrap() if hasattr(value, "unwrap") else value

    def explained(self, key: str) -> bool:
        """Whether comments stand within the list at `section.key`: a new list would not have them."""
        item = self._item(key)
        return isinstance(item, Array) and item.as_string().count("#") > sum(
            str(one).count("#") for one in item.unwrap()
        )

    def _item(self, key: str) -> Any:
        value: Any = self._document
        for name in key.split("."):
            if not isinstance(value, Mapping) or name not in value:
                return None
            value = cast("Any", value[name])
        return value

    def set(self, key: str, value: Any, *, comment: str = "") -> None:
        """Set `section.key`; the section is made if it is not there. `comment` ends a new line."""
        *sections, name = key.split(".")
        table = self._table(sections)
        if name in table:
            table[name] = value
            return
        item = cast("Any", tomlkit.item(value))
        if comment:
            item.comment(comment)
        table.add(name, item)

    def remove(self, key: str) -> bool:
        """Unset a key or a section; False if it was not there."""
        *sections, name = key.split(".")
        table: Any = self._document
        for section in sections:
            if section not in table:
                return False
            table = table[section]
        if name not in table:
            return False
        del table[name]
        return True

    def text(self) -> str:
        """The file as it would be saved."""
        return tomlkit.dumps(self._document)  # pyright: ignore[reportUnknownMemberType]

    def save(self) -> config.Config:
        """Check and write; returns the new config. Raises ConfigError, and then nothing changed.

        What somebody else has written since it was read is not written over: that is an error.
        """
        text = self.text()
        parsed = config.parse(text, home=self.home, path=self.path)
        if self.path.parent == self.home:
            prepare_home(self.home)
        self._exchange(text)
        return parsed

    def restore(self, before: str | None) -> None:
        """Put the file back as it was before `save`; None: there was none. Raises ConfigError."""
        self._exchange(before)

    def _exchange(self, text: str | None) -> None:
        """Write what it shall be, if it still is what we know; None: no file."""
        try:
            with changing(self.path.parent):
                try:
                    now = read(self.path)
                except FileNotFoundError:
                    now = None
                if now != self.before:
                    changed = Worded("was changed meanwhile, so it was left as it is: try again")
                    raise ConfigError(changed, path=self.path)
                if text is None:
                    self.path.unlink(missing_ok=True)
                else:
                    self._write(text)
        except OSError as error:
            raise ConfigError(
                Worded("cannot be written: {why}", why=error.strerror), path=self.path
            ) from error
        self.before = text

    def _write(self, text: str) -> None:
        # A link, to a directory of dotfiles say, stays one.
        durable.replace(self.path.resolve(), text.encode())

    def _table(self, sections: list[str]) -> Any:
        table: Any = self._document
        for number, section in enumerate(sections):
            if section not in table:
                # [connectors] holds only sections of its own and needs no line.
                inner = number + 1 < len(sections)
                table.add(section, tomlkit.table(is_super_table=True if inner else None))
            found: Any = table[section]
            if not isinstance(found, Mapping):
                raise ConfigError(Worded("{name} must be a section", name=section), path=self.path)
            table = cast("Any", found)
        return table
