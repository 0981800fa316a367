# SPDX-License-Identifier: Apache-2.0
"""How a round fits into the memory that is there: decided before the model is loaded.

Needed, in bytes: the weights, 16 a LoRA weight (it, its gradient, two moments), what the tokens of one
forward pass leave behind until the backward pass, and the logits of one chunk of responses. What can be
chosen is how many tokens go through at once, down to the longest turn, and then whether activations
are computed again for the gradient instead of being kept (`OptimizerSettings.recompute`).
"""

from __future__ import annotations

import json
import resource
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from goodbot.api import estimate, model_shape
from goodbot.base.errors import ConfigError, TrainingError
from goodbot.base.machine.device import place
from goodbot.base.worded import Worded

from goodbot_training.job.types import Job

_RUNTIME = 600_000_000
"""Bytes of a process before it holds a model: Python and the framework."""
_SHARE = 0.9
"""Of what is free; the rest is for what no formula knows."""


@dataclass(frozen=True, kw_only=True)
class Footprint:
    """What a backend takes beside `estimate.activations`, which is torch's; a token's, times the width."""

    inner: float = 0.0
    """Numbers more a layer, by the width of its feed-forward part."""
    inputs: float = 1.0
    """Times the inputs of layers that are computed again."""
    layer: float = 1.0
    """Times what one layer leaves behind, where they are."""


FOOTPRINTS = {"mlx": Footprint(inner=4.0, inputs=3.5, layer=1.7)}
"""By name. As measured on Qwen3's layers, 2 to 8 of them and twice as wide, up to a quarter above that."""


@dataclass(frozen=True, kw_only=True)
class MemoryPlan:
    """How the forward passes of a round are cut. `needed` and `free` in bytes, 0: not known."""

    tokens_per_forward: int
    recompute: bool
    needed: int
    free: int


@dataclass(frozen=True, kw_only=True)
class Memory:
    """What a job needs and what there is, in bytes. `model` None: its shape cannot be read."""

    free: int
    fixed: int
    width: int
    model: model_shape.Architecture | None
    footprint: Footprint = Footprint()

    @classmethod
    def of(cls, job: Job, backend: str) -> Memory:
        """Look at the model's config and at the machine. Raises TrainingError(kind="memory").

        It is raised when not even the weights fit, before they are loaded in vain.
        """
        here = place(backend, measure=False)
        free = here.memory if here.device == "cuda" else min(here.memory, _left_of_limit())
        try:
            config = json.loads((job.model / "config.json").read_bytes())
            shape = model_shape.read(config)
        except (OSError, ValueError, ConfigError):
            return cls(free=free, fixed=0, width=4, model=None)
        weights = sum(path.stat().st_size for path in job.model.glob("*.safetensors"))
        number = 4 if here.device == "cpu" else 2
        if job.settings.base_bits == 4:  # with a scale for each 64 of them
            weights = shape.body * 9 // 16 + (shape.parameters - shape.body) * number
        elif here.device == "cpu" and "quantization" not in config:
            weights = shape.parameters * number
        runtime = 0 if here.device == "cuda" else _RUNTIME
        fixed = weights + runtime + 16 * shape.lora(job.settings.rank)
        memory = cls(
            free=free,
            fixed=fixed,
            width=4 if here.device == "cpu" else 3,
            model=shape,
            footprint=FOOTPRINTS.get(backend, Footprint()),
        )
        if fixed > _SHARE * free:
            raise memory.too_little(fixed)
        return memory

    def within(self, job: Job) -> Job:
        """The job without turns that are longer than the model can see."""
        settings = job.settings
        if self.model is None or settings.max_sequence_tokens <= self.model.context:
            return job
        return replace(job, settings=replace(settings, max_sequence_tokens=self.model.context))

    def needed(self, tokens: int, *, recompute: bool) -> int:
        """Bytes of a round that puts so many tokens through at once."""
        if self.model is None:
            return 0
        inner = self.footprint.inner * self.model.layers * self.model.intermediate * self.width
        layers = estimate.activations(self.model, self.width) + inner
        if recompute:  # each layer's input, and one layer as a whole
            kept = self.model.layers * self.model.hidden * self.width
            layers = self.footprint.inputs * kept + self.footprint.layer * layers / self.model.layers
        return self.fixed + int(layers) * tokens + estimate.logits(self.model, tokens)

    def plan(self, lengths: Sequence[int], job: Job) -> MemoryPlan:
        """The largest plan that fits these turns (tokens each); smaller ones from the second attempt on.

        The second attempt puts half as many tokens through as the first; the third is the smallest
        plan that there is. Raises TrainingError(kind="memory") when not even that fits.
        """
        longest = max(lengths, default=1)
        plans = list(self._plans(longest, job))
        fitting = [plan for plan in plans if plan.needed <= _SHARE * plan.free] or plans[-1:]
        if fitting[0].needed > _SHARE * self.free:
            raise self.too_little(fitting[0].needed)
        if job.attempt == 0:
            return fitting[0]
        if job.attempt == 1:
            half = max(longest, fitting[0].tokens_per_forward // 2)
            return next((p for p in fitting if p.tokens_per_forward <= half), fitting[-1])
        return fitting[-1]

    def _plans(self, longest: int, job: Job) -> Iterator[MemoryPlan]:
        """From the largest to the smallest."""
        settings = job.settings
        most = max(longest, min(settings.tokens_per_forward, settings.batch_size * longest))
        for recompute in (False, True):
            tokens = most
            while True:
                yield MemoryPlan(
                    tokens_per_forward=tokens,
                    recompute=recompute,
                    needed=self.needed(tokens, recompute=recompute),
                    free=self.free,
                )
                if tokens == longest:
                    break
                tokens = max(longest, tokens // 2)

    def too_little(self, needed: int) -> TrainingError:
        """What to raise when `needed` bytes are more than there are."""
        little = (
            "Training needs about {needed} of memory and {free} is free. "
            "Close other programs, or choose a smaller model (`goodbot model`) or a smaller "
            "max_sequence_tokens under [training.settings]."
        )
        said = Worded(little, needed=_told(needed / _SHARE), free=_told(self.free))
        return TrainingError(said, kind="memory")


def _left_of_limit() -> int:
    """Bytes of address space that this process may still take."""
    soft, _ = resource.getrlimit(resource.RLIMIT_AS)
    if soft == resource.RLIM_INFINITY:
        return sys.maxsize
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    except (OSError, ValueError):
        return soft
    return max(0, soft - pages * resource.getpagesize())


def _told(size: float) -> str:
    return f"{size / 1e9:.1f} GB" if size >= 1e9 else f"{size / 1e6:.0f} MB"


def peak_memory() -> int:
    """Bytes that this process has held at most."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
