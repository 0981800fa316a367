# SPDX-License-Identifier: Apache-2.0
"""An adapter of somebody else's becomes a version: nothing of its files is kept but numbers.

Who imports prepares it in a directory of the state directory: a private copy of the few files that
count, read with caps; then a child reads the matrices and writes a new adapter of them, fitted to the
base; then the sizes of what they change are looked at. The daemon checks the result once more and
records it. It has no parent, no run and no ratings, and does not answer until somebody says so.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, cast

from goodbot.api import model_shape
from goodbot.api.adapters import manifest
from goodbot.api.adapters.base import Base
from goodbot.api.adapters.files import MAX_TEXT, MAX_WEIGHTS, plain, read
from goodbot.api.adapters.manifest import CONFIG, WEIGHTS, AdapterManifest, publish
from goodbot.api.adapters.weights import check_weights, pairs, require_fit
from goodbot.api.model import ResolvedModel
from goodbot.base.errors import AdapterError, ConfigError
from goodbot.base.scratch import Scratch, sweep
from goodbot.base.spawn import child_environment
from goodbot.base.worded import Worded
from goodbot.config import clear
from goodbot.inference.models.directory import read_config
from goodbot.learning.adapters import archive
from goodbot.learning.adapters.examining import examine
from goodbot.learning.adapters.formats import Formats
from goodbot.store.adapters import AdapterRow
from goodbot.store.backup import require_space

FOLDER = "imports"
MLX_WEIGHTS = "adapters.safetensors"

_NAME = re.compile(r"[a-z0-9_-]{8,64}")
_ABOUT = "source.txt"
_CHUNK = 1 << 20
_NEUTRAL = {"mean": 0.0, "weight": 0.0}
"""The running mean of rewards that a training from it starts with."""


@dataclass(frozen=True, kw_only=True, slots=True)
class StagedAdapter:
    """A checked adapter that waits in `home/imports/NAME` to be recorded."""

    name: str
    notes: tuple[str, ...]
    """What its owner should know, one sentence each."""


@contextlib.asynccontextmanager
async def prepared(
    source: Path, home: Path, model: ResolvedModel, progress: Callable[[int, int], None]
) -> AsyncGenerator[StagedAdapter]:
    """Check a directory (PEFT or MLX layout) or an exported archive; removed again at the end.

    Raises AdapterError with what is wrong with it, StoreFullError, OSError.
    """
    own = _own(home)
    folder = own.path
    try:
        foreign, adapter = folder / "foreign", folder / "adapter"
        foreign.mkdir(mode=0o700)
        notes, label = _taken(source, foreign, Base.of(model), _most(model))
        formats = Formats(folder, model.path, child_environment())
        await formats.take(foreign, adapter, on_progress=progress)
        _require_place(adapter, model)
        await examine(None, adapter, child_environment())
        (folder / _ABOUT).write_text(_plain(label), encoding="utf-8")
        yield StagedAdapter(name=folder.name.removeprefix(clear.PREFIX), notes=tuple(notes))
    finally:
        own.remove()


def ready(home: Path, name: str, model: ResolvedModel, base: Base) -> tuple[Path, AdapterManifest]:
    """A prepared adapter by its name, checked again: its directory, and its manifest but for the number.

    Raises AdapterError.
    """
    if not _NAME.fullmatch(name):
        raise AdapterError(Worded("an adapter is imported with `goodbot adapters import PATH`"))
    root = home / FOLDER
    folder = clear.root(home) / f"{clear.PREFIX}{name}" if clear.is_apart(root) else root / name
    adapter = folder / "adapter"
    label = _plain(read(folder / _ABOUT).decode("utf-8", "replace"))
    _require_place(adapter, model)
    empty = AdapterManifest(version=0, parent=0, run=None, model=model.name, files={}, source=label)
    return adapter, empty.on(base)


def record(adapter: Path, root: Path, given: AdapterManifest, now: float) -> AdapterRow:
    """Publish a prepared adapter; returns the row to store. Raises AdapterError, OSError."""
    directory, known = publish(adapter, root, given)
    return AdapterRow(
        version=given.version,
        parent=given.parent,
        run=None,
        directory=directory.name,
        sha256=known.files[WEIGHTS],
        model=given.model,
        tainted="",
        baseline=dict(_NEUTRAL),
        metrics={},
        created_at=now,
    )


def _own(home: Path) -> Scratch:
    """Where one is prepared: beside the other clear files, where what is stored is encrypted."""
    root = home / FOLDER
    root.mkdir(mode=0o700, parents=True, exist_ok=True)
    sweep(root)
    return clear.apart(home) if clear.is_apart(root) else Scratch(root)


def _require_place(adapter: Path, model: ResolvedModel) -> None:
    config = _config(adapter)
    require_fit(pairs(check_weights(adapter / WEIGHTS), config), read_config(model.path))


def _taken(source: Path, into: Path, base: Base, most: int) -> tuple[list[str], str]:
    """A private copy of what counts, of `most` bytes; returns notes, and what it is called."""
    if source.is_file() and source.suffix in (".safetensors", ".bin", ".pt", ".gguf"):
        alone = "{name} alone is no adapter: name the directory that it lies in"
        raise AdapterError(Worded(alone, name=source.name))
    if not source.is_dir():
        _size(source, most)
        known = archive.unpack(source, into)
        if change := manifest.changed(known, base):
            raise AdapterError(_plain(change, 600))  # its manifest's words are in it
        own = [] if known.model == base.model else [_other(known.model, base)]
        return own, f"the archive {source.name}"
    for weights in (WEIGHTS, MLX_WEIGHTS):
        if (source / weights).exists() or (source / weights).is_symlink():
            break
    else:
        neither = (
            "{name} holds neither {peft} (PEFT) nor {mlx} (MLX); no other format is loaded, and nothing that "
            "is pickled"
        )
        raise AdapterError(Worded(neither, name=source.name, peft=WEIGHTS, mlx=MLX_WEIGHTS))
    size = _size(source / weights, most)
    if weights == WEIGHTS:
        check_weights(source / weights)  # its header, before all of it is copied
    require_space(into, 3 * size + MAX_TEXT)
    _copy(source / weights, into / weights, most)
    _copy(source / CONFIG, into / CONFIG, MAX_TEXT)
    if weights == WEIGHTS:
        check_weights(into / WEIGHTS)
        name = str(_config(into).get("base_model_name_or_path") or "")
        other = name and name.rpartition("/")[2] != base.model.rpartition("/")[2].partition("@")[0]
        return [_other(name, base)] if other else [], f"the PEFT directory {source.name}"
    return [], f"the MLX directory {source.name}"


def _other(name: str, base: Base) -> str:
    return f"it says that it was made for {_plain(name)[:80]}, not for {base.model}; its shapes fit"


def _plain(text: str, longest: int = 200) -> str:
    """A foreign name, as it may be shown."""
    return "".join(c if c.isprintable() else "?" for c in text[:longest])


def _config(directory: Path) -> dict[str, Any]:
    try:
        found = json.loads(read(directory / CONFIG))
    except (ValueError, RecursionError) as error:
        where = f"{directory.name}/{CONFIG}"
        wrong = Worded("{name} cannot be read ({why})", name=where, why=str(error))
        raise AdapterError(wrong) from error
    if not isinstance(found, dict):
        raise AdapterError(Worded("{name} is no JSON object", name=f"{directory.name}/{CONFIG}"))
    return cast("dict[str, Any]", found)


def _most(model: ResolvedModel) -> int:
    """Bytes that an adapter of full rank on this model has in fp32, and its config; no more is taken."""
    try:
        shape = model_shape.read(read_config(model.path))
    except ConfigError:
        return MAX_WEIGHTS
    return min(MAX_WEIGHTS, 4 * shape.lora(shape.hidden * shape.experts.active) + MAX_TEXT)


def _size(path: Path, most: int) -> int:
    with plain(path, limit=most) as file:
        return os.fstat(file.fileno()).st_size


def _copy(path: Path, target: Path, limit: int) -> None:
    """No more than `limit` bytes, though the file may grow."""
    with plain(path, limit=limit) as file, target.open("xb") as out:
        _bounded(file, out, limit, path.name)


def _bounded(file: BinaryIO, out: BinaryIO, limit: int, name: str) -> None:
    left = limit
    while chunk := file.read(_CHUNK):
        left -= len(chunk)
        if left < 0:
            raise AdapterError(Worded("{name} grows while it is read", name=name))
        out.write(chunk)
