# SPDX-License-Identifier: Apache-2.0
"""`goodbot restore PATH`: a backup takes the place of the state directory."""

from __future__ import annotations

import argparse
import asyncio
from datetime import datetime
from pathlib import Path

from goodbot.api.texts import beside, pauses
from goodbot.api.texts.terminal import here, phrase
from goodbot.base.clock import SystemClock
from goodbot.base.printing import one_line, print_answer, say, say_lines
from goodbot.cli.asking import agrees, types
from goodbot.cli.backup.restore import UnpackedBackup, prepared, swap
from goodbot.cli.offline import open_anyway, require_file
from goodbot.config.vault import placed


def main(arguments: argparse.Namespace) -> int:
    """Check it, show it, ask, exchange."""
    return asyncio.run(_restore(arguments))


async def _restore(arguments: argparse.Namespace) -> int:
    path: Path = arguments.path.expanduser()
    now = SystemClock().now()
    require_file(arguments.home, arguments.config)
    _, plugins = open_anyway(arguments.home, arguments.config)
    key = placed(arguments.key or "")
    async with prepared(path, arguments.home, plugins, now=now, key=key) as ready:
        if not arguments.json:
            say_lines(_lines(path, ready))
        instead = phrase("restore_instead", home=arguments.home)
        question = instead if ready.replaces else phrase("restore_back")
        if not (_accepts(arguments, ready) and agrees(question, yes=arguments.yes)):
            say(phrase("not_changed"))
            return 1
        before = swap(ready, arguments.home, now=now)
    about = ready.about
    told = [phrase("restore_done", home=arguments.home, date=_date(about.created_at))]
    if before:
        told.append(phrase("restore_before", before=before))
    told.append(phrase("restore_tokens"))
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
        what = phrase(f"accept_{word}")
        if arguments.json:  # nothing was shown
            gains = pauses(here(), *(gain.text for gain in ready.gains if gain.word == word))
            what = beside(what, one_line(gains), here())
        if not types(word, what, accepted=arguments.accept or ()):
            return False
    return True


def _lines(path: Path, ready: UnpackedBackup) -> list[str]:
    about = ready.about
    date = _date(about.created_at)
    lines = [phrase("restore_made", path=path, date=date, version=about.goodbot, holds=about.holds)]
    lines += [f"  {note}" for note in ready.notes]
    if ready.gains:
        lines.append(f"  {phrase('restore_gains')}")
        lines += [f"    {gain.text}" for gain in ready.gains]
    lines += [f"  {phrase('restore_replaces', what=line)}" for line in ready.replaces]
    return lines


def _date(seconds: float) -> str:
    return datetime.fromtimestamp(seconds).astimezone().strftime("%Y-%m-%d %H:%M")
