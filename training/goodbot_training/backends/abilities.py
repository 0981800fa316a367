"""What a model family's KV cache allows, found by trying: families are too many to know them by name.

A way of reading is believed only if it gives the log-probs that reading at once gives.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from goodbot_training.backends.decoding import Decoder, Steps

_LONG, _SHORT = (5, 9, 3, 7, 11, 4, 8, 6), (10, 12, 6)
_NEXT = (7, 5)
_WHOLE_VOCABULARY = 1 << 30


class Abilities:
    """Of one loaded model. Each is tried when it is first asked for, and takes four short passes."""

    def __init__(self, model: Decoder) -> None:
        self._model = model

    @cached_property
    def mixes(self) -> bool:
        """Whether rows of different length may grow in one batch, come and go."""

        def pair() -> tuple[Steps, Steps]:
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
    def resumes(self) -> bool:
        """Whether a prompt may be read in parts."""
        try:
            parts = self._read(_LONG[:3])
            parts.read(_ids(_LONG[3:]))
            return self._same(parts, self._read(_LONG))
        except Exception:
            return False

    def _read(self, tokens: Sequence[int]) -> Steps:
        steps = self._model.decoder()
        steps.read(_ids(tokens))
        return steps

    def _same(self, one: Steps, other: Steps) -> bool:
        """Whether two rows that have read the same go on alike."""
        left, right = (
            dict(zip(*row.likeliest(_ids(_NEXT[1:]), _WHOLE_VOCABULARY), strict=True))
            for row in (one, other)
        )
        apart = np.asarray([abs(left[token] - right[token]) for token in left])
        return bool(apart.max() < self._model.rounding)


def _ids(tokens: Sequence[int]) -> np.ndarray:
    return np.asarray([tokens], np.int64)
