"""Files of one adapter version: checked, hashed, synced and renamed into place; checked again at use.

A directory under its final name is complete: the files and the directory are synced before
the rename, and the parent directory after it. The name ends in the manifest's hash, the manifest
holds the files' hashes and the database holds the name: so no byte can change unnoticed.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
import stat
import struct
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, cast

from goodbot.errors import AdapterError

WEIGHTS = "adapter_model.safetensors"
CONFIG = "adapter_config.json"
MANIFEST = "manifest.json"

_MAX_HEADER = 1_000_000
_MAX_TENSORS = 20_000
_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")
_SIZES = {"F32": 4, "F16": 2, "BF16": 2}
_HASH = 16
"""Hexadecimal digits of the manifest's hash in a directory's name."""
_MALFORMED = (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError)
"""What reading a foreign file as something that it is not can raise."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Manifest:
    """What an adapter is: its files' sha256, its base model, its parent and its training run."""

    version: int
    parent: int
    run: int | None
    model: str
    files: Mapping[str, str]
    metrics: Mapping[str, Any] = field(default_factory=dict[str, Any])


def check_weights(path: Path) -> None:
    """Refuse a safetensors file that is not exactly what a LoRA adapter of ours looks like.

    Only the header is parsed here (that the values are finite is the trainer's to check): caps
    on its size and tensor count, float dtypes, two-dimensional `lora_A`/`lora_B` tensors, and
    data that cover the file without a gap or an overlap. Raises AdapterError.
    """
    _require_file(path)
    try:
        with path.open("rb") as file:
            (length,) = struct.unpack("<Q", file.read(8))
            if length > _MAX_HEADER:
                raise AdapterError(f"{path.name} has a header of {length} bytes, over the limit")
            header = json.loads(file.read(length).decode("utf-8"), object_pairs_hook=_once)
            size = os.fstat(file.fileno()).st_size - 8 - length
        if not isinstance(header, dict):
            raise AdapterError(f"{path.name} is not a safetensors file")
        tensors = cast("dict[str, Any]", header)
        tensors.pop("__metadata__", None)
        _check_tensors(path.name, tensors, size)
    except (*_MALFORMED, struct.error) as error:
        raise AdapterError(f"{path.name} is not a readable safetensors file ({error})") from error


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Two readers may disagree on which of two entries of one name counts."""
    if len({key for key, _ in pairs}) != len(pairs):
        raise ValueError("a name occurs twice in its header")
    return dict(pairs)


def _require_file(path: Path) -> None:
    """A link leads elsewhere, and opening a pipe would wait for ever. Raises AdapterError."""
    where = f"{path.parent.name}/{path.name}"
    try:
        regular = stat.S_ISREG(path.lstat().st_mode)
    except OSError as error:
        raise AdapterError(f"{where} is missing ({error.strerror})") from error
    if not regular:
        raise AdapterError(f"{where} is no plain file")


def _check_tensors(name: str, tensors: Mapping[str, Any], size: int) -> None:
    if not 0 < len(tensors) <= _MAX_TENSORS:
        raise AdapterError(f"{name} holds {len(tensors)} tensors")
    end = 0
    for key, entry in sorted(tensors.items(), key=lambda item: item[1]["data_offsets"][0]):
        shape, (start, stop) = entry["shape"], entry["data_offsets"]
        if ".lora_A." not in key and ".lora_B." not in key:
            raise AdapterError(f"{name} holds a tensor that is no LoRA weight: {key[:80]!r}")
        if len(shape) != 2 or any(type(n) is not int or n < 1 for n in shape):
            raise AdapterError(f"{name}: {key[:80]!r} has no shape of a matrix")
        if type(start) is not int or type(stop) is not int:
            raise AdapterError(f"{name}: the data of {key[:80]!r} lie nowhere")
        if start != end or stop - start != _SIZES[entry["dtype"]] * math.prod(shape):
            raise AdapterError(f"{name}: the data of {key[:80]!r} do not fit its shape")
        end = stop
    if end != size:
        raise AdapterError(f"{name} has {size - end} bytes that belong to no tensor")


def publish(staging: Path, root: Path, manifest: Manifest) -> tuple[Path, Manifest]:
    """Move a finished adapter into `root`; returns its directory and its manifest with hashes.

    The name is generated (`v000007-1a2b3c4d5e6f7a8b`); nothing foreign reaches the path.
    Raises AdapterError for anything but an adapter's two plain files, and OSError.
    """
    names = sorted(entry.name for entry in staging.iterdir())
    if names != sorted((CONFIG, WEIGHTS)):
        raise AdapterError(
            f"the trainer left {', '.join(names) or 'nothing'} instead of an adapter"
        )
    check_weights(staging / WEIGHTS)
    _require_file(staging / CONFIG)
    files = {name: sha256(staging / name) for name in names}
    complete = replace(manifest, files=files)
    text = json.dumps(asdict(complete), indent=1, sort_keys=True) + "\n"
    (staging / MANIFEST).write_text(text, encoding="utf-8")
    for entry in staging.iterdir():
        entry.chmod(0o400)
        _sync(entry)
    _sync(staging)
    final = root / f"v{manifest.version:06d}-{sha256(staging / MANIFEST)[:_HASH]}"
    staging.rename(final)
    _sync(root)
    return final, complete


def verify(root: Path, directory: str, expected_sha256: str) -> Path:
    """The path of a version whose every file is what its manifest says. Raises AdapterError.

    `expected_sha256` is the weights' hash as the database knows it, so that a manifest that was
    replaced together with the weights is noticed as well.
    """
    if not _NAME.fullmatch(directory):
        raise AdapterError(f"{directory[:80]!r} is no name of an adapter directory")
    path = root / directory
    try:
        if path.is_symlink() or path.resolve().parent != root.resolve():
            raise AdapterError(f"{directory} is a link: it was not made by goodbot")
        _require_file(path / MANIFEST)
        if sha256(path / MANIFEST)[:_HASH] != directory.rpartition("-")[2]:
            raise AdapterError(f"the manifest of {directory} is not the one that was written")
        manifest = json.loads((path / MANIFEST).read_text(encoding="utf-8"))
        files = cast("dict[str, str]", manifest["files"])
        if set(files) != {CONFIG, WEIGHTS}:
            raise AdapterError(f"{directory} has a manifest that names other files")
        for name, digest in files.items():
            _require_file(path / name)
            if sha256(path / name) != digest:
                raise AdapterError(f"{directory}/{name} is not the file that was trained")
    except _MALFORMED as error:
        raise AdapterError(f"the adapter {directory} cannot be read ({error})") from error
    if files[WEIGHTS] != expected_sha256:
        raise AdapterError(f"{directory} is not the adapter that the database knows")
    check_weights(path / WEIGHTS)
    return path


def sha256(path: Path) -> str:
    """The hash of a file, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _sync(path: Path) -> None:
    fd = os.open(path, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
