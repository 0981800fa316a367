# SPDX-License-Identifier: Apache-2.0
"""The machine: whether its clock can be believed."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

from goodbot.api.setup import Check, Examined, Probe, fail, ok, warn
from goodbot.api.texts.terminal import phrase
from goodbot.base.clock import Clock, SystemClock
from goodbot.base.errors import GoodbotError
from goodbot.cli.doctor.data import path
from goodbot.store import inspection

_SLACK = 120.0
"""Seconds that a stored event may lie ahead of the clock."""
_SYSTEM = SystemClock()


async def clock(examined: Examined, clock: Clock = _SYSTEM) -> Sequence[Check]:
    """The time, against what lies on this disk; connectors compare it with their platform's."""
    now = clock.now()
    if now < Path(__file__).stat().st_mtime - 86400:
        return [fail("clock", phrase("doc_clock_early", date=_date(now)), phrase("doc_clock_fix"))]
    try:
        async with inspection.look(path(examined.config)) as db:
            newest = await inspection.newest(db)
    except GoodbotError:
        newest = 0.0
    if newest > now + _SLACK:
        text = phrase("doc_clock_back", date=_date(now), newest=_date(newest))
        return [warn("clock", text, phrase("doc_clock_fix"))]
    zone = time.localtime(now).tm_zone
    if not zone:
        return [warn("clock", phrase("doc_zone"), phrase("doc_zone_fix"))]
    return [ok("clock", f"{_date(now)} {zone}")]


def _date(seconds: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(seconds))


PROBES = (Probe(name="clock", run=clock),)
