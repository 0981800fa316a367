"""`goodbot restore PATH`: a backup takes the place of the state directory."""

from __future__ import annotations

import argparse
import asyncio
from datetime import datetime
from pathlib import Path

from goodbot.backups.restore import Prepared, prepared, swap
from goodbot.cli import output
from goodbot.cli.asking import agrees
from goodbot.clock import SystemClock
from goodbot.printing import say


def main(arguments: argparse.Namespace) -> int:
    """Check it, show it, ask, exchange."""
    return asyncio.run(_restore(arguments))


async def _restore(arguments: argparse.Namespace) -> int:
    path: Path = arguments.path.expanduser()
    async with prepared(path, arguments.home) as ready:
        if not arguments.json:
            say("\n".join(_lines(path, ready)))
        question = f"Put it in place of {arguments.home}?" if ready.replaces else "Bring it back?"
        if not agrees(question, yes=arguments.yes):
            say("Nothing was changed.")
            return 1
        before = swap(ready, arguments.home, now=SystemClock().now())
    about = ready.about
    told = [f"{arguments.home} is what it was at {_date(about.created_at)}."]
    if before:
        told.append(f"What was there lies in {before}: delete it when you need it no more.")
    told.append("Tokens are in no backup: `goodbot doctor` says whether one is missing.")
    data = {
        "home": str(arguments.home), "before": str(before) if before else None,
        "created_at": about.created_at, "turns": about.turns, "ratings": about.ratings,
        "adapters": about.adapters, "notes": list(ready.notes),
    }  # fmt: skip
    output.print_answer({"text": "\n".join(told), "data": data}, as_json=arguments.json)
    return 0


def _lines(path: Path, ready: Prepared) -> list[str]:
    about = ready.about
    lines = [
        f"{path}: made {_date(about.created_at)} by goodbot {about.goodbot}, "
        f"{about.turns} answers, {about.ratings} ratings, {about.adapters} adapters"
    ]
    lines += [f"  {note}" for note in ready.notes]
    lines += [f"  replaces {line}" for line in ready.replaces]
    return lines


def _date(seconds: float) -> str:
    return datetime.fromtimestamp(seconds).astimezone().strftime("%Y-%m-%d %H:%M")
