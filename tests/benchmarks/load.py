# SPDX-License-Identifier: Apache-2.0
"""Many ratings a second from many people on a fake platform, and what became of them.

The load is open: each rating has its moment, whether or not the ones before are acknowledged, and its
latency counts from that moment.
"""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from goodbot.testing.connector_base import eventually

DRAIN_SECONDS = 420.0
"""Slack tries for six minutes."""
PRESSES = 5
"""One rating of so many is a press on a button, the others are reactions."""


@dataclass(frozen=True, kw_only=True)
class Opinion:
    """What one person says of one message, by their ids on the platform."""

    rater: str
    channel: str
    message: str
    value: float


class Platform(Protocol):
    """The far side of a load."""

    name: str
    environ: Mapping[str, str]
    section: Mapping[str, Any]
    """`[connectors.NAME]` of a goodbot that is under load."""

    async def prepare(self) -> None:
        """Let the bot answer what will be rated."""
        ...

    async def teach(self, count: int) -> None:
        """The owner rates `count` answers that nobody else will rate, half of them bad."""
        ...

    async def train(self) -> None:
        """The owner says so."""
        ...

    async def rate(self, number: int) -> tuple[Any, Opinion]:
        """Somebody rates; the delivery's key, and what it says. Each time another opinion."""
        ...

    def settled(self) -> Mapping[Any, float]:
        """When each delivery was acknowledged for good, in `time.monotonic` seconds; `inf`: never."""
        ...


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """How it went. Latencies in seconds, ascending."""

    ratings: int
    seconds: float
    """From the first rating's moment to the last one's."""
    latencies: tuple[float, ...]
    lost: int
    """Ratings that the labels do not show as they were meant."""
    extra: int
    """Events in the ledger beyond the ratings."""

    def percentile(self, share: float) -> float:
        return self.latencies[min(len(self.latencies) - 1, int(share * len(self.latencies)))]


async def run(platform: Platform, home: Path, *, rate: float, seconds: float) -> Outcome:
    """Rate so often for so long, wait for all acknowledgements, and look into the database."""
    before = _events(home)
    due: dict[Any, float] = {}
    meant: dict[tuple[str, str, str], float] = {}
    start = time.monotonic()
    count = round(rate * seconds)
    for number in range(count):
        moment = start + number / rate
        if (wait := moment - time.monotonic()) > 0:
            await asyncio.sleep(wait)
        key, said = await platform.rate(number)
        due[key] = moment
        meant[said.rater, said.channel, said.message] = said.value
    took = time.monotonic() - start

    async def all_settled() -> bool:
        return due.keys() <= platform.settled().keys()

    await eventually(all_settled, DRAIN_SECONDS)
    settled = platform.settled()
    stored = _labels(home, platform.name)
    return Outcome(
        ratings=count,
        seconds=took,
        latencies=tuple(sorted(settled[key] - due[key] for key in due)),
        lost=sum(stored.get(who) != value for who, value in meant.items()),
        extra=_events(home) - before - count,
    )


def query(home: Path, sql: str, *values: Any) -> list[tuple[Any, ...]]:
    """What the database of a running goodbot says."""
    address = f"file:{home / 'goodbot.db'}?mode=ro"
    with contextlib.closing(sqlite3.connect(address, uri=True, timeout=10)) as db:
        return db.execute(sql, values).fetchall()


def _events(home: Path) -> int:
    return query(home, "SELECT count(*) FROM events")[0][0]


def _labels(home: Path, connector: str) -> dict[tuple[str, str, str], float]:
    """Rater, channel and message → value, as the ledger adds them up."""
    found = query(
        home,
        "SELECT l.rater, m.channel, m.message, l.value FROM labels l"
        " JOIN messages m ON m.turn = l.turn WHERE m.connector = ? AND l.value IS NOT NULL",
        connector,
    )
    prefix = f"{connector}:"
    return {(who.removeprefix(prefix), place, what): value for who, place, what, value in found}
