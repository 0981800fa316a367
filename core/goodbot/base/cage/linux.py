# SPDX-License-Identifier: Apache-2.0
"""A cage of Linux: no new privileges, Landlock for files, seccomp for everything else."""

from __future__ import annotations

import contextlib
import ctypes
import os
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from goodbot.base.cage import landlock, limits, places, seccomp

_PR_CAPBSET_DROP, _PR_SET_NO_NEW_PRIVS = 24, 38
_CAPABILITIES = 64
_CAP_DAC_OVERRIDE = 1
"""Where we are root: files of other owners. Which ones, Landlock says."""
_MODPROBE = "/usr/bin/nvidia-modprobe"


def enter(told: Mapping[str, Any], command: Sequence[str]) -> None:
    """Lock this process up, as far as this kernel can. Raises OSError where it can and does not."""
    reads, writes = places.told(told)
    _nvidia()  # first: what the limits are depends on whether there is a GPU
    serves = told["port"] is not None
    limits.limit(reads, first=told["first"], seconds=told["seconds"], serves=serves)
    prctl = ctypes.CDLL(None).prctl
    for capability in {*range(_CAPABILITIES)} - {_CAP_DAC_OVERRIDE}:
        prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0)  # who is not root has none to lose
    prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    if landlock.abi():
        hidden = told["hidden"]
        seen = [
            *places.system(hidden, command),
            *(found for path in reads for found in places.shown(path, hidden)),
        ]
        rules = [
            *((path, landlock.READ if whole else landlock.LIST) for path, whole in seen),
            *((path, landlock.USE | landlock.READ) for path in places.devices()),
            *((path, landlock.RUN) for path in places.programs(command[0])),
            *((path, landlock.WRITE) for path in writes),
            (places.SHARED_MEMORY, landlock.SHARE if places.clear() else landlock.WRITE),
            *_itself(),
        ]
        landlock.restrict(rules, port=told["port"])
    if seccomp.known():
        seccomp.restrict(os.getpid(), cuda=places.has_gpu(), listens=serves)


def _itself() -> Iterator[tuple[str, int]]:
    """What it may do with what the kernel tells of it; that stands beside the whole network."""
    if places.has_gpu():
        # CUDA names its threads, and does not start without. So might one that wants to be the last to be
        # ended. Each thread has a door of its own to the network's files: to close the others helps nobody.
        yield from (("/proc/self", landlock.READ), ("/proc/self/task", landlock.OWN))
    else:
        yield from ((f"/proc/self/{name}", landlock.READ) for name in places.ITSELF)
        yield from ((f"/proc/self/{name}", landlock.LIST) for name in ("fd", "task"))


def missing() -> list[str]:
    """What this machine has not; empty where the cage is whole."""
    abi = landlock.abi()
    return [
        *(["Landlock (files)"] if not abi else []),
        *(["seccomp (network, other processes)"] if not seccomp.known() else []),
    ]


def _nvidia() -> None:
    """Have the driver's own program make its device files, which nobody can from within."""
    there = os.path.exists("/dev/nvidia-uvm") or not os.path.exists("/proc/driver/nvidia")
    if not there and os.path.exists(_MODPROBE):
        with contextlib.suppress(OSError, subprocess.SubprocessError):
            subprocess.run([_MODPROBE, "-c0", "-u"], check=False, timeout=10, capture_output=True)
