# SPDX-License-Identifier: Apache-2.0
"""Which of a sampler's adapters are in memory. Of the others it knows where their files lie.

A version that was not used for longest is dropped first, and read again when somebody asks for it: checked
as the first time. One that is active, or has answers under way, is never dropped.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path

from goodbot_training.backends.adapters import AdapterWeights

BYTES = 2 << 30
"""Of the weights of adapters, at most, beside those that are active, write, or wait to write. Numbers have
four bytes here, so twice as many fit as into slots of fp32, and as many as into slots of bf16. Who lost its
slot may so be a copy away from it. That is 3,400 of rank 8 for a model of 4 million weights, 61 for one of
1.7 billion and 24 for one of 8 billion."""


@dataclass(frozen=True, kw_only=True, eq=False)
class StoredAdapter:
    """An adapter that was read, and where."""

    directory: Path
    weights: AdapterWeights


class Residency:
    """Of one sampler, by version."""

    def __init__(
        self,
        read: Callable[[Path], AdapterWeights],
        in_use: Callable[[], Collection[int]],
        dropped: Callable[[int, AdapterWeights], None],
    ) -> None:
        """`read`: raises AdapterError; `in_use`: versions that must stay; `dropped`: hears of each that did
        not."""
        self._read, self._in_use, self._dropped = read, in_use, dropped
        self._directories: dict[int, Path] = {}
        self._weights: OrderedDict[int, AdapterWeights] = OrderedDict()
        """Who was used last is at the end."""
        self._bytes = 0

    def __contains__(self, version: int) -> bool:
        """Whether there is such a version, in memory or not."""
        return version in self._directories

    def lacking(self, version: int) -> Path | None:
        """Where the files lie that `weights` would have to read."""
        return None if version in self._weights else self._directories.get(version)

    def note(self, version: int, directory: Path) -> None:
        """Know a version, in the place of what had its number. Its files are read when they are needed."""
        self.remove(version)
        self._directories[version] = directory

    def keep(self, version: int, adapter: StoredAdapter) -> None:
        """Know a version that was read, in the place of what had its number."""
        self.note(version, adapter.directory)
        self._hold(version, adapter.weights)

    def remove(self, version: int) -> None:
        """Know nothing of it any more."""
        self._directories.pop(version, None)
        self._drop(version)

    def weights(self, version: int) -> AdapterWeights:
        """Those of a version that is there; they are in use. Raises AdapterError."""
        if version not in self._weights:
            self._hold(version, self._read(self._directories[version]))
        self._weights.move_to_end(version)
        return self._weights[version]

    def _hold(self, version: int, weights: AdapterWeights) -> None:
        self._weights[version] = weights
        self._bytes += weights.nbytes
        if self._bytes > BYTES:
            stay = {version, *self._in_use()}
            for other in [other for other in self._weights if other not in stay]:
                if self._bytes <= BYTES:
                    break
                self._drop(other)

    def _drop(self, version: int) -> None:
        weights = self._weights.pop(version, None)
        if weights is not None:
            self._bytes -= weights.nbytes
            self._dropped(version, weights)
