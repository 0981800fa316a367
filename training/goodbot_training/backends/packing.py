# SPDX-License-Identifier: Apache-2.0
"""Token ids → the index arrays of one forward pass. Padding is on the right, where causal attention
never looks, so no backend needs a mask."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from goodbot.api.backend import TrainingBatch
from goodbot.api.sampler import TokenizedTurn
from goodbot.base.errors import TrainingError

from goodbot_training.backends.scoring import OVERHEAD, split_by_budget


@dataclass(frozen=True, kw_only=True)
class Packed:
    """B sequences of at most S tokens, of which at most R are the response. int64."""

    ids: Any
    """`(B, S)`"""
    positions: Any
    """`(B, R)`: where the logits of each response token stand; 0 on padding."""
    targets: Any
    """`(B, R)`: the response tokens; 0 on padding."""
    mask: Any
    """`(B, R)`, fp32"""

    @property
    def means(self) -> Any:
        """`(B, S)`, fp32: each row sums what stands at its response's places up to their mean."""
        rows, columns = self.mask.nonzero()
        weights = np.zeros(self.ids.shape, np.float32)
        weights[rows, self.positions[rows, columns]] = 1.0
        return weights / weights.sum(1, keepdims=True)


def pack(turns: Sequence[TokenizedTurn], *, vocabulary: int) -> Packed:
    """Pack sequences. Raises TrainingError(kind="data") for empty parts and foreign token ids."""
    for turn in turns:
        if not turn.prompt or not turn.response:
            raise TrainingError("A turn has no prompt or no response tokens.", kind="data")
        if max(max(turn.prompt), max(turn.response)) >= vocabulary:
            raise TrainingError("A turn has token ids that this model does not know.", kind="data")
    length = max(len(turn.prompt) + len(turn.response) - 1 for turn in turns)
    width = max(len(turn.response) for turn in turns)
    ids = np.zeros((len(turns), length), np.int64)
    positions = np.zeros((len(turns), width), np.int64)
    targets = np.zeros_like(positions)
    mask = np.zeros((len(turns), width), np.float32)
    for row, turn in enumerate(turns):
        whole = (*turn.prompt, *turn.response)[:-1]  # nothing is predicted from the last token
        ids[row, : len(whole)] = whole
        count = len(turn.response)
        positions[row, :count] = np.arange(count) + len(turn.prompt) - 1
        targets[row, :count] = turn.response
        mask[row, :count] = 1.0
    return Packed(ids=ids, positions=positions, targets=targets, mask=mask)


def micro_batches(batch: TrainingBatch, budget: int, overhead: int = OVERHEAD) -> Iterator[TrainingBatch]:
    """Parts of a batch, each of like lengths and at most `budget` padded tokens; losses add up."""
    lengths = [len(turn.prompt) + len(turn.response) for turn in batch.sequences]
    groups = split_by_budget(lengths, budget, overhead)
    if len(groups) == 1:
        yield batch
        return
    for rows in groups:
        yield part(batch, rows)


def part(batch: TrainingBatch, rows: Sequence[int]) -> TrainingBatch:
    """These rows of a batch, no wider than they are."""
    width = max(len(batch.sequences[row].response) for row in rows)
    return replace(
        batch,
        sequences=tuple(batch.sequences[row] for row in rows),
        temperature=tuple(batch.temperature[row] for row in rows),
        sampling_logprobs=batch.sampling_logprobs[rows, :width],
        reference_logprobs=batch.reference_logprobs[rows, :width],
        advantages=batch.advantages[rows],
        mask=batch.mask[rows, :width],
        hindsight=None if batch.hindsight is None else batch.hindsight[rows, :width],
    )
