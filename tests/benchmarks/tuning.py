# SPDX-License-Identifier: Apache-2.0
"""What the GPU benchmark tries beside what goodbot does: torch.compile, another attention; and which one ran.

None of it is in the product: a line goes there once a figure says that it pays.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from typing import Any
from unittest.mock import patch


def allow_compiling(task: Mapping[str, Any]) -> None:
    """Before torch is imported: the product switches its compiler off for the whole process."""
    if task.get("compiled"):
        os.environ["TORCHDYNAMO_DISABLE"] = "0"


def tuned(backend: Any, task: Mapping[str, Any]) -> None:
    """Do to a loaded backend what the task asks for."""
    if attention := task.get("attention"):
        backend._model._causal.set_attn_implementation(attention)
    if not task.get("compiled"):
        return
    import torch
    from transformers.modeling_layers import GradientCheckpointingLayer

    compiler: Any = import_module("torch._dynamo.config")
    compiler.disable = False
    # Without a GPU nobody writes kernels here: then it is only traced.
    by = "inductor" if torch.cuda.is_available() else "eager"
    for layer in backend._model._causal.modules():
        if isinstance(layer, GradientCheckpointingLayer):
            layer.compile(backend=by, dynamic=True)


@contextmanager
def kernels() -> Iterator[set[str]]:
    """The kernels that torch's attention takes within this, by its own choice for what it is given."""
    from torch.nn import functional

    torch, attention = (import_module(name) for name in ("torch", "torch.nn.attention"))
    found: set[str] = set()
    real = functional.scaled_dot_product_attention
    names = {
        int(one): name.removesuffix("_ATTENTION").lower()
        for name, one in attention.SDPBackend.__members__.items()
    }

    def attend(
        query: Any,
        key: Any,
        value: Any,
        attn_mask: Any = None,
        dropout_p: float = 0.0,
        is_causal: bool = False,
        scale: float | None = None,
        enable_gqa: bool = False,
    ) -> Any:
        given = (query, key, value, attn_mask, dropout_p, is_causal)
        more: dict[str, Any] = {"scale": scale, "enable_gqa": enable_gqa}
        choice = int(torch._fused_sdp_choice(*given, **more))
        found.add(names.get(choice, str(choice)) + (" with a mask" if attn_mask is not None else ""))
        return real(*given, **more)

    with patch.object(functional, "scaled_dot_product_attention", attend):
        yield found
