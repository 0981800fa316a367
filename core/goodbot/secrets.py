"""Tokens come from the environment and never show up in a `repr`, a log or a traceback."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass


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
