# SPDX-License-Identifier: Apache-2.0
"""One version in a format that another program takes, written beside its place and moved there whole.

Every export is read back by the child that made it (`goodbot_training.formats`), or here, and compared
with what it was made from before it gets its name. Nothing is ever replaced.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from goodbot.api.adapters.files import sha256
from goodbot.api.adapters.manifest import CONFIG, WEIGHTS, AdapterManifest, contents
from goodbot.base import trees
from goodbot.base.durable import sync
from goodbot.base.errors import AdapterError, UsageError
from goodbot.base.spawn import child_environment
from goodbot.base.suggest import instead
from goodbot.base.worded import Worded
from goodbot.config import clear
from goodbot.learning.adapters import archive
from goodbot.learning.adapters.examining import examine
from goodbot.learning.adapters.formats import Formats
from goodbot.store import workshop
from goodbot.store.backup import require_space

KINDS = {
    "peft": "a directory for vLLM, SGLang, TGI and transformers, or a .tar for another goodbot",
    "mlx": "a directory for mlx-lm",
    "gguf": "a LoRA file for llama.cpp, LocalAI; `base`: the base model for it",
    "gguf-model": "base and adapter as one GGUF file, for servers that take no LoRA",
    "fused": "base and adapter as one directory of safetensors, for any server",
}
"""Format → what it is for."""
_THERE = "{path} is there already: an export never replaces anything"


async def export(
    kind: str,
    version: Path | None,
    manifest: AdapterManifest | None,
    out: Path,
    *,
    home: Path,
    model: Path,
    now: float,
    progress: Callable[[int, int], None],
) -> Mapping[str, Any]:
    """Write a verified version (None: the base model) to `out`; returns what reading it back showed.

    In `home`, the state directory, stands where it is made: what a killed one leaves is found and deleted.
    Raises UsageError (`out` is there), AdapterError, StoreFullError; then nothing is left.
    """
    if kind not in KINDS:
        known = instead(kind, KINDS)
        raise UsageError(Worded("there is no format {name}; {known}", name=repr(kind[:40]), known=known))
    if version is None and kind != "gguf":
        bare = Worded("the base model is as it came; only `--format gguf` makes something of it")
        raise UsageError(bare)
    out = out.absolute()
    if os.path.lexists(out):
        raise UsageError(Worded(_THERE, path=out))
    if not out.parent.is_dir():
        raise UsageError(Worded("{path} is no directory", path=out.parent))
    if clear.is_apart(home / "adapters") and out.is_relative_to(home.absolute()):
        inside = Worded("nothing in {home} is to lie in clear: name a place outside of it", home=home)
        raise UsageError(inside)
    try:
        with workshop.made(home, out.parent, "export") as work:
            part = work / out.name
            if version is None or manifest is None or kind != "peft":
                formats = Formats(work, model, child_environment())
                name = "gguf-base" if version is None else kind
                found = await formats.export(version, name, part, on_progress=progress)
            else:
                found = await _trained(version, manifest, part, now)
            for entry in [*trees.below(part), part] if part.is_dir() else [part]:
                sync(entry)
            if os.path.lexists(out):
                raise AdapterError(Worded(_THERE, path=out))
            part.rename(out)
            sync(out.parent)
    except OSError as error:
        wrong = Worded("{path} cannot be written ({why})", path=out, why=error.strerror)
        raise AdapterError(wrong) from error
    return found


async def _trained(version: Path, manifest: AdapterManifest, part: Path, now: float) -> Mapping[str, Any]:
    """What was trained, as it is."""
    needed = sum(entry.stat().st_size for entry in version.iterdir() if entry.is_file())
    require_space(part.parent, 2 * needed)
    if part.suffix != ".tar":
        return await _peft(part, version)
    archive.write(part, version, manifest, now=now)
    return _unpacked(part, manifest)


async def _peft(partial: Path, version: Path) -> Mapping[str, Any]:
    partial.mkdir()
    config, weights = contents(version)
    (partial / CONFIG).write_bytes(config)
    (partial / WEIGHTS).write_bytes(weights)
    found = await examine(version, partial, child_environment())
    if found.change > 1e-6 * found.size:
        raise AdapterError(Worded("the export reads otherwise than the version: is the disk failing?"))
    return {"change": found.change, "size": found.size}


def _unpacked(partial: Path, manifest: AdapterManifest) -> Mapping[str, Any]:
    """Unpacked once more, which compares every hash."""
    back = partial.with_name(f"{partial.name}.back")
    back.mkdir(mode=0o700)
    try:
        known = archive.unpack(partial, back)
    finally:
        trees.remove(back)
    if known.files != manifest.files:
        raise AdapterError(Worded("the export reads otherwise than the version: is the disk failing?"))
    return {"sha256": sha256(partial)}
