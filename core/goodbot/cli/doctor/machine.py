# SPDX-License-Identifier: Apache-2.0
"""The machine: whether its clock can be believed."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

from goodbot.api.setup import Check, Examined, Probe, fail, ok, warn
from goodbot.base.clock import Clock, SystemClock
from goodbot.base.errors import GoodbotError
from goodbot.cli.doctor.data import path
from goodbot.store import inspection

_SLACK = 120.0
"""Seconds that a stored event may lie ahead of the clock."""
_SYNC = "set it from the network: timedatectl set-ntp true, or System Settings on a Mac"
_SYSTEM = SystemClock()


async def clock(examined: Examined, clock: Clock = _SYSTEM) -> Sequence[Check]:
    """The time, against what lies on this disk; connectors compare it with their platform's."""
    now = clock.now()
    if now < Path(__file__).stat().st_mtime - 86400:
        return [fail("clock", f"it says {_date(now)}, before this goodbot was installed", _SYNC)]
    try:
        async with inspection.look(path(examined.config)) as db:
            newest = await inspection.newest(db)
    except GoodbotError:
        newest = 0.0
    if newest > now + _SLACK:
        text = f"it has gone back: it says {_date(now)}, and the last event came {_date(newest)}"
        return [warn("clock", text, _SYNC)]
    zone = time.localtime(now).tm_zone
    if not zone:
        return [warn("clock", "the time zone is not known: a schedule means UTC", "set TZ")]
    return [ok("clock", f"{_date(now)} {zone}")]


def _date(seconds: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(seconds))


PROBES = (Probe(name="clock", run=clock),)
