# SPDX-License-Identifier: Apache-2.0
"""`goodbot backup [PATH]`: a whole goodbot in one file."""

from __future__ import annotations

import argparse
from datetime import datetime
from pathlib import Path

from goodbot.api.texts.terminal import phrase
from goodbot.base import encrypted
from goodbot.base.clock import SystemClock
from goodbot.base.printing import print_answer
from goodbot.cli.backup.make import BackupResult, make
from goodbot.cli.offline import open_anyway, require_file
from goodbot.config.layout import DATABASE
from goodbot.store import cipher
from goodbot.store.backup import megabytes


def main(arguments: argparse.Namespace) -> int:
    """Write it, say what is in it and what is not."""
    now = SystemClock().now()
    named: Path | None = arguments.path
    require_file(arguments.home, arguments.config)
    _, plugins = open_anyway(arguments.home, arguments.config)
    ending = ".tar.enc" if cipher.key(arguments.home / DATABASE) else ".tar"
    target = named or Path(f"goodbot-{_local(now).strftime('%Y%m%d-%H%M%S')}{ending}")
    made = make(arguments.home, target.expanduser(), plugins.connectors(), now=now, config=arguments.config)
    about = made.about
    print_answer(
        {
            "text": "\n".join(_lines(made)),
            "data": {
                "path": str(made.path),
                "bytes": made.size,
                "schema": about.schema,
                "turns": about.turns,
                "ratings": about.ratings,
                "adapters": about.adapters,
                "left_out": list(about.left_out),
            },
        },
        as_json=arguments.json,
    )
    return 0


def _lines(made: BackupResult) -> list[str]:
    about = made.about
    lines = [
        phrase("backup_made", path=made.path, size=megabytes(made.size), holds=about.holds),
        phrase("backup_without"),
    ]
    if key := encrypted.mark(made.path):
        lines.append(phrase("backup_key", id=key.id))
    for name in about.left_out:
        lines.append(phrase("backup_left_out", name=name))
    return lines


def _local(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds).astimezone()
