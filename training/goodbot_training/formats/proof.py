# SPDX-License-Identifier: Apache-2.0
"""Does the model answer the same with what was written? Asked of the files that were just made.

Where the model is of a family that `reference` knows, its logits are computed twice: from the base and
the adapter as it was trained, and from what the new file says. Where the file's number type rounds the
weights, the first are rounded the same: how far rounding takes the logits of a deep model says nothing
of the file, and would hide a small mistake. For other families, and for models of more than 2 GiB, the
numbers alone are compared, with every one found in its place again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from goodbot.base.errors import AdapterError
from goodbot.base.worded import Worded

from goodbot_training.backends.adapters import AdapterWeights
from goodbot_training.formats import reference
from goodbot_training.formats.checkpoint import Checkpoint

if TYPE_CHECKING:
    from goodbot.api.step import Floats

_LARGE = 2 << 30
_TOKENS = 12
EXACT = 1e-3
"""In fp32: the largest difference of two logits."""
ROUNDED = {"F16": 5e-3, "BF16": 3e-2, "Q8_0": 5e-2}
"""Where weights were rounded: the root mean square of the differences, in spreads of one's numbers."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ConversionCheck:
    """What was compared, how far apart it was, and how far apart it may be."""

    compared: str
    """`logits`, or `numbers`: those of the adapter or of the weights."""
    apart: float
    allowed: float
    rounded: bool = False
    """Whether the file's number type rounds the weights: logits are then those of weights that were rounded
    the same, and numbers are compared in spreads of a weight."""

    def require(self, what: str) -> dict[str, Any]:
        """Itself as the protocol has it. Raises AdapterError when it is too far apart."""
        if not self.apart <= self.allowed:  # a NaN is no proof either
            raise AdapterError(
                f"{what} does not give what was trained: its {self.compared} are {self.apart:.2g} "
                f"apart, and {self.allowed:g} is allowed. Nothing was kept; please report this"
            )
        return asdict(self)


def merged(base: Checkpoint, adapter: AdapterWeights | None) -> reference.Weights:
    """The base's weights, with what the adapter adds."""

    def weights(name: str) -> Floats | None:
        if name not in base.tensors:
            return None
        weight = base.read(name)
        pair = adapter.pairs.get(name.removesuffix(".weight")) if adapter else None
        return weight if pair is None or adapter is None else weight + delta(adapter, pair)

    return weights


def delta(adapter: AdapterWeights, pair: tuple[Floats, Floats]) -> Floats:
    """What one pair adds to its weight, `(out, in)`."""
    return np.float32(adapter.scale) * (pair[1] @ pair[0])


def of_logits(
    base: Checkpoint,
    adapter: AdapterWeights | None,
    other: Callable[[reference.DecoderShape], tuple[reference.DecoderShape, reference.Weights]],
    rounds: Callable[[str, Floats], Floats] | None = None,
) -> ConversionCheck | None:
    """Compare logits; `other` makes the second model, `rounds` does to a tensor what its type does.

    None where this family or size is not for it.
    """
    model = reference.decoder(base.config)
    if model is None or base.bytes > _LARGE:
        return None
    trained = merged(base, adapter)

    def weights(name: str) -> Floats | None:
        weight = trained(name)
        return weight if weight is None or rounds is None else rounds(name, weight)

    vocabulary = base.tensors["model.embed_tokens.weight"].shape[0]
    ids = np.random.default_rng(0).integers(0, vocabulary, _TOKENS)
    expected = reference.logits(model, weights, ids)
    found = reference.logits(*other(model), ids)[:, :vocabulary]
    apart = float(np.abs(found - expected).max())
    return ConversionCheck(compared="logits", apart=apart, allowed=EXACT, rounded=rounds is not None)


def of_numbers(expected: AdapterWeights, found: AdapterWeights) -> ConversionCheck:
    """Compare what two adapters add, projection by projection. Raises AdapterError for other ones."""
    if expected.pairs.keys() != found.pairs.keys():
        raise AdapterError("the adapter that was written is on other projections than the trained one")
    apart = max(
        _apart(_scaled(expected, pair), _scaled(found, found.pairs[path]))
        for path, pair in expected.pairs.items()
    )
    return ConversionCheck(compared="numbers", apart=apart, allowed=1e-5)


def of_ranks(expected: AdapterWeights, found: AdapterWeights) -> ConversionCheck:
    """Compare an adapter with itself as it was written: rank by rank, of projections and of experts."""
    apart = 0.0 if expected.pairs.keys() == found.pairs.keys() else float("inf")
    for path in expected.pairs.keys() & found.pairs.keys():
        pairs = zip(_scaled(expected, expected.pairs[path]), _scaled(found, found.pairs[path]), strict=True)
        for one, two in pairs:
            same = one.shape == two.shape
            apart = max(apart, float(np.abs(one - two).max()) if same else float("inf"))
    return ConversionCheck(compared="numbers", apart=apart, allowed=1e-5)


def _scaled(adapter: AdapterWeights, pair: tuple[Floats, Floats]) -> tuple[Floats, Floats]:
    return pair[0], np.float32(adapter.scale) * pair[1]


def _apart(left: tuple[Floats, Floats], right: tuple[Floats, Floats]) -> float:
    """The largest difference, where ranks may be filled up with zeros."""
    rank = max(left[0].shape[0], right[0].shape[0])
    apart = 0.0
    for axis in (0, 1):
        one, two = (_filled(pair[axis], axis, rank) for pair in (left, right))
        if one.shape != two.shape:
            return float("inf")
        apart = max(apart, float(np.abs(one - two).max()))
    return apart


def _filled(half: Floats, axis: int, rank: int) -> Floats:
    missing = rank - half.shape[axis]
    width = ((0, missing), (0, 0)) if axis == 0 else ((0, 0), (0, missing))
    return np.pad(half, width)


def plain(adapter: AdapterWeights, base: Checkpoint) -> Mapping[str, tuple[Floats, Floats]]:
    """The adapter's pairs, each with its matrix in the base. Raises AdapterError for anything else."""
    for path, (a, b) in adapter.pairs.items():
        if a.ndim != 2:
            experts = (
                "this adapter is on the experts of a mixture of experts, which only the PEFT format "
                "holds: serve it with embedded, vLLM or SGLang"
            )
            raise AdapterError(Worded(experts))
        tensor = base.tensors.get(f"{path}.weight")
        if tensor is None or tensor.shape != (b.shape[0], a.shape[1]):
            raise AdapterError(
                Worded("the adapter is not for this base model: see {path}", path=repr(path[:80]))
            )
    return adapter.pairs
