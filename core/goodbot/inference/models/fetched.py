# SPDX-License-Identifier: Apache-2.0
"""What goodbot itself has brought from the hub, so that leaving can take exactly that away again.

`home/fetched.json` holds a list of objects, one a commit of a model, and their MAC (`goodbot.base.sealed`)::

    {"repo": "owner/name", "commit": "40 hex digits", "path": "…/models--owner--name/snapshots/COMMIT",
     "blobs": ["file names in models--owner--name/blobs that goodbot has written"]}

What another has put there is not believed: nothing is deleted by it. It is written before the first
byte arrives, so that an interrupted download is known too. A model that was in the cache before is
never listed.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from goodbot.base import durable, sealed
from goodbot.base.errors import ConfigError
from goodbot.base.worded import Worded
from goodbot.config.lock import changing, prepare_home

FILE = "fetched.json"


@dataclass(frozen=True, kw_only=True, slots=True)
class Fetched:
    """One commit of a model that goodbot has downloaded, wholly or in part."""

    repo: str
    commit: str
    path: str
    blobs: tuple[str, ...]

    @property
    def folder(self) -> Path:
        """`models--owner--name` in the hub's cache."""
        return Path(self.path).parent.parent


def entries(home: Path) -> list[Fetched]:
    """All that goodbot has downloaded. Raises ConfigError for a file that is not ours."""
    known = _believed(home)
    if known is None:
        other = (
            "was not made by this goodbot, so no model that it names is removed: delete those that you need "
            "no more yourself, and this file"
        )
        raise ConfigError(Worded(other), path=home / FILE)
    return known


def _believed(home: Path) -> list[Fetched] | None:
    """What `_write` has put there; None for what it has not. Raises ConfigError."""
    path = home / FILE
    try:
        kept: Any = json.loads(path.read_text(encoding="utf-8"))
        if isinstance(kept, list):  # of a goodbot that sealed none
            return None
        listed: list[Any] = kept["models"]
        if not sealed.holds(home, FILE, _dumped(listed), kept["mac"]):
            return None
        return [
            Fetched(
                repo=str(entry["repo"]),
                commit=str(entry["commit"]),
                path=str(entry["path"]),
                blobs=tuple(map(str, entry["blobs"])),
            )
            for entry in listed
        ]
    except FileNotFoundError:
        return []
    except (OSError, ValueError, TypeError, KeyError, RecursionError) as error:
        raise ConfigError(Worded("cannot be read: {why}", why=str(error)), path=path) from error


def record(home: Path, entry: Fetched) -> None:
    """Note a download, or more of one; what is not ours is replaced."""
    prepare_home(home)
    with changing(home):
        known = {(one.repo, one.commit, one.path): one for one in _believed(home) or ()}
        key = (entry.repo, entry.commit, entry.path)
        before = known[key].blobs if key in known else ()
        blobs = tuple(sorted({*before, *entry.blobs}))
        known[key] = Fetched(repo=entry.repo, commit=entry.commit, path=entry.path, blobs=blobs)
        _write(home, list(known.values()))


def removable(entry: Fetched) -> list[Path]:
    """The files and links on this disk that may go: nothing that another snapshot uses."""
    snapshot = Path(entry.path)
    folder = entry.folder
    used = {
        link.resolve().name
        for other in _directories(folder / "snapshots")
        if other != snapshot
        for link in other.iterdir()
    }
    found: list[Path] = []
    for blob in entry.blobs:
        if blob in used or "/" in blob or blob in ("", ".", ".."):
            continue
        found += [folder / "blobs" / name for name in (blob, partial_name(blob))]
    # A link to what another snapshot has, too, is of no more use here than one to what goes.
    ours = {*entry.blobs, *used}
    links = snapshot.iterdir() if snapshot.is_dir() else ()
    found += [link for link in links if link.is_symlink() and link.resolve().name in ours]
    return [path for path in found if path.exists() or path.is_symlink()]


def remove(home: Path, entry: Fetched) -> list[Path]:
    """Delete what `removable` lists and the directories that are empty then; returns the files."""
    files = removable(entry)
    for path in files:
        path.unlink()
    with contextlib.suppress(OSError):
        reference = entry.folder / "refs" / "main"
        if reference.read_text(encoding="ascii").strip() == entry.commit:
            reference.unlink()
    for directory in (entry.path, *(entry.folder / n for n in ("snapshots", "blobs", "refs", ""))):
        with contextlib.suppress(OSError):  # not empty: somebody else's
            Path(directory).rmdir()
    with changing(home):
        _write(home, [one for one in entries(home) if one != entry])
    return files


def partial_name(blob: str) -> str:
    """The name of a blob that has not wholly arrived."""
    return f"{blob}.goodbot.incomplete"


def _directories(path: Path) -> Iterator[Path]:
    if path.is_dir():
        yield from (entry for entry in path.iterdir() if entry.is_dir())


def _write(home: Path, known: Sequence[Fetched]) -> None:
    path = home / FILE
    if not known:
        path.unlink(missing_ok=True)
        return
    data = [asdict(entry) for entry in known]
    kept = {"models": data, "mac": sealed.seal(home, FILE, _dumped(data))}
    durable.replace(path, (json.dumps(kept, indent=1) + "\n").encode())


def _dumped(listed: object) -> bytes:
    return json.dumps(listed, sort_keys=True).encode()
