# SPDX-License-Identifier: Apache-2.0
"""An adapter in the format of another program, made by a child (`python -m goodbot_training.formats`).

What a server needs is made once and kept: `<adapters>/formats/<adapter>.<format>-<hash>/` holds the
result and a manifest with its hashes and that of the trained weights, and the name ends in the
manifest's hash. It appears by one rename, is checked whenever it is used, made again if it is not what
it was, and goes when the adapter does (`forget`, `sweep`). `export` and `take` are for people's files.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import weakref
from collections.abc import AsyncGenerator, Callable, Collection, Mapping
from pathlib import Path
from typing import Any, cast
from uuid import uuid4

from goodbot.api.adapters.files import sha256
from goodbot.api.adapters.manifest import MANIFEST, WEIGHTS
from goodbot.api.server import AdapterFormat
from goodbot.base import trees
from goodbot.base.errors import AdapterError, ServerError, TrainingError
from goodbot.base.worded import Worded, said_by
from goodbot.learning import worker_process

logger = logging.getLogger(__name__)

FOLDER = "formats"
CHILD = "goodbot_training.formats"
KINDS = ("mlx", "gguf", "gguf-model", "gguf-base", "fused", "fused-f32")
"""What `export` makes: an adapter's directory, an adapter's file, and whole models."""
_RESULTS = {
    AdapterFormat.MLX: "adapter",
    AdapterFormat.GGUF: "adapter.gguf",
    AdapterFormat.GGUF_MODEL: "model.gguf",
}
"""What lies in a directory of `formats`, beside its manifest."""
_HASH = 16
_PART = ".part-"
_NOT_ITS_FAULT = ("died", "disk", "killed", "memory", "oom")
"""Kinds of a failure that say nothing of the adapter."""
_LARGEST = 1 << 42
_TAKE_SECONDS = 3600.0
"""For a foreign adapter to be read, checked and written anew."""
_SMALL = 64 << 20
"""Bytes that an adapter may have whatever the base has."""
_locks: weakref.WeakValueDictionary[tuple[str, ...], asyncio.Lock] = weakref.WeakValueDictionary()
Progress = Callable[[int, int], None]
"""Called with the bytes that are done, and of how many."""


class Formats:
    """Conversions of the adapters of one base model."""

    def __init__(self, root: Path, model: Path, environ: Mapping[str, str]) -> None:
        """`root` holds the adapters, `model` the base's weights; `environ` is for the child."""
        self._root = root
        self._model = model
        self._environ = environ

    async def convert(self, directory: Path, to: AdapterFormat) -> Path:
        """A verified adapter directory (PEFT) as `to`: a file for GGUF, a directory for MLX.

        Made once, however many ask at the same time. Raises AdapterError, or ServerError where this
        machine could not (its memory, its disk).
        """
        if to is AdapterFormat.PEFT:
            return directory
        if to not in _RESULTS:
            raise AdapterError(Worded("this model server takes no adapters"))
        lock = _locks.setdefault((str(self._root), directory.name, to), asyncio.Lock())
        async with lock:
            source = await asyncio.to_thread(sha256, directory / WEIGHTS)
            made = await asyncio.to_thread(_find, self._root / FOLDER, directory.name, to, source)
            if made is None:
                made = await self._make(directory, to, source)
            return made / _RESULTS[to]

    async def export(
        self,
        directory: Path | None,
        kind: str,
        output: Path,
        *,
        on_progress: Progress | None = None,
        name: str = "goodbot",
    ) -> Mapping[str, Any]:
        """Make `output`, which must not be there: a directory for `mlx` and `fused`, else a file.

        `directory` holds the verified adapter; None for `gguf-base`. `name` is what the model says of
        itself. Returns the proof: what was compared, how far `apart` it was, and what is `allowed`.
        Raises AdapterError, and then nothing is left.
        """
        async with beside(output) as part:
            return await self._ask(kind, directory, part, on_progress, name)

    async def rebase(self, own: Path, rests_on: Path | None, onto: Path | None, output: Path) -> None:
        """A sum of a shared adapter (`rests_on`) and an own part, with another shared one in its place.

        `output` must not be there. Raises AdapterError, or ServerError where this machine could not.
        """
        parts = {"rests_on": rests_on, "onto": onto}
        told = {name: str(path) for name, path in parts.items() if path is not None}
        async with beside(output) as part:
            await self._ask("sum", own, part, None, "", **told)

    async def take(
        self, source: Path, output: Path, *, on_progress: Progress | None = None
    ) -> Mapping[str, Any]:
        """A foreign adapter directory (mlx-lm's or PEFT's) as a PEFT directory that fits the base.

        `output` must not be there. Only safetensors are read. What is larger than the base itself, or
        takes longer than an hour to read, is no adapter. Raises AdapterError.
        """
        size, most = await asyncio.to_thread(lambda: (_size(source), _size(self._model)))
        if size > max(most, _SMALL):
            large = (
                "{path} holds {size}, more than the model that it is for: name the directory of the "
                "adapter alone"
            )
            raise AdapterError(Worded(large, path=source, size=f"{size / 1e9:.1f} GB"))
        try:
            async with asyncio.timeout(_TAKE_SECONDS), beside(output) as part:
                return await self._ask("peft", source, part, on_progress, "")
        except TimeoutError as error:
            late = "{path} could not be read within {minutes} min: is it an adapter?"
            raise AdapterError(Worded(late, path=source, minutes=round(_TAKE_SECONDS / 60))) from error

    async def _make(self, directory: Path, to: AdapterFormat, source: str) -> Path:
        folder = self._root / FOLDER
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        part = folder / f"{_PART}{uuid4().hex}"
        part.mkdir(mode=0o700)
        try:
            await self._ask(to, directory, part / _RESULTS[to], None, directory.name)
            return await asyncio.to_thread(_seal, part, directory.name, to, source)
        except OSError as error:  # the disk's fault, not the adapter's: it is tried again
            cannot = "{name} cannot be kept as {kind} ({why})"
            raise ServerError(Worded(cannot, name=directory.name, kind=to, why=str(error))) from error
        finally:
            await asyncio.to_thread(trees.remove, part, ignore_errors=True)

    async def _ask(
        self,
        to: str,
        adapter: Path | None,
        output: Path,
        on_progress: Progress | None,
        name: str,
        **parts: str,
    ) -> Mapping[str, Any]:
        job = {
            **parts,
            "protocol": 1,
            "to": str(to),
            "model": str(self._model),
            "output": str(output),
            "adapter": str(adapter) if adapter else None,
            "name": name,
        }

        async def heard(event: Mapping[str, Any]) -> None:
            if on_progress is not None:
                on_progress(int(event["done"]), int(event["of"]))

        try:
            done = await worker_process.run((CHILD,), job, heard, environ=self._environ, who="converter")
        except TrainingError as error:
            blame = ServerError if error.kind in _NOT_ITS_FAULT else AdapterError
            raise blame(said_by(error)) from error
        return cast("Mapping[str, Any]", done["proof"])


def forget(root: Path, directory: str) -> None:
    """Remove what was made of an adapter. Raises OSError."""
    for entry in _entries(root / FOLDER):
        if entry.name.startswith(f"{directory}."):
            trees.remove(entry)


def sweep(root: Path, known: Collection[str]) -> None:
    """At start: remove what is of no adapter that is `known`, and what was never finished."""
    for entry in _entries(root / FOLDER):
        if entry.name.startswith(_PART) or entry.name.rpartition(".")[0] not in known:
            try:
                trees.remove(entry)
            except OSError as error:
                logger.warning("%s was left behind and cannot be removed: %s", entry, error)


@contextlib.asynccontextmanager
async def beside(output: Path) -> AsyncGenerator[Path]:
    """A name in a directory of its own, beside `output`, which becomes it at the end.

    Raises AdapterError if it is taken.
    """
    taken = Worded("{path} is there already: name a place that is not, or remove it", path=output)
    if output.exists() or output.is_symlink():
        raise AdapterError(taken)
    folder = output.with_name(f"{_PART}{uuid4().hex}")
    part = folder / output.name
    try:
        folder.mkdir(mode=0o700)  # whoever makes it writes nowhere else
        yield part
        if output.exists():
            raise AdapterError(taken)
        part.rename(output)
    except OSError as error:
        cannot = Worded("{path} cannot be written ({why})", path=output, why=error.strerror)
        raise AdapterError(cannot) from error
    finally:
        await asyncio.to_thread(trees.remove, folder, ignore_errors=True)


def _size(directory: Path) -> int:
    """The bytes of the weights in a directory; what they are is read before any is loaded."""
    return sum(file.stat().st_size for file in directory.glob("*.safetensors") if file.is_file())


def _entries(folder: Path) -> list[Path]:
    return sorted(folder.iterdir()) if folder.is_dir() else []


def _find(folder: Path, name: str, to: str, source: str) -> Path | None:
    """What was made before, if it still is what it was; what is not, is removed."""
    for entry in _entries(folder):
        stem, _, digest = entry.name.rpartition("-")
        if stem != f"{name}.{to}":
            continue
        if _whole(entry, digest, source):
            return entry
        logger.warning("%s is not what was made, or not of this adapter: made again", entry.name)
        trees.remove(entry, ignore_errors=True)
    return None


def _whole(entry: Path, digest: str, source: str) -> bool:
    try:
        if sha256(entry / MANIFEST)[:_HASH] != digest:
            return False
        manifest: Any = json.loads((entry / MANIFEST).read_bytes())
        return manifest["source"] == source and manifest["files"] == _hashes(entry)
    except (AdapterError, OSError, ValueError, LookupError, TypeError):
        return False


def _seal(part: Path, name: str, to: AdapterFormat, source: str) -> Path:
    """Write the manifest and move the directory to its final name. Raises AdapterError, OSError."""
    if (left := sorted(entry.name for entry in part.iterdir())) != [_RESULTS[to]]:
        other = "the converter left {left} instead of {name}"
        raise AdapterError(Worded(other, left=ascii(left)[:200], name=_RESULTS[to]))
    manifest = {"of": name, "format": to, "source": source, "files": _hashes(part)}
    with (part / MANIFEST).open("x", encoding="utf-8") as file:
        file.write(json.dumps(manifest, indent=1, sort_keys=True) + "\n")
    for file in trees.below(part):
        if file.is_file():
            file.chmod(0o400)
    final = part.with_name(f"{name}.{to}-{sha256(part / MANIFEST)[:_HASH]}")
    try:
        part.rename(final)
    except OSError:  # another process was quicker, with the same bytes
        if not _whole(final, final.name.rpartition("-")[2], source):
            raise
    return final


def _hashes(directory: Path) -> dict[str, str]:
    """The sha256 of every file but its own manifest, by its path within."""
    return {
        str(file.relative_to(directory)): sha256(file, limit=_LARGEST)
        for file in trees.below(directory)
        if file.is_file() and file != directory / MANIFEST
    }
