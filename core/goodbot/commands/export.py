"""export: the rated answers as a file on the bot's own machine. Nothing of it goes into a chat."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from goodbot.commands.base import Call, Command, Result
from goodbot.errors import GoodbotError
from goodbot.people.authorization import Grant
from goodbot.store import exporting

EXPORTS = "exports"
"""The directory in the state directory; `forget` empties it, since its files hold words."""


async def export(call: Call) -> Result:
    """One JSON object a line, oldest answer first; see `goodbot.store.exporting`."""
    s = call.services
    rated = await s.store.read(exporting.rated)
    name = datetime.fromtimestamp(s.clock.now(), UTC).strftime("%Y%m%d-%H%M%S.jsonl")
    path = s.config.home / EXPORTS / name
    try:
        await asyncio.to_thread(_write, path, rated)
    except OSError as error:
        raise GoodbotError(f"nothing was exported: {error.strerror or error}") from error
    count = f"{len(rated)} rated answer{'' if len(rated) == 1 else 's'}"
    return Result(
        text=f"{count}: {EXPORTS}/{name} in goodbot's directory on its machine.",
        data={"answers": len(rated), "path": str(path)},
    )


def _write(path: Path, lines: Sequence[Mapping[str, Any]]) -> None:
    """The whole file or none, readable by the owner alone."""
    path.parent.mkdir(mode=0o700, exist_ok=True)
    partial = path.with_name(f"{path.name}.partial")
    with open(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        for line in lines:
            file.write(json.dumps(line, ensure_ascii=False) + "\n")
        file.flush()
        os.fsync(file.fileno())
    partial.rename(path)


def clear(home: Path) -> int:
    """Delete what was exported; returns how many files that were. Raises OSError."""
    files = [entry for entry in (home / EXPORTS).glob("*") if entry.is_file()]
    for file in files:
        file.unlink()
    return len(files)


COMMANDS = (
    Command(
        name="export",
        grant=Grant.ADMINISTER,
        personal=True,
        run=export,
        summary="the rated answers, reasons and better answers as a file on the bot's machine",
    ),
)
