# SPDX-License-Identifier: Apache-2.0
"""One thing that goodbot has left somewhere."""

from __future__ import annotations

import stat
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from goodbot.api.plugins import PluginHost
from goodbot.base import trees
from goodbot.config import Config


@dataclass(frozen=True, kw_only=True)
class Leaving:
    """Who leaves."""

    home: Path
    config: Config | None
    """None if it cannot be read."""
    plugins: PluginHost
    keep_data: bool = False


@dataclass(frozen=True, kw_only=True)
class Trace:
    """`remove` takes it away and raises GoodbotError or OSError when it cannot."""

    kind: str
    """`service`, `daemon`, `platform`, `token`, `key`, `socket`, `scratch`, `weights` or `data`."""
    what: str
    """A line for a person."""
    size: int = 0
    """Bytes that become free."""
    remove: Callable[[], Awaitable[None]] | None = None
    """None for what stays."""
    done: Sequence[str] = ()
    """What `remove` has done, a line each, where that says more than `what`; empty before."""
    stays: str = ""
    """Why it stays, as a sentence."""


def staying(kind: str, what: str, why: str) -> Trace:
    """What a person has to remove themselves, or may keep."""
    return Trace(kind=kind, what=what, stays=why)


def size_of(path: Path) -> int:
    """Bytes of all files there; links are not followed."""
    if path.is_symlink() or not path.is_dir():
        return path.lstat().st_size
    try:
        found = [entry.lstat() for entry in trees.below(path)]
    except OSError:  # deeper than a path can say: it is deleted all the same
        return 0
    return sum(entry.st_size for entry in found if not stat.S_ISDIR(entry.st_mode))


def delete(path: Path) -> None:
    """A file, a link or a whole directory. Raises OSError."""
    if path.is_dir() and not path.is_symlink():
        trees.remove(path)
    else:
        path.unlink(missing_ok=True)
