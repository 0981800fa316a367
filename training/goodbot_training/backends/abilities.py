# SPDX-License-Identifier: Apache-2.0
"""What a model family's KV cache allows, found by trying: families are too many to know them by name.

A way of reading is believed only if it gives the log-probs that reading at once gives.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from goodbot_training.backends.answers import By
from goodbot_training.backends.decoding import Batchable, BatchableDecoder

_LONG, _SHORT = (5, 9, 3, 7, 11, 4, 8, 6), (10, 12, 6)
_NEXT = (7, 5)
_WHOLE_VOCABULARY = 1 << 30


class Abilities:
    """Of one loaded model. Each is tried when it is first asked for, and takes four short passes."""

    def __init__(self, model: BatchableDecoder) -> None:
        self.model = model
        self._mixes_versions: bool | None = None

    @cached_property
    def mixes(self) -> bool:
        """Whether rows of different length may grow in one batch, come and go."""

        def pair() -> tuple[Batchable, Batchable]:
            long, short = self._read(_LONG), self._read(_SHORT)
            long.join(short)
            return long.split(0), long.split(1)

        try:
            mixed = self._read(_SHORT)
            mixed.join(self._read(_LONG))
            inputs, heat = np.asarray([[_NEXT[0]], [_NEXT[0]]]), np.ones(2, np.float32)
            mixed(inputs, heat, np.zeros(2, np.float32))
            later = (mixed.split(0), mixed.split(1))
            mixed.select([0])
            return (
                self._same(pair()[0], self._read(_LONG))
                and self._same(pair()[1], self._read(_SHORT))
                and self._same(later[0], self._read((*_SHORT, _NEXT[0])))
                and self._same(later[1], self._read((*_LONG, _NEXT[0])))
                and self._same(mixed, self._read((*_SHORT, _NEXT[0])))
            )
        except Exception:  # each family's cache fails in its own way
            return False

    @cached_property
    def pads(self) -> bool:
        """Whether prompts of different length can be read in one pass, and their rows then be joined."""

        def pair(inputs: np.ndarray) -> Batchable:
            steps = self.model.decoder()
            steps.begin([len(_LONG), len(_SHORT)])
            steps(inputs, np.ones(2, np.float32), np.zeros(2, np.float32))
            return steps

        def padded(token: int) -> np.ndarray:
            rows = [_LONG, ((token,) * (len(_LONG) - len(_SHORT))) + _SHORT]
            return np.asarray(rows, np.int64)

        try:
            both, joined = pair(padded(0)), self._read(_SHORT)
            joined.join(pair(padded(_NEXT[0])))
            return self.mixes and all(
                self._same(row, self._read(prompt))
                for row, prompt in (
                    (both.split(0), _LONG),
                    (both.split(1), _SHORT),
                    (joined.split(0), _SHORT),
                    (joined.split(1), _LONG),
                    (joined.split(2), _SHORT),
                )
            )
        except Exception:
            return False

    def mixes_versions(self, by: By, versions: tuple[int, int]) -> bool:
        """Whether two rows can be written by two versions in one pass; tried once."""
        if self._mixes_versions is None:
            try:
                self._mixes_versions = self.mixes and self._tells_apart(by, versions)
            except Exception:
                self._mixes_versions = False
        return self._mixes_versions

    def _tells_apart(self, by: By, versions: tuple[int, int]) -> bool:
        one, other = versions
        prompts = {one: _LONG, other: _SHORT}
        rows: dict[int, Batchable] = {}
        for version, prompt in prompts.items():
            with by([version]):
                rows[version] = self._read(prompt)
        rows[one].join(rows[other])
        with by(versions):
            rows[one](_ids(_NEXT[:1]).repeat(2, 0), np.ones(2, np.float32), np.zeros(2, np.float32))
        for place, (version, prompt) in enumerate(prompts.items()):
            with by([version]):
                alone = self._read((*prompt, _NEXT[0]))
                if not self._same(rows[one].split(place), alone):
                    return False
        return True

    @cached_property
    def resumes(self) -> bool:
        """Whether a prompt may be read in parts."""
        try:
            parts = self._read(_LONG[:3])
            parts.read(_ids(_LONG[3:]))
            return self._same(parts, self._read(_LONG))
        except Exception:
            return False

    def _read(self, tokens: Sequence[int]) -> Batchable:
        steps = self.model.decoder()
        steps.read(_ids(tokens))
        return steps

    def _same(self, one: Batchable, other: Batchable) -> bool:
        """Whether two rows that have read the same go on alike."""
        left, right = (
            dict(zip(*row.likeliest(_ids(_NEXT[1:]), _WHOLE_VOCABULARY), strict=True)) for row in (one, other)
        )
        apart = np.asarray([abs(left[token] - right[token]) for token in left])
        return bool(apart.max() < self.model.rounding)


def _ids(tokens: Sequence[int]) -> np.ndarray:
    return np.asarray([tokens], np.int64)
