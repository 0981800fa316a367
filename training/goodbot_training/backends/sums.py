# SPDX-License-Identifier: Apache-2.0
"""Several adapters in one, and a part of one: LoRA adds up by its ranks, side by side.

s₁·B₁A₁ + s₂·B₂A₂ = [s₁·B₁ s₂·B₂] · [A₁; A₂]: what two adapters do to a projection, one of the ranks of both
does. So a server that takes one adapter a request serves a sum, and each part is found again by its ranks.
"""

# pyright: standard
# (NumPy's arithmetic is typed in parts)

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from goodbot_training.backends.adapters import AdapterWeights, Shape, fit, fresh, read_adapter

if TYPE_CHECKING:
    from goodbot.api.step import Floats


def added(first: AdapterWeights, second: AdapterWeights) -> AdapterWeights:
    """One adapter that does what both do. `second` is on the projections of `first`, as `fit` makes it."""
    own, other = np.float32(first.scale), np.float32(second.scale)
    pairs = {
        path: (
            np.concatenate([a, second.pairs[path][0]], axis=-2),
            np.concatenate([b * own, second.pairs[path][1] * other], axis=-1),
        )
        for path, (a, b) in first.pairs.items()
    }
    rank = first.rank + second.rank
    return AdapterWeights(rank=rank, alpha=float(rank), scale=1.0, pairs=pairs)


def beyond(whole: AdapterWeights, ranks: Mapping[str, int]) -> AdapterWeights:
    """What is left of a sum without its first part, which has so many `ranks` on each path."""
    pairs = {
        path: (np.ascontiguousarray(a[..., ranks[path] :, :]), np.ascontiguousarray(b[..., ranks[path] :]))
        for path, (a, b) in whole.pairs.items()
    }
    rank = max(a.shape[-2] for a, _ in pairs.values())
    if any(a.ndim == 2 for a, _ in pairs.values()):
        rank = max(a.shape[-2] for a, _ in pairs.values() if a.ndim == 2)
    return AdapterWeights(rank=rank, alpha=whole.scale * rank, scale=whole.scale, pairs=pairs)


def rebased(own: Path, rests_on: Path | None, onto: Path | None) -> AdapterWeights:
    """A sum with another first part. Raises AdapterError.

    Args:
        own: The sum.
        rests_on: Its first part; None: it has none, and is its own part alone.
        onto: The first part that it gets; None: none.
    """
    part = read_adapter(own)
    if rests_on is not None:
        part = beyond(part, ranks(fit(read_adapter(rests_on), shapes(part), rests_on)))
    return part if onto is None else added(fit(read_adapter(onto), shapes(part), onto), part)


def begun(first: Path, *, rank: int, alpha: float, seed: int) -> AdapterWeights:
    """A sum whose second part has no effect yet. Raises AdapterError."""
    shared = read_adapter(first)
    experts = min((a.shape[-2] for a, _ in shared.pairs.values() if a.ndim == 3), default=1)
    own = fresh(shapes(shared), rank=rank, alpha=alpha, seed=seed, expert_rank=experts)
    return added(shared, own)


def ranks(weights: AdapterWeights) -> dict[str, int]:
    """The ranks of an adapter on each path."""
    return {path: a.shape[-2] for path, (a, _) in weights.pairs.items()}


def shapes(weights: AdapterWeights) -> dict[str, Shape]:
    """What it adapts: `(out, in)`, of a stack of experts `(experts, out, in)`."""
    return {path: (*a.shape[:-2], b.shape[-2], a.shape[-1]) for path, (a, b) in weights.pairs.items()}


def count(of: Mapping[str, Shape], ranks: Mapping[str, int]) -> int:
    """How many numbers so many ranks of each of these projections have."""
    return sum(
        math.prod(of[path][:-2]) * many * (of[path][-2] + of[path][-1]) for path, many in ranks.items()
    )


def moving(weights: AdapterWeights, still: Mapping[str, int]) -> dict[str, tuple[Floats, Floats]]:
    """For A and B of each path 0 where one of the first `still` ranks stands, and 1 elsewhere."""
    masks: dict[str, tuple[Floats, Floats]] = {}
    for path, (a, b) in weights.pairs.items():
        one, other = np.ones_like(a), np.ones_like(b)
        one[..., : still.get(path, 0), :] = 0
        other[..., : still.get(path, 0)] = 0
        masks[path] = (one, other)
    return masks
