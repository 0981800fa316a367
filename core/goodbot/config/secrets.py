# SPDX-License-Identifier: Apache-2.0
"""Tokens: from the environment, the keyring or a 0600 file; never in a `repr`, log or traceback."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeVar

from goodbot.base import durable
from goodbot.base.deadline import within
from goodbot.base.errors import ConfigError, MissingExtraError
from goodbot.base.worded import Worded
from goodbot.config.lock import changing

T = TypeVar("T")

FILE = "secrets.env"
"""In the state directory: `NAME=value` lines, readable by the owner alone."""
_SERVICE = "goodbot"
_KEYRING_SECONDS = 60.0
"""It may ask its person for a password first."""


@dataclass(frozen=True, slots=True, repr=False)
class Secret:
    """A value that prints as `***`. `reveal()` is the only way to its text."""

    _value: str

    def reveal(self) -> str:
        return self._value

    def __repr__(self) -> str:
        return "Secret(***)"

    def __str__(self) -> str:
        return "***"

    def __bool__(self) -> bool:
        return bool(self._value)


class Secrets:
    """The secrets that one plugin asked for by name, and no others."""

    def __init__(self, names: tuple[str, ...], environ: Mapping[str, str] | None = None) -> None:
        source = os.environ if environ is None else environ
        self._values = {name: Secret(source.get(name, "")) for name in names}

    def get(self, name: str) -> Secret:
        """The secret, falsy when it is not set. Asking for an undeclared name is a KeyError."""
        return self._values[name]

    def missing(self) -> tuple[str, ...]:
        """The declared names that are not set."""
        return tuple(name for name, value in self._values.items() if not value)


class SecretStore:
    """Where a person's tokens are kept. The environment wins, then the keyring, then the file."""

    def __init__(self, home: Path) -> None:
        self.path = home / FILE
        self._user = str(home)
        """One entry a state directory in the keyring."""

    def environment(self, names: Iterable[str]) -> dict[str, str]:
        """Our own environment, with the stored values of `names` where it has none.

        Raises ConfigError for a file that others can read or that is no list of NAME=value.
        """
        merged = dict(os.environ)
        stored: dict[str, str] | None = None
        for name in names:
            if merged.get(name):
                continue
            stored = self._read() if stored is None else stored
            if value := self._keyring_get(name) or stored.get(name, ""):
                merged[name] = value
        return merged

    def where(self, name: str) -> str:
        """`environment`, `keyring`, `file`, or empty when it is not set. Raises ConfigError."""
        if os.environ.get(name):
            return "environment"
        if self._keyring_get(name):
            return "keyring"
        return "file" if self._read().get(name) else ""

    def stored(self, name: str) -> bool:
        """Whether it is kept somewhere that outlives this shell. Raises ConfigError."""
        return bool(self._keyring_get(name) or self._read().get(name))

    def set(self, name: str, value: str, *, keyring: bool = False) -> None:
        """Keep a value, in one place only. Raises ConfigError, MissingExtraError."""
        if not value.isprintable() or value != value.strip():
            odd = Worded("{name} holds characters that no token has: copy it again", name=name)
            raise ConfigError(odd)
        if keyring:
            keeper = _require_keyring()
            _limited(lambda: keeper.set_password(_SERVICE, self._key(name), value))
            self._change(name, "")
        else:
            self._change(name, value)

    def delete(self, name: str) -> bool:
        """Forget a value wherever it is kept; False if it was not."""
        found = self._change(name, "")
        return self.delete_from_keyring(name) or found

    def in_keyring(self, name: str) -> bool:
        """Whether the keyring has it, wherever else it is."""
        return bool(self._keyring_get(name))

    def delete_from_keyring(self, name: str) -> bool:
        """Take it out of the keyring alone; False if it was not there."""
        if not self.in_keyring(name):
            return False
        keeper = _require_keyring()
        _limited(lambda: keeper.delete_password(_SERVICE, self._key(name)))
        return True

    def _key(self, name: str) -> str:
        return f"{name}@{self._user}"

    def _keyring_get(self, name: str) -> str:
        if not keyring_usable():
            return ""
        try:
            keeper = _require_keyring()
            return _limited(lambda: keeper.get_password(_SERVICE, self._key(name))) or ""
        except ConfigError:
            raise
        except Exception:  # locked, or its daemon is gone: the library has no common error
            return ""

    def _read(self) -> dict[str, str]:
        try:
            descriptor = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise ConfigError(Worded("cannot be read: {why}", why=error.strerror), path=self.path) from error
        with os.fdopen(descriptor, encoding="utf-8-sig", errors="replace") as file:
            info = os.fstat(file.fileno())
            if info.st_uid != os.geteuid() or stat.S_IMODE(info.st_mode) & 0o077:
                seen = Worded("others can read the tokens in it: chmod 600 {path}", path=self.path)
                raise ConfigError(seen, path=self.path)
            return dict(self._line(n, text) for n, text in enumerate(file, 1) if _matters(text))

    def _line(self, number: int, text: str) -> tuple[str, str]:
        name, equals, value = text.strip().partition("=")
        if not equals or not name.isidentifier():
            raise ConfigError(Worded("write one NAME=value a line"), path=self.path, line=number)
        return name, value.strip().strip("\"'")

    def _change(self, name: str, value: str) -> bool:
        """Set a line of the file, or take it out where `value` is empty; whether it was there."""
        if not value and not self.path.exists():
            return False
        with changing(self.path.parent):
            stored = self._read()
            found = stored.pop(name, None) is not None
            if value or found:
                self._write({**stored, name: value} if value else stored)
            return found

    def _write(self, values: Mapping[str, str]) -> None:
        if not values:
            self.path.unlink(missing_ok=True)
            return
        head = "# Tokens of goodbot's connectors. Keep this file to yourself.\n"
        lines = (f"{name}={value}\n" for name, value in sorted(values.items()))
        durable.replace(self.path, "".join([head, *lines]).encode())


def keyring_usable() -> bool:
    """Whether the keyring extra is installed and this session has a keyring to speak to."""
    if find_spec("keyring") is None:
        return False
    try:
        backend = import_module("keyring").get_keyring()
    except Exception:  # a broken desktop session
        return False
    return float(getattr(backend, "priority", 0)) >= 1


def from_keyring(name: str) -> str:
    """What the keyring has under a name that is no state directory's own; empty: nothing.

    Raises ConfigError where there is none to ask.
    """
    keeper = _usable_keyring()
    try:
        return _limited(lambda: keeper.get_password(_SERVICE, name)) or ""
    except ConfigError:
        raise
    except Exception as error:  # locked, or its daemon is gone: the library has no common error
        shut = Worded("the keyring does not give it: unlock it ({why})", why=str(error))
        raise ConfigError(shut) from error


def to_keyring(name: str, value: str) -> None:
    """Keep it there, and read it back. Raises ConfigError, MissingExtraError."""
    try:
        keeper = _usable_keyring()
    except ConfigError as error:
        raise ConfigError(Worded("{why}: name a file, as --key file:PATH", why=error)) from error
    try:
        _limited(lambda: keeper.set_password(_SERVICE, name, value))
    except ConfigError:
        raise
    except Exception as error:
        shut = Worded("the keyring does not take it: unlock it ({why})", why=str(error))
        raise ConfigError(shut) from error
    if from_keyring(name) != value:
        raise ConfigError(Worded("the keyring does not keep what it is given"))


def _usable_keyring() -> Any:
    keeper = _require_keyring()
    if not keyring_usable():
        raise ConfigError(Worded("this session has no keyring"))
    return keeper


def _limited(question: Callable[[], T]) -> T:
    try:
        return within(_KEYRING_SECONDS, question)
    except TimeoutError:
        slow = (
            "the keyring does not answer within {seconds} s: unlock it, or set the tokens in the environment"
        )
        raise ConfigError(Worded(slow, seconds=f"{_KEYRING_SECONDS:g}")) from None


def _require_keyring() -> Any:
    if find_spec("keyring") is None:
        raise MissingExtraError(Worded("keeping tokens in the keyring"), "keyring")
    return import_module("keyring")


def _matters(line: str) -> bool:
    return bool(line.strip()) and not line.lstrip().startswith("#")
