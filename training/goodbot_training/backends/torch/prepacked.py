# SPDX-License-Identifier: Apache-2.0
"""Frozen matrices in oneDNN's own layout, for a processor that only answers.

A BLAS arranges a matrix anew for each product. With few rows, as in a batch of answers, that costs more
than to multiply; arranged once, a product takes half or a third of the time. There is no gradient.
"""

# pyright: standard
# (the framework ships no complete types)

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.nn import functional

Product = Callable[[torch.Tensor], torch.Tensor]
"""x `(…, in)` → W x + bias `(…, out)`."""
_LEAST = 1 << 17
"""Numbers in a matrix. For fewer, to ask oneDNN takes longer than what it saves."""
_ROWS = 32
"""That the layout is chosen for; it serves any number."""
_TRIM: Any = getattr(ctypes.CDLL(None), "malloc_trim", None) if sys.platform == "linux" else None
"""Of glibc; other C libraries have none."""


def prepacked(linear: nn.Linear) -> Product | None:
    """Its product, out of a copy; None where plain is better, or oneDNN is not there or does not agree.

    PyTorch's own compiler packs so, by the same operators; they have no public name.
    """
    weight, bias = linear.weight, linear.bias
    if weight.device.type != "cpu" or weight.dtype != torch.float32 or weight.numel() < _LEAST:
        return None
    try:
        operators: Any = torch.ops.mkldnn
        copy = operators._reorder_linear_weight(weight.detach(), _ROWS)  # noqa: SLF001
        multiply = operators._linear_pointwise.default  # noqa: SLF001

        def product(x: torch.Tensor) -> torch.Tensor:
            return multiply(x, copy, bias, "none", [], "")

        tried = torch.linspace(-1, 1, 3 * weight.shape[1]).view(3, -1)
        with torch.no_grad():
            agrees = torch.allclose(product(tried), functional.linear(tried, weight, bias), 1e-3, 1e-4)
    except (AttributeError, RuntimeError):  # no such operator here; no oneDNN
        return None
    return product if agrees else None


def give_up(linear: nn.Linear) -> None:
    """Free the memory of its matrix, of which only the shape is left."""
    linear.weight = nn.Parameter(linear.weight.to("meta"), requires_grad=False)
    if _TRIM:  # glibc keeps what lies between the copies: as much as the body again
        _TRIM(0)
