# SPDX-License-Identifier: Apache-2.0
"""How large adapters are and how far two are apart: `python -m goodbot_training.process.inspect`, NumPy only.

One JSON object on stdin, `{"before": DIR or null, "after": DIR}` (null: the base model, no change at
all), one on stdout: `{"event": "done", "groups": [...], "change": ..., "size": ..., "rms": ...}` or
`{"event": "failed", "reason": ...}`. A group is a kind of matrix in a third of the layers:
`{"name": "attention, layers 0-3", "change": ..., "before": ..., "after": ...}`, Frobenius norms of ΔW
with ΔW = scale · B·A. `rms` is the largest root mean square of one matrix's ΔW: a trained model's own
weights have some hundredths.
"""

from __future__ import annotations

import json
import math
import resource
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from goodbot.api.sentences import clause
from goodbot.base.errors import AdapterError, GoodbotError
from goodbot.base.worded import Worded, said_by
from goodbot.base.worded_parts import parts_of

from goodbot_training.backends.adapters import AdapterWeights, read_adapter

LARGEST = 1.0
"""Root mean square of a ΔW, above which an adapter is refused: it would drown the weights that it changes."""

_SECONDS = 600
_SPARE = 4 << 30
_KINDS = {
    "attention": ("attn", "attention", "q_proj", "k_proj", "v_proj", "o_proj", "qkv"),
    "experts": ("experts", "block_sparse_moe"),
    "feed-forward": ("mlp", "feed_forward", "ffn", "fc1", "fc2"),
}


def examine(before: Path | None, after: Path) -> dict[str, Any]:
    """The sizes and the distance of two adapters. Raises AdapterError for a file that cannot be read,
    or numbers that are absurd.
    """
    new = read_adapter(after)
    old = read_adapter(before) if before else None
    _require_sane(new, after)
    layers = 1 + max((_layer(path) for path in new.pairs), default=0)
    squares: dict[str, list[float]] = {}
    for path in sorted({*new.pairs, *(old.pairs if old else ())}, key=lambda p: (_layer(p), p)):
        own = squares.setdefault(_group(path, layers), [0.0, 0.0, 0.0])
        halves = (_factors(new, path, 1.0), _factors(old, path, -1.0))
        for at, parts in enumerate((halves, halves[1:], halves[:1])):
            own[at] += _square([part for part in parts if part is not None])
    groups = [
        {"name": name, **dict(zip(("change", "before", "after"), map(_root, own), strict=True))}
        for name, own in squares.items()
    ]
    total = [_root(sum(own[at] for own in squares.values())) for at in range(3)]
    return {
        "groups": groups,
        "change": total[0],
        "before": total[1],
        "size": total[2],
        "rms": max(_rms(new, path) for path in new.pairs),
    }


def _require_sane(weights: AdapterWeights, directory: Path) -> None:
    for path in weights.pairs:
        if not (rms := _rms(weights, path)) <= LARGEST:
            drowns = (
                "The adapter in {directory} changes {path} by {number} a weight, which would "
                "drown the model: it is damaged, or its alpha is wrong"
            )
            raise AdapterError(Worded(drowns, directory=directory.name, path=path, number=f"{rms:.3g}"))


Factors = tuple[Any, Any]
"""A `(…, r, in)` and B `(…, out, r)`, float64, the scale in B."""


def _factors(weights: AdapterWeights | None, path: str, sign: float) -> Factors | None:
    if weights is None or path not in weights.pairs:
        return None
    a, b = weights.pairs[path]
    return a.astype(np.float64), sign * weights.scale * b.astype(np.float64)


def _square(parts: Iterable[Factors]) -> float:
    """‖Σ B·A‖² without ever making B·A: tr((BᵀB)(AAᵀ)) of the matrices side by side."""
    some = list(parts)
    if not some:
        return 0.0
    a = np.concatenate([part[0] for part in some], axis=-2)
    b = np.concatenate([part[1] for part in some], axis=-1)
    with np.errstate(over="ignore", invalid="ignore"):
        inner = (b.swapaxes(-1, -2) @ b) * (a @ a.swapaxes(-1, -2))
        return max(float(inner.sum()), 0.0)  # NaN stays: it is the first


def _rms(weights: AdapterWeights, path: str) -> float:
    factors = _factors(weights, path, 1.0)
    assert factors is not None  # noqa: S101  the path is one of theirs
    a, b = factors
    count = math.prod(b.shape[:-1]) * a.shape[-1]
    return _root(_square([factors]) / count)


def _root(square: float) -> float:
    return math.sqrt(square) if math.isfinite(square) else math.inf


def _layer(path: str) -> int:
    return next((int(part) for part in path.split(".") if part.isdecimal()), 0)


def _group(path: str, layers: int) -> str:
    kind = next((k for k, signs in _KINDS.items() if any(s in path for s in signs)), "other")
    size = -(-layers // 3)
    first = _layer(path) // size * size
    last = min(first + size, layers) - 1
    return f"{kind}, layer{'s' if last > first else ''} {f'{first}-{last}' if last > first else first}"


def main() -> int:
    """One request, one answer; within ten minutes of the processor and a few times the files' size."""
    request: Mapping[str, Any] = json.loads(sys.stdin.readline())
    before, after = (Path(path) if path else None for path in (request["before"], request["after"]))
    try:
        assert after is not None  # noqa: S101  the protocol
        _limit([path for path in (before, after) if path])
        answer = {"event": "done", **examine(before, after)}
    except GoodbotError as error:
        answer = {"event": "failed", "reason": clause(str(error)), **parts_of(said_by(error))}
    except MemoryError:
        answer = {"event": "failed", "reason": "the adapter needs more memory than its size allows"}
    sys.stdout.write(json.dumps(answer) + "\n")
    return 0


def _limit(directories: Iterable[Path]) -> None:
    """What a forged file makes a library do must not take the machine with it."""
    size = sum(f.lstat().st_size for path in directories if path.is_dir() for f in path.iterdir())
    resource.setrlimit(resource.RLIMIT_CPU, (_SECONDS, _SECONDS))
    if sys.platform == "linux":
        limit = _SPARE + 16 * size
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


if __name__ == "__main__":
    sys.exit(main())
