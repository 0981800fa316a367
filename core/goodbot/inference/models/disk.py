# SPDX-License-Identifier: Apache-2.0
"""The weights that lie on this disk: in the hub's cache, and in goodbot's own models directory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from goodbot.base.errors import ConfigError
from goodbot.base.worded import said_by
from goodbot.inference.models.directory import check, hub_cache

DIRECTORY = "models"
"""In the state directory: where a person may put model directories."""


@dataclass(frozen=True, kw_only=True, slots=True)
class LocalModel:
    """A model on this disk."""

    reference: str
    """What `goodbot model use` takes."""
    path: Path
    bytes: int
    """Of its weight files."""
    wrong: str = ""
    """Why it cannot be used as it is."""


def weights(home: Path) -> list[LocalModel]:
    """All of them, by name; embedding models and the like are told by their config only later."""
    found = [*_cached(), *_own(home)]
    return sorted(found, key=lambda one: one.reference.lower())


def stored(path: Path) -> int:
    """Bytes of the weight files in a model directory."""
    return sum(file.stat().st_size for file in path.glob("*.safetensors") if file.exists())


def _cached() -> Iterator[LocalModel]:
    for folder in hub_cache().glob("models--*--*"):
        repo = folder.name.removeprefix("models--").replace("--", "/", 1)
        snapshots = [path for path in (folder / "snapshots").glob("*") if path.is_dir()]
        main = _main(folder)
        for path in snapshots:
            plain = path.name == main or len(snapshots) == 1
            yield from _look(repo if plain else f"{repo}@{path.name}", path)
        if not snapshots and any((folder / "blobs").glob("*.incomplete")):
            yield LocalModel(
                reference=repo,
                path=folder,
                bytes=0,
                wrong="a download was broken off; `goodbot model use` goes on with it",
            )


def _main(folder: Path) -> str:
    try:
        return (folder / "refs" / "main").read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError):
        return ""


def _own(home: Path) -> Iterator[LocalModel]:
    for path in (home / DIRECTORY).glob("*/config.json"):
        yield from _look(str(path.parent), path.parent)


def _look(reference: str, path: Path) -> Iterator[LocalModel]:
    if not any(path.glob("*.safetensors")):
        return  # a tokenizer, a dataset's twin, another format
    try:
        check(path)
    except ConfigError as error:
        yield LocalModel(reference=reference, path=path, bytes=stored(path), wrong=said_by(error))
    else:
        yield LocalModel(reference=reference, path=path, bytes=stored(path))
