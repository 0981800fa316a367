# SPDX-License-Identifier: Apache-2.0
"""A model as a plugin ships it, and as the core has found it on this machine."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

DEMO_LABEL = "[demo model] "
"""Precedes every answer of a demo model; where there is room for more than words, a badge says it."""
_SAMPLE = 65536
"""Bytes of weights, in the middle and at the end of a file, that tell two fine-tunes apart."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelSpec:
    """A model that a plugin ships. A `demo` model never answers people unasked and unlabelled."""

    name: str
    path: Path
    demo: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class ResolvedModel:
    """A checked model directory. `label` precedes every answer of a demo model."""

    name: str
    """Its identity: ratings and adapters belong to the model of this name."""
    path: Path
    label: str = ""


def identity(path: Path) -> str:
    """The name of the model in a directory: `NAME@xxxxxxxx`, or `owner/name` in the hub's cache.

    The hexadecimal digits come from config.json and from the weights' headers, sizes and two
    samples of them, so that two directories of one name are two models.
    """
    if path.parent.name == "snapshots" and path.parent.parent.name.startswith("models--"):
        return path.parent.parent.name.removeprefix("models--").replace("--", "/", 1)
    return f"{path.name}@{digest(path)[:8]}"


def digest(path: Path) -> str:
    """64 hexadecimal digits that tell a directory's config and weights from those of any other."""
    import hashlib

    found = hashlib.sha256((path / "config.json").read_bytes())
    for file in sorted(path.glob("*.safetensors")):
        size = file.stat().st_size
        found.update(f"{file.name}\0{size}\0".encode(errors="surrogateescape"))
        with file.open("rb") as weights:
            length = int.from_bytes(weights.read(8), "little")
            found.update(weights.read(min(length, 100_000_000)))
            for start in (size // 2, max(0, size - _SAMPLE)):
                weights.seek(start)
                found.update(weights.read(_SAMPLE))
    return found.hexdigest()
