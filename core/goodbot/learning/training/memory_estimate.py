# SPDX-License-Identifier: Apache-2.0
"""What the model that answers and a training take of the memory, and what there is.

Blocking: it reads the model's config and asks the machine.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from goodbot.api import address, estimate
from goodbot.api.model_shape import Architecture
from goodbot.base.machine import device as machine
from goodbot.base.machine.device import Device, place
from goodbot.inference.models import disk
from goodbot.learning.training.settings import shape

_SHARE = 0.9
"""Of memory that was measured to be free, as the trainer takes it; the rest is for what no formula knows."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Peaks:
    """Bytes that each takes at most; all 0 where that cannot be read from the models' configs."""

    serving: int
    training: int
    """With a turn of 1,024 tokens; a trainer cuts its work to what it finds."""
    room: int
    """For a training beside the model that answers; below 0 where even that one does not fit."""


def look(served: Path, trained: Path, settings: Mapping[str, Any], backend: str, *, up: bool) -> Peaks:
    """The peaks of serving one model and training another, mostly the same one.

    `up`: what answers is known to hold its memory already, so that it is not counted as free.
    """
    machine.cuda_memory.cache_clear()  # this process lives long
    here = place(backend, measure=False)
    answering, learning = shape(served), shape(trained)
    if answering is None or learning is None:
        return Peaks(serving=0, training=0, room=0)
    serving = estimate.serving(answering, here, disk.stored(served))
    share = machine.SHARE if here.device == "metal" else _SHARE
    held = here.device != "metal" and (up or _on_gpu(here, served))
    return Peaks(
        serving=serving,
        training=_training(learning, here, trained, settings),
        room=int(share * here.memory) - (0 if held else serving),
    )


def apart(url: str, served: Path, backend: str) -> str:
    """Why a server of the owner's takes nothing of the memory that trains, as a clause; empty: it may."""
    if url and not address.is_here(url):
        return f"{url} is another machine"
    here = place(backend, measure=False)
    if here.device == "cuda" and machine.gpus() > 1 and not _on_gpu(here, served):
        return "the GPU that trains holds no model"
    return ""


def seconds(model: Path, backend: str) -> float:
    """Of a usual training, by the estimate; 0: not known."""
    found = shape(model)
    if found is None:
        return 0.0
    return estimate.estimate(found, place(backend, apart=True), disk.stored(model)).round


def _training(found: Architecture, here: Device, model: Path, settings: Mapping[str, Any]) -> int:
    longest = [settings.get(name) for name in ("max_sequence_tokens", "tokens_per_forward")]
    tokens = min([estimate.FEWEST, found.context, *(n for n in longest if isinstance(n, int))])
    bits = settings.get("base_bits")
    return estimate.training(
        found, here, disk.stored(model), tokens=tokens, rank=int(settings.get("rank", 8)), bits=bits
    )


def _on_gpu(here: Device, served: Path) -> bool:
    """Whether the GPU that trains holds as much as this model takes when it is quantized far down."""
    return here.device == "cuda" and machine.cuda_used() > disk.stored(served) // 8
