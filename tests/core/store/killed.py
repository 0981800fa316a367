# SPDX-License-Identifier: Apache-2.0
"""A `goodbot backup`, an import, or an export of a version, that is killed when most of it is done."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from goodbot.config.layout import DATABASE
from goodbot.store import workshop

_KILLED = """
import os, signal, sys
from pathlib import Path
from goodbot.cli.backup import archive, make
archive.write = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
make.make(Path(sys.argv[1]), Path(sys.argv[2]), {}, now=1.8e9)
"""


def backup(home: Path, target: Path) -> Path:
    """What it leaves: a directory with a copy of the whole database."""
    before = {*target.parent.iterdir()}
    subprocess.run([sys.executable, "-c", _KILLED, str(home), str(target)], check=False)
    [left] = {*target.parent.iterdir()} - before
    assert (left / DATABASE).is_file()
    return left


_KILLED_EXPORT = """
import os, signal, sys
from goodbot.cli import main
from goodbot.learning.adapters import exporting
exporting._unpacked = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
main(["--home", sys.argv[1], "adapters", "export", "1", "--out", sys.argv[2]])
"""


def export(home: Path, target: Path) -> Path:
    """What it leaves: a directory with the whole version."""
    before = {*target.parent.iterdir()}
    subprocess.run([sys.executable, "-c", _KILLED_EXPORT, str(home), str(target)], check=False)
    [left] = {*target.parent.iterdir()} - before
    assert next(path for path in left.rglob(target.name)).stat().st_size > 0
    return left


_KILLED_IMPORT = """
import os, signal, sys
from goodbot.cli import client, main
client.ask = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
main(["--home", sys.argv[1], "import", sys.argv[2]])
"""


def bring_in(home: Path, source: Path) -> Path:
    """What it leaves: a file with all its answers."""
    subprocess.run([sys.executable, "-c", _KILLED_IMPORT, str(home), str(source)], check=False)
    [left] = home.rglob(workshop.ANSWERS)
    return left
