# SPDX-License-Identifier: Apache-2.0
"""What fits this machine reads it, off the event loop; the last reading, and what of it has lasted."""

from __future__ import annotations

import asyncio
import logging
import os
import shutil
import sys
from collections.abc import Callable, Collection
from datetime import datetime

from goodbot.api.sentences import Condition
from goodbot.base.clock import Clock
from goodbot.base.machine import linux, macos, nvidia
from goodbot.base.machine.tool import ask
from goodbot.learning.idle.limits import Limits, Readings

logger = logging.getLogger(__name__)

FRESH_SECONDS = 5.0
"""So long a reading is not taken again."""
SUSTAINED_SECONDS = 60.0
"""So long it must be pressing before a run is interrupted,"""
RELIEF_SECONDS = 120.0
"""and so long at ease before it goes on; quiet hours and the battery, too."""


class LoadMonitor:
    """Asks the machine at most every five seconds, in a thread: the tools may be slow.

    Whether a run may begin is decided by the present moment, whether one that runs is interrupted by
    what has lasted.
    """

    def __init__(
        self, *, limits: Limits, clock: Clock, read: Callable[[bool], Readings] | None = None
    ) -> None:
        """`read` gets whether a run of ours is under way. None: nothing but the clock objects."""
        self._limits = limits
        self._clock = clock
        self._read = read
        self._readings = Readings()
        self._at = float("-inf")
        self._reading = asyncio.Lock()
        self._lasting = Lasting()

    async def before_run(self) -> Condition | None:
        """Why no run should begin or go on now; one that was interrupted waits for two minutes' ease."""
        now = await self.objection()
        return self._lasting.look(now, self._clock.monotonic()) or now

    async def during_run(self) -> Condition | None:
        """Why the run under way should be interrupted: what has been pressing for a minute."""
        now = await self.objection(training=True)
        return self._lasting.look(now, self._clock.monotonic())

    async def objection(self, *, training: bool = False) -> Condition | None:
        """Why training should wait; None if nothing objects."""
        async with self._reading:
            if self._read is not None and self._clock.monotonic() >= self._at + FRESH_SECONDS:
                try:
                    self._readings = await asyncio.to_thread(self._read, training)
                except Exception:
                    # An unforeseen format must not keep a machine from training for ever.
                    logger.exception("battery and load cannot be read; nothing waits for them")
                    self._readings, self._read = Readings(), None
                self._at = self._clock.monotonic()
        local = datetime.fromtimestamp(self._clock.now())  # noqa: DTZ006  the owner's own clock
        return self._limits.objection(self._readings, local)


class Lasting:
    """Hysteresis for a run under way: interrupted after a minute, taken up after two."""

    def __init__(self) -> None:
        self._since: float | None = None
        """When what speaks for a change began."""
        self.why: Condition | None = None
        """The objection for which the run is held; None while it may go on."""

    def look(self, objection: Condition | None, now: float) -> Condition | None:
        """Take note of the present objection, `now` in seconds; returns `why` as it is from now on."""
        if bool(objection) == bool(self.why):
            self._since = None
            self.why = objection
            return self.why
        self._since = now if self._since is None else self._since
        if now - self._since >= (SUSTAINED_SECONDS if objection else RELIEF_SECONDS):
            self._since, self.why = None, objection
        return self.why


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
