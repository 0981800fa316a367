# SPDX-License-Identifier: Apache-2.0
"""The readers that fit this machine."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Collection

from goodbot.base.machine import linux, macos, nvidia
from goodbot.base.machine.tool import ask
from goodbot.learning.idle.limits import Readings


def read_machine(platform: str = sys.platform) -> Callable[[bool], Readings]:
    """A function that reads it, blocking for moments; it is given whether a run is under way."""
    has_nvidia = shutil.which("nvidia-smi") is not None

    def gpu(ours: Collection[int], training: bool) -> float | None:
        return nvidia.others_gpu(ask, ours, training=training) if has_nvidia else None

    if platform == "darwin":
        return lambda training: Readings(on_battery=macos.on_battery(ask), others_load=macos.others_load(ask))
    if platform != "linux":
        return lambda training: Readings()
    load = linux.Load(pid=os.getpid())
    return lambda training: Readings(
        on_battery=linux.on_battery(), others_load=load.others(), others_gpu=gpu(load.family(), training)
    )
