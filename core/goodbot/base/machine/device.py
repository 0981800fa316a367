# SPDX-License-Identifier: Apache-2.0
"""What this machine has: memory that a model may take, and how fast it computes."""

from __future__ import annotations

import ctypes
import json
import os
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from goodbot.base import spawn
from goodbot.base.machine import cgroups
from goodbot.base.machine.nvidia import visible_device
from goodbot.base.machine.tool import ask
from goodbot.base.printing import say_json

_BLAS = ("libopenblasp.so.0", "libopenblas.so.0")
"""Fedora gives the one with threads a name of its own; the other one has none there."""
_SLOW = (2e10, 8e9)
"""What `measured` says of a slow laptop."""
_LONGEST_SECONDS = 60.0
SHARE = 0.7
"""Of the memory that is there, how much serving and training may take together."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Device:
    """Where one backend computes. Speeds are what it reaches there, not what the chip promises."""

    backend: str
    device: str
    """`cpu`, `cuda` or `metal`."""
    memory: int
    """Bytes that are free for models."""
    flops: float
    """Of matrix products, a second."""
    bandwidth: float
    """Of reading weights for one token, bytes a second."""
    step: float
    """Seconds that one layer costs for one token, beside reading its weights."""


def place(backend: str, *, memory: int | None = None, measure: bool = True, apart: bool = False) -> Device:
    """Where `backend` (`mlx`, `torch` or another) would compute on this machine.

    `memory` in bytes replaces what is free; without `measure` the speeds mean nothing. `apart`: they are
    measured in a program of its own, for a process that lives long.

    On a processor the speeds are measured here, in a few milliseconds. Those of GPUs are set low,
    at what a small one of its kind does: an estimate that is too slow disappoints nobody.
    """
    if backend in ("tinker", "ray"):  # what is trained elsewhere is scored here all the same
        backend = "torch"
    if backend == "mlx" and sys.platform == "darwin":
        return Device(
            backend=backend,
            device="metal",
            memory=memory or physical_memory(),
            flops=2e12,
            bandwidth=60e9,
            step=2e-4,
        )
    if backend == "torch" and (gpu := cuda_memory()):
        return Device(
            backend=backend, device="cuda", memory=memory or gpu, flops=2e13, bandwidth=2e11, step=8e-4
        )
    flops, bandwidth, blas = (
        (1e10, 1e10, False) if not measure else measured_apart() if apart else (*measured(), openblas())
    )
    # The parts of both that the backends were seen to reach, with a model of 0.1 billion parameters.
    product, reading = (0.75, 0.4)
    if backend == "mlx":
        product, reading = (0.4 if blas else 0.03, 0.2)
    return Device(
        backend=backend,
        device="cpu",
        memory=memory or available_memory(),
        flops=flops * product,
        bandwidth=bandwidth * reading,
        step=2e-3,
    )


@cache
def measured_apart() -> tuple[float, float, bool]:
    """`measured` and `openblas`, by a program that ends: both leave threads and memory behind for good."""
    with suppress(OSError, ValueError):
        flops, bandwidth, blas = json.loads(
            spawn.run(*spawn.python("-m", __name__), seconds=_LONGEST_SECONDS).stdout
        )
        return float(flops), float(bandwidth), bool(blas)
    return (*_SLOW, False)


@cache
def measured() -> tuple[float, float]:
    """Floating point operations and bytes read a second, of this processor just now."""
    if find_spec("numpy") is None:
        return _SLOW
    np: Any = import_module("numpy")  # the backends bring it

    matrix = np.ones((768, 768), np.float32)
    vector = np.ones(1 << 24, np.float32)
    _ = np.matmul(matrix, matrix), vector.sum()  # warms threads and caches up
    product = _best(lambda: np.matmul(matrix, matrix))
    reading = _best(vector.sum)
    return 2 * 768**3 / product, float(vector.nbytes) / reading


def _best(work: Callable[[], object]) -> float:
    """Seconds of the quickest of a few runs, others that are at work here just now left out.

    Who waits for a processor takes longer by the clock and not by its own processor seconds; who
    uses several takes more of those. The less of both is never more than it takes alone.
    """
    taken: list[float] = []
    for _ in range(8):
        wall, cpu = time.perf_counter(), time.process_time()
        work()
        taken.append(min(time.perf_counter() - wall, time.process_time() - cpu))
    return max(min(taken), 1e-6)


def physical_memory() -> int:
    """Bytes of memory in this machine."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def available_memory(root: Path = Path("/")) -> int:
    """Bytes that programs may still take: the system's figure, and what a container leaves.

    `root` holds `proc` and `sys`.
    """
    free = physical_memory()
    try:
        for line in (root / "proc/meminfo").read_text(encoding="ascii").splitlines():
            if line.startswith("MemAvailable:"):
                free = int(line.split()[1]) * 1024
    except (OSError, ValueError, IndexError):
        pass
    return min([free, *(max(0, group.limit - group.used) for group in cgroups.memory(root))])


@cache
def cuda_memory() -> int:
    """Free bytes of the NVIDIA GPU that is used, if there is one and torch was built for it; else 0."""
    try:
        if version("torch").endswith("+cpu"):
            return 0
    except PackageNotFoundError:
        return 0
    return _asked("memory.free") << 20


def cuda_used() -> int:
    """Bytes of that GPU that somebody holds; 0 where that is not known."""
    return _asked("memory.used") << 20


def gpus() -> int:
    """How many NVIDIA GPUs there are, also those that we do not use."""
    return _asked("count")


def _asked(what: str) -> int:
    """What `nvidia-smi` says of the GPU that is used; 0 where it says nothing."""
    answer = ask("nvidia-smi", "-i", visible_device(), f"--query-gpu={what}", "--format=csv,noheader,nounits")
    first = answer.partition("\n")[0].strip()
    return int(first) if first.isdecimal() else 0


@cache
def openblas() -> bool:
    """Whether the system has OpenBLAS; if so, what is loaded from now on takes its products.

    MLX's wheel for Linux brings the reference BLAS, which is forty times as slow.
    """
    if sys.platform != "linux":
        return False
    for name in _BLAS:
        with suppress(OSError):
            ctypes.CDLL(name, ctypes.RTLD_GLOBAL)
            return True
    return False


if __name__ == "__main__":
    say_json([*measured(), openblas()])
