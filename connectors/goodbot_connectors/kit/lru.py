# SPDX-License-Identifier: Apache-2.0
"""A dict that keeps its newest entries only."""

from __future__ import annotations

from typing import TypeVar

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
