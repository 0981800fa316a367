# SPDX-License-Identifier: Apache-2.0
"""`goodbot import FILE`: rated answers of another goodbot, or of another program.

The file is read here, bit by bit, and laid ready in the state directory; the daemon checks and stores it, or
this process while none runs. Done again, it goes on where it was: nothing is stored twice.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
from collections.abc import Callable, Generator, Mapping
from pathlib import Path
from typing import Any

from goodbot import config
from goodbot.access.limits import no_reserve
from goodbot.api.progress import progress_line
from goodbot.api.sentences import words
from goodbot.api.texts.terminal import phrase
from goodbot.base.errors import GoodbotError, UsageError
from goodbot.base.printing import print_answer
from goodbot.base.scratch import Scratch
from goodbot.cli import client
from goodbot.config import private, vault
from goodbot.conversation.imports.forms import records
from goodbot.store import workshop


def main(arguments: argparse.Namespace) -> int:
    """Lay it ready, let it be stored, say what came of it."""
    source: Path = arguments.path.expanduser()
    if not source.is_file():
        raise UsageError(phrase("decrypt_no_file", path=source))
    with progress_line(quiet=arguments.json) as show, _staged(arguments, source, show) as name:
        answer = client.ask(arguments.home, "import", [name], lambda: _alone(arguments, name))
    print_answer(answer, as_json=arguments.json)
    return 1 if answer["data"]["left_out"] else 0


@contextlib.contextmanager
def _staged(
    arguments: argparse.Namespace, source: Path, show: Callable[[Mapping[str, Any]], None]
) -> Generator[str]:
    """The file's answers, one a line, for as long as the block lasts. Raises GoodbotError.

    Where this process is killed, they are deleted by whoever sweeps next, at the latest at a start.
    """
    place: Path = arguments.home / workshop.IMPORTS
    own: Scratch | None = None
    config.load(arguments.home, arguments.config)  # a directory that is no goodbot's is told so
    try:
        _ask_for_room(arguments.home, source.stat().st_size)
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
        own = Scratch(place, workshop.STAGED)
        path = place / own.path.name / workshop.ANSWERS  # by the name of the directory its key is known
        with (
            vault.lent(source.absolute().parent, vault.of(path)),  # it may be an export of ours
            contextlib.closing(private.create(path, anew=False)) as file,
        ):
            for done, of, record in records(source, arguments.format, mine=arguments.mine):
                _ask_for_room(arguments.home)
                file.write(f"{json.dumps(record)}\n".encode())
                show({"phase": "reading", "step": min(100, 100 * done // max(1, of)), "steps": 100})
            file.finish()
        yield own.path.name
    except OSError as error:
        raise GoodbotError(phrase("import_not", why=error.strerror or error)) from error
    finally:
        if own is not None:
            own.remove()


def _ask_for_room(home: Path, ahead: int = 0) -> None:
    """Raises GoodbotError where the disk's reserve for ratings would be used up."""
    if (full := no_reserve(home, ahead=ahead)) is not None:
        raise GoodbotError(words(full))


def _alone(arguments: argparse.Namespace, name: str) -> dict[str, Any]:
    from goodbot.cli import offline

    settings = config.load(arguments.home, arguments.config)
    return asyncio.run(offline.run(settings, "import", [name], server=False))
