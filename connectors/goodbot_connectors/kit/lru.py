# SPDX-License-Identifier: Apache-2.0
"""A dict that keeps its newest entries only, and how what it knows of a person goes with them."""

from __future__ import annotations

from collections.abc import MutableMapping
from typing import Any, TypeVar, cast

K = TypeVar("K")
V = TypeVar("V")


class Recent(dict[K, V]):
    """For what helps while it is known, and is no loss when it is not."""

    most = 1000

    def __setitem__(self, name: K, value: V) -> None:
        self.pop(name, None)
        super().__setitem__(name, value)
        while len(self) > self.most:
            del self[next(iter(self))]


def forget(word: str, *known: MutableMapping[Any, Any]) -> None:
    """Drop from each of these what has `word`, the id of a person or of their chat, in its key or value."""
    for one in known:
        for name in [name for name, value in one.items() if word in (*_parts(name), *_parts(value))]:
            del one[name]


def _parts(value: Any) -> tuple[Any, ...]:
    return cast("tuple[Any, ...]", value) if isinstance(value, tuple) else (value,)
