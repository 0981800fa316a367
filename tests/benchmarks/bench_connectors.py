# SPDX-License-Identifier: Apache-2.0
"""Two hundred ratings a second for half a minute, on each fake platform, beside a real goodbot.

`goodbot run` is a process of its own, on the tiny model; half of the runs train meanwhile. The platform
and its people live in this process. Nothing may be lost or doubled; the table says how long the platform
waited for its acknowledgement, from the moment at which a rating was due.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import tempfile
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path

import tomlkit
from goodbot.testing.connector_base import eventually
from goodbot_fakes.discord import FakeDiscord
from goodbot_fakes.slack import FakeSlack
from goodbot_fakes.teams import FakeTeams
from goodbot_fakes.telegram import FakeTelegram

from tests.benchmarks import load
from tests.benchmarks.load import Outcome, Platform
from tests.benchmarks.load_discord import BEAT, DiscordLoad
from tests.benchmarks.load_slack import SlackLoad
from tests.benchmarks.load_teams import PACE, TeamsLoad
from tests.benchmarks.load_telegram import TelegramLoad
from tests.end_to_end.daemon import Daemon, running

RATE = 200
SECONDS = 30.0
LESSONS = 40
RATERS = 60


@dataclass(frozen=True, kw_only=True)
class Measured:
    """One run: what the trainer did meanwhile, how the load went, what of a processor it took."""

    training: str
    outcome: Outcome
    cpu: float
    waited: float


Open = Callable[[], contextlib.AbstractAsyncContextManager[Platform]]


ANSWERS = -(-round(RATE * SECONDS) // RATERS)


@contextlib.asynccontextmanager
async def slack() -> AsyncIterator[Platform]:
    async with FakeSlack() as fake:
        yield SlackLoad(fake, raters=RATERS, answers=ANSWERS, lessons=LESSONS)


@contextlib.asynccontextmanager
async def telegram() -> AsyncIterator[Platform]:
    async with FakeTelegram() as fake:
        yield TelegramLoad(fake, raters=RATERS, answers=ANSWERS, lessons=LESSONS)


@contextlib.asynccontextmanager
async def discord() -> AsyncIterator[Platform]:
    async with FakeDiscord(heartbeat=BEAT) as fake:
        yield DiscordLoad(fake, raters=RATERS, answers=ANSWERS, lessons=LESSONS)


@contextlib.asynccontextmanager
async def teams() -> AsyncIterator[Platform]:
    async with FakeTeams(pace=PACE) as fake:
        yield TeamsLoad(fake, raters=RATERS, answers=ANSWERS, lessons=LESSONS)


PLATFORMS: dict[str, Open] = {"discord": discord, "slack": slack, "teams": teams, "telegram": telegram}


def main(argv: list[str] | None = None) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--only", choices=PLATFORMS)
    given = parser.parse_args(argv)
    names = [given.only] if given.only else list(PLATFORMS)
    print(f"\n## {RATE} ratings a second for {SECONDS:.0f} s\n")
    print("| platform | training | p50 ms | p90 | p99 | latest | lost | doubled | CPU | waited |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    for _ in range(given.repeats):
        for name in names:
            for trains in (False, True):
                print(_row(name, asyncio.run(_measure(PLATFORMS[name], trains))), flush=True)
    print(
        "\nCPU: goodbot's own processor seconds in a second; waited: seconds in a second in which its"
        "\nmain thread could have run and had no processor."
    )


async def _measure(open_: Open, trains: bool) -> Measured:
    """One run on a fresh goodbot."""
    with tempfile.TemporaryDirectory() as directory:
        home = Path(directory) / "home"
        async with open_() as platform, running(Daemon(home, _config(platform), platform.environ)) as daemon:
            assert daemon.process is not None
            await platform.prepare()
            if trains:
                await platform.teach(LESSONS)
                await platform.train()
                await eventually(lambda: _trains(home), 120)
            before = (*_scheduled(daemon.process.pid), time.monotonic())
            outcome = await load.run(platform, home, rate=RATE, seconds=SECONDS)
            after = (*_scheduled(daemon.process.pid), time.monotonic())
            trained = _trained(home, time.time() - (after[2] - before[2]), outcome.seconds)
    ran, waited, seconds = (b - a for a, b in zip(before, after, strict=True))
    return Measured(
        training=f"{trained:.0f} of {SECONDS:.0f} s",
        outcome=outcome,
        cpu=ran / seconds,
        waited=waited / seconds,
    )


async def _trains(home: Path) -> bool:
    """Whether a child trains."""
    return bool(
        load.query(
            home, "SELECT 1 FROM runs WHERE state = 'running' AND json_extract(progress, '$.starts') > 0"
        )
    )


def _trained(home: Path, begin: float, seconds: float) -> float:
    """For how many of the load's seconds a run was under way."""
    found = load.query(home, "SELECT started_at, coalesce(finished_at, 1e12) FROM runs")
    end = begin + seconds
    return sum(max(0.0, min(end, last) - max(begin, first)) for first, last in found)


def _config(platform: Platform) -> str:
    return tomlkit.dumps(
        {
            "serving": {"max_tokens": 16, "history": 0, "messages_per_minute": 100_000},
            "training": {
                "min_ratings": LESSONS,
                "schedule": "manual",
                "max_load": 1.0,
                "settings": {"steps": 1000, "max_passes": 1000},  # it shall not end before the load
            },
            "connectors": {platform.name: dict(platform.section)},
        }
    )


def _scheduled(pid: int) -> tuple[float, float]:
    """Seconds that a process has run, and that its main thread has waited for a processor."""
    ran = waited = 0.0
    for task in Path(f"/proc/{pid}/task").iterdir():
        on, off, _ = (task / "schedstat").read_text().split()
        ran += int(on) / 1e9
        waited += int(off) / 1e9 if task.name == str(pid) else 0.0
    return ran, waited


def _row(name: str, measured: Measured) -> str:
    outcome = measured.outcome
    cells = [f"{1000 * outcome.percentile(share):.0f}" for share in (0.5, 0.9, 0.99, 1.0)]
    counts = [str(outcome.lost), str(outcome.extra)]
    shares = [f"{measured.cpu:.2f}", f"{measured.waited:.2f}"]
    return "| " + " | ".join([name, measured.training, *cells, *counts, *shares]) + " |"


if __name__ == "__main__":
    main()
