# SPDX-License-Identifier: Apache-2.0
"""`goodbot restore PATH`: a backup takes the place of the state directory."""

from __future__ import annotations

import argparse
import asyncio
from datetime import datetime
from pathlib import Path

from goodbot.base.clock import SystemClock
from goodbot.base.printing import one_line, print_answer, say, say_lines
from goodbot.cli.asking import agrees, types
from goodbot.cli.backup.authority import WORDS
from goodbot.cli.backup.restore import UnpackedBackup, prepared, swap
from goodbot.cli.offline import open_anyway
from goodbot.config.vault import placed


def main(arguments: argparse.Namespace) -> int:
    """Check it, show it, ask, exchange."""
    return asyncio.run(_restore(arguments))


async def _restore(arguments: argparse.Namespace) -> int:
    path: Path = arguments.path.expanduser()
    now = SystemClock().now()
    _, plugins = open_anyway(arguments.home, arguments.config)
    key = placed(arguments.key or "")
    async with prepared(path, arguments.home, plugins, now=now, key=key) as ready:
        if not arguments.json:
            say_lines(_lines(path, ready))
        question = f"Put it in place of {arguments.home}?" if ready.replaces else "Bring it back?"
        if not (_accepts(arguments, ready) and agrees(question, yes=arguments.yes)):
            say("Nothing was changed.")
            return 1
        before = swap(ready, arguments.home, now=now)
    about = ready.about
    told = [f"{arguments.home} is what it was at {_date(about.created_at)}."]
    if before:
        told.append(f"What was there lies in {before}: delete it when you need it no more.")
    told.append(
        "Tokens are in no backup: those that are kept here stay, and `goodbot doctor` says whether one "
        "is missing. Programs get theirs anew from `goodbot connect`, browsers sign in again."
    )
    data = {
        "home": str(arguments.home),
        "before": str(before) if before else None,
        "created_at": about.created_at,
        "turns": about.turns,
        "ratings": about.ratings,
        "adapters": about.adapters,
        "notes": list(ready.notes),
        "gains": [{"text": gain.text, "accepted": gain.word} for gain in ready.gains],
    }
    print_answer({"text": "\n".join(told), "data": data}, as_json=arguments.json)
    return 0


def _accepts(arguments: argparse.Namespace, ready: UnpackedBackup) -> bool:
    """Whether the person agrees to each kind of thing that weighs more than a yes."""
    for word in ready.words:
        what = WORDS[word]
        if arguments.json:  # nothing was shown
            what += one_line(f" ({'; '.join(gain.text for gain in ready.gains if gain.word == word)})")
        if not types(word, what, accepted=arguments.accept or ()):
            return False
    return True


def _lines(path: Path, ready: UnpackedBackup) -> list[str]:
    about = ready.about
    lines = [f"{path}: made {_date(about.created_at)} by goodbot {about.goodbot}, {about.holds}"]
    lines += [f"  {note}" for note in ready.notes]
    if ready.gains:
        lines.append("  What may be after it, and is not so now:")
        lines += [f"    {gain.text}" for gain in ready.gains]
    lines += [f"  replaces {line}" for line in ready.replaces]
    return lines


def _date(seconds: float) -> str:
    return datetime.fromtimestamp(seconds).astimezone().strftime("%Y-%m-%d %H:%M")
